// Verifies everything, then reads.
#include <jansson.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/decoder/weights/layout.hpp"

namespace decoder {
namespace {

namespace fs = std::filesystem;

constexpr const char* parts[] = {"model.safetensors", "training_state.safetensors", "config.json",
                                 "trainer.json"};

// The size and CRC of a file of any size.
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

using json_owner = std::unique_ptr<json_t, void (*)(json_t*)>;

json_owner parsed(const std::string& name, const std::string& text) {
  json_error_t error;
  json_owner root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error),
                  json_decref);
  require_json_memory();
  if (!root) fail("%s:%d:%d: %s", name.c_str(), error.line, error.column, error.text);
  if (!json_is_object(root.get())) fail("%s: must hold an object", name.c_str());
  return root;
}

std::string dumped(const json_t* value) {
  char* raw = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  std::string text = raw ? raw : "missing";
  std::free(raw);
  require_json_memory();
  return text;
}

// An integer of a JSON object, within bounds.
std::int64_t number(const std::string& name, const json_t* root, const char* key,
                    std::int64_t most) {
  const json_t* value = json_object_get(root, key);
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) > most) {
    fail("%s: %s must be an integer from 0 to %" PRId64 ", not %s", name.c_str(), key, most,
         dumped(value).c_str());
  }
  return json_integer_value(value);
}

fs::path without_last_slash(const std::string& path) {
  const fs::path place = fs::path(path).lexically_normal();
  return place.has_filename() ? place : place.parent_path();
}

// The lines of CHECKSUMS before the last; empty where the last is not their CRC-32.
std::string sealed_lines(const std::string& text) {
  const std::size_t body = text.size() < 9 ? 0 : text.size() - 9;
  char last[16];
  std::snprintf(last, sizeof last, "%08x\n", crc32_of(0, text.data(), body));
  return text.compare(body, std::string::npos, last) == 0 ? text.substr(0, body) : "";
}

constexpr std::int64_t most_steps = 1'000'000'000;  // the bound of the setting

}  // namespace

bool is_sealed(const std::string& path) {
  const std::string name = path + "/CHECKSUMS";
  std::error_code ignored;
  return fs::is_regular_file(name, ignored) && !sealed_lines(read_whole_file(name)).empty();
}

checkpoint_reader::checkpoint_reader(const std::string& path) {
  find(path);
  verify();
  read_trainer();
}

// A run killed between two renames leaves the newest checkpoint under the name it was written to;
// where the file system cannot exchange two names, it leaves the one before as "previous".
void checkpoint_reader::find(const std::string& path) {
  std::error_code ignored;
  for (const std::string& place : {path, path + "/checkpoint"}) {
    const std::string written = place + ".saving";
    for (const std::string& name : {place, written, place + ".previous"}) {
      if (!path_.empty() || !fs::exists(name + "/CHECKSUMS", ignored)) continue;
      if (name == written && !is_sealed(name)) continue;
      path_ = name;
    }
  }
  if (!path_.empty()) return;
  if (!fs::is_directory(path, ignored)) fail("%s: no such checkpoint directory", path.c_str());
  fail(
      "%s: no checkpoint: neither it nor a folder \"checkpoint\" in it has CHECKSUMS, and it is no "
      "folder of transformers, with a config.json and without a trainer.json",
      path.c_str());
}

std::string checkpoint_reader::out() const {
  const fs::path folder = without_last_slash(path_);
  if (folder.stem() != "checkpoint") return "";
  const std::string kind = folder.extension();
  if (!kind.empty() && kind != ".saving" && kind != ".previous") return "";
  return folder.has_parent_path() ? folder.parent_path().string() : ".";
}

void checkpoint_reader::verify() {
  const std::string name = path_ + "/CHECKSUMS";
  const std::string text = read_whole_file(name);
  checksums_ = text;
  const std::string sealed = sealed_lines(text);
  if (sealed.empty()) fail("%s: damaged checkpoint: the checksum does not match", name.c_str());
  std::istringstream lines(sealed);
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
  const std::string name = trainer_name();
  trainer_ = read_whole_file(name);
  const json_owner root = parsed(name, trainer_);
  step_ = number(name, root.get(), "step", most_steps);
  data_crc_ = static_cast<std::uint32_t>(number(name, root.get(), "data_crc", UINT32_MAX));
  const json_t* list = json_object_get(root.get(), "validations");
  if (!json_is_array(list)) fail("%s: validations must be an array", name.c_str());
  for (std::size_t i = 0; i < json_array_size(list); ++i) {
    const json_t* each = json_array_get(list, i);
    const std::int64_t step = number(name, each, "step", step_);
    const json_t* bits = json_object_get(each, "bits_per_byte");
    if (!json_is_number(bits) || (i > 0 && step <= validations_.back().step))
      fail("%s: validation %s is out of order or no number", name.c_str(), dumped(each).c_str());
    validations_.push_back({step, json_number_value(bits)});
  }
}

void checkpoint_reader::require_model(const model_settings& model, std::int64_t sequence) const {
  const std::string name = path_ + "/config.json";
  const json_owner config = parsed(name, read_whole_file(name));
  const json_owner wanted = parsed(name, hugging_face_config(model, sequence));
  const char* key;
  json_t* value;
  json_object_foreach(wanted.get(), key, value) {
    const json_t* found = json_object_get(config.get(), key);
    const bool same = json_is_number(found) && json_is_number(value)
                          ? json_number_value(found) == json_number_value(value)
                          : json_equal(found, value);
    if (!same) {
      fail("%s: %s is %s, but the settings in trainer.json make it %s", name.c_str(), key,
           dumped(found).c_str(), dumped(value).c_str());
    }
  }
  const element type = model.dtype == "bf16" ? element::bf16 : element::f32;
  std::vector<named_tensor> weights;
  const weight_layout layout(model);
  for (const weight_slice& slice : layout.slices)
    weights.push_back({slice.name, type, slice.shape, nullptr});
  for (const score_bias& each : layout.biases)
    weights.push_back({each.name, element::f32, {model.experts}, nullptr});
  safetensors_reader(path_ + "/model.safetensors").require_exactly(weights);
}

void checkpoint_reader::require_unchanged() {
  fs::path folder = without_last_slash(path_);
  std::error_code ignored;
  if (folder.extension() == ".saving" && !fs::exists(folder, ignored))
    path_ = folder.replace_extension().string();
  if (read_whole_file(path_ + "/CHECKSUMS") != checksums_)
    fail("%s: another run has just saved here; try again", path_.c_str());
}

void checkpoint_reader::read_weights(const std::vector<named_tensor>& into) const {
  safetensors_reader(path_ + "/model.safetensors").read_exactly(into);
}

void checkpoint_reader::read_state(const std::vector<named_tensor>& into) const {
  safetensors_reader(path_ + "/training_state.safetensors").read_exactly(into);
}

// The masters are some of the state.
void checkpoint_reader::read(weights& into, const velo::stream_ref& stream) const {
  read_weights(into.files());
  if (into.own().empty()) return;
  const safetensors_reader state(path_ + "/training_state.safetensors");
  for (const named_tensor& each : into.master_files(stream)) state.read(each);
}

}  // namespace decoder
