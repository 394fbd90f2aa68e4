// Writes aside, syncs and renames.
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"
#include "examples/decoder/files/json_memory.hpp"

namespace decoder {
namespace {

namespace fs = std::filesystem;

// A directory that is removed unless it was put into place.
class staging_directory {
 public:
  explicit staging_directory(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);  // the remains of a killed run
    if (::mkdir(path_.c_str(), 0777) != 0)
      fail("%s: cannot create: %s", path_.c_str(), std::strerror(errno));
  }
  staging_directory(const staging_directory&) = delete;
  staging_directory& operator=(const staging_directory&) = delete;
  ~staging_directory() {
    try {
      std::error_code ignored;
      fs::remove_all(path_, ignored);
    } catch (const std::bad_alloc&) {  // the next save removes it
    }
  }

  template <class Write>
  void add(const char* name, Write write) {
    durable_file file(path_ + "/" + name);
    write(file);
    file.finish();
    char line[128];
    std::snprintf(line, sizeof line, "%08x %llu %s\n", file.crc(),
                  static_cast<unsigned long long>(file.bytes()), name);
    checksums_ += line;
  }

  void seal() {
    durable_file file(path_ + "/CHECKSUMS");
    char last[16];
    std::snprintf(last, sizeof last, "%08x\n", crc32_of(0, checksums_.data(), checksums_.size()));
    file.write(checksums_ + last);
    file.finish();
    sync_directory(path_);
  }

  // This directory holds the previous checkpoint after an exchange, and the destructor removes it.
  void move_to(const std::string& place) {
    const char *from = path_.c_str(), *to = place.c_str();
    if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) return;
    if (errno == EINVAL ||
        errno == ENOSYS) {  // a file system that cannot exchange: two renames, never zero copies
      const std::string previous = place + ".previous";
      std::error_code ignored;
      if (fs::exists(place, ignored)) fs::remove_all(previous, ignored);  // of a killed run
      if (::rename(to, previous.c_str()) != 0 && errno != ENOENT) refused(place);
      if (::rename(from, to) != 0) refused(place);
      fs::remove_all(previous, ignored);
      return;
    }
    if (errno != ENOENT || ::rename(from, to) != 0) refused(place);
  }

 private:
  [[noreturn]] static void refused(const std::string& place) {
    fail("%s: cannot put the checkpoint into place: %s", place.c_str(), std::strerror(errno));
  }

  std::string path_, checksums_;
};

std::string trainer_json(const checkpoint& contents) {
  json_t* validations = json_array();
  for (const loss_point& each : contents.validations)
    json_array_append_new(validations,
                          json_pack("{s:I, s:f}", "step", static_cast<json_int_t>(each.step),
                                    "bits_per_byte", each.bits));
  json_t* root =
      json_pack("{s:I, s:I, s:o, s:o}", "step", static_cast<json_int_t>(contents.step), "data_crc",
                static_cast<json_int_t>(contents.data_crc), "validations", validations, "settings",
                json_loads(contents.settings.c_str(), 0, nullptr));
  char* dumped = json_dumps(root, JSON_INDENT(2));
  json_decref(root);
  require_json_memory();
  if (!dumped) fail("the settings are not UTF-8");
  std::string text = std::string(dumped) + "\n";
  std::free(dumped);
  return text;
}

fs::path parent_of(const fs::path& place) {
  return place.has_parent_path() ? place.parent_path() : fs::path(".");
}

}  // namespace

void require_place(const std::string& path) {
  const fs::path place(path);
  std::error_code error;
  // A run killed between two renames left its new checkpoint, whole, under the name it was written
  // to.
  const std::string written = path + ".saving";
  if (!fs::exists(place, error) && is_sealed(written)) fs::rename(written, place, error);
  if (fs::exists(place, error) && !fs::exists(place / "CHECKSUMS", error)) {
    fail("%s: exists and is not a checkpoint; it is left as it is", path.c_str());
  }
  fs::create_directories(parent_of(place), error);
  if (error) fail("%s: cannot create: %s", parent_of(place).c_str(), error.message().c_str());
  const staging_directory tried(path + ".saving");
}

void save_checkpoint(const std::string& path, const checkpoint& contents,
                     const std::string& keep_as) {
  require_place(path);
  staging_directory staging(path + ".saving");
  staging.add("model.safetensors", [&](durable_file& file) {
    write_safetensors(file, contents.weights, {{"format", "pt"}});
  });
  staging.add("training_state.safetensors",
              [&](durable_file& file) { write_safetensors(file, contents.state, {}); });
  staging.add("config.json", [&](durable_file& file) {
    file.write(hugging_face_config(contents.model, contents.sequence));
  });
  staging.add("trainer.json", [&](durable_file& file) { file.write(trainer_json(contents)); });
  staging.seal();
  if (!keep_as.empty() && ::rename(path.c_str(), keep_as.c_str()) != 0)
    fail("%s: cannot rename: %s", path.c_str(), std::strerror(errno));
  staging.move_to(path);
  sync_directory(parent_of(path).string());
}

}  // namespace decoder
