// Verify everything, then read.
#include <jansson.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "checkpoint.hpp"
#include "failure.hpp"
#include "file.hpp"

namespace pretrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* parts[] = {"model.safetensors", "training_state.safetensors", "config.json",
                                 "trainer.json"};

// The size and CRC of a file that may be larger than memory likes.
void verify_file(const std::string& path, std::uint32_t crc, std::uint64_t bytes) {
  std::error_code error;
  const std::uint64_t found = fs::file_size(path, error);
  if (error) fail("%s: %s", path.c_str(), error.message().c_str());
  if (found != bytes) {
    fail("%s: damaged checkpoint: %" PRIu64 " bytes where %" PRIu64 " were written", path.c_str(),
         found, bytes);
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) fail("%s: cannot open", path.c_str());
  std::vector<char> buffer(1 << 20);
  std::uint32_t sum = 0;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    sum = crc32_of(sum, buffer.data(), got);
  }
  if (std::ferror(file.get())) fail("%s: cannot read", path.c_str());
  if (sum != crc) fail("%s: damaged checkpoint: the checksum does not match", path.c_str());
}

}  // namespace

checkpoint_reader::checkpoint_reader(const std::string& path) : path_(path) {
  // Between the two renames of a file system without exchange, the checkpoint is found under its
  // other name.
  if (!fs::exists(path_) && fs::exists(path_ + ".previous")) path_ += ".previous";
  if (!fs::is_directory(path_)) fail("%s: no such checkpoint directory", path.c_str());
  verify();
  read_trainer();
}

void checkpoint_reader::verify() const {
  const std::string name = path_ + "/CHECKSUMS";
  const std::string text = read_whole_file(name);
  char last[16];
  const std::size_t body = text.size() < 9 ? 0 : text.size() - 9;
  std::snprintf(last, sizeof last, "%08x\n", crc32_of(0, text.data(), body));
  if (body == 0 || text.compare(body, std::string::npos, last) != 0) {
    fail("%s: damaged checkpoint: the checksum does not match", name.c_str());
  }
  std::istringstream lines(text.substr(0, body));
  std::string line;
  for (const char* part : parts) {
    std::uint32_t crc = 0;
    std::uint64_t bytes = 0;
    char file[64] = "";
    std::getline(lines, line);
    if (std::sscanf(line.c_str(), "%8" SCNx32 " %" SCNu64 " %63s", &crc, &bytes, file) != 3 ||
        part != std::string(file)) {
      fail("%s: expected the checksum of %s", name.c_str(), part);
    }
    verify_file(path_ + "/" + part, crc, bytes);
  }
}

void checkpoint_reader::read_trainer() {
  const std::string name = settings_name(), text = read_whole_file(name);
  json_error_t error;
  const std::unique_ptr<json_t, void (*)(json_t*)> root(
      json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error), json_decref);
  if (!root) fail("%s:%d:%d: %s", name.c_str(), error.line, error.column, error.text);
  json_int_t step = 0, crc = 0;
  json_t* settings = nullptr;
  if (json_unpack_ex(root.get(), &error, 0, "{s:I, s:I, s:o}", "step", &step, "data_crc", &crc,
                     "settings", &settings) != 0 ||
      step < 0) {
    fail("%s: not a trainer's state: %s", name.c_str(), error.text);
  }
  step_ = step;
  data_crc_ = static_cast<std::uint32_t>(crc);
  char* dumped = json_dumps(settings, JSON_INDENT(2));
  settings_ = dumped ? dumped : "";
  std::free(dumped);
}

void checkpoint_reader::read_weights(const std::vector<named_tensor>& into) const {
  safetensors_reader(path_ + "/model.safetensors").read_exactly(into);
}

void checkpoint_reader::read_state(const std::vector<named_tensor>& into) const {
  safetensors_reader(path_ + "/training_state.safetensors").read_exactly(into);
}

}  // namespace pretrain
