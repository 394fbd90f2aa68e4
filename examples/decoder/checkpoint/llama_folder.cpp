// Opens a single file, or the files of an index, and reads ranges of elements.
#include "examples/decoder/checkpoint/llama_folder.hpp"

#include <jansson.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

namespace fs = std::filesystem;

constexpr const char* single = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";
constexpr const char *embedding = "model.embed_tokens.weight", *head = "lm_head.weight";

using json_owner = std::unique_ptr<json_t, void (*)(json_t*)>;

bool has(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(folder + "/" + name, ignored);
}

// A file of the folder itself: an index must not lead elsewhere.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), std::string::npos, end) == 0;
}

}  // namespace

bool is_llama_folder(const std::string& path) {
  return has(path, "config.json") && !has(path, "CHECKSUMS") && !has(path, "trainer.json") &&
         !has(path, "training_state.safetensors");
}

llama_folder::llama_folder(const std::string& path) : path_(path) {
  config_ = read_whole_file(config_name());
  if (has(path_, single)) {  // as transformers prefers
    listed_in_ = path_ + "/" + single;
    files_.emplace_back(listed_in_);
    for (const auto& each : files_[0].entries()) file_of_[each.first] = 0;
  } else if (has(path_, index_name)) {
    read_index(path_ + "/" + index_name);
  } else {
    fail("%s: no weights: neither %s nor %s is there", path_.c_str(), single, index_name);
  }
}

void llama_folder::read_index(const std::string& name) {
  listed_in_ = name;
  const std::string text = read_whole_file(name);
  json_error_t error;
  const json_owner root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error),
                        json_decref);
  if (!root) fail("%s:%d:%d: %s", name.c_str(), error.line, error.column, error.text);
  json_t* files = json_object_get(root.get(), "weight_map");
  if (!json_is_object(files)) fail("%s: weight_map must be an object", name.c_str());
  std::map<std::string, std::size_t> opened;
  const char* tensor;
  json_t* value;
  json_object_foreach(files, tensor, value) {
    const std::string file = json_is_string(value) ? json_string_value(value) : "";
    if (!is_plain_name(file))
      fail("%s: weight_map.%s must be the name of a file in the same folder", name.c_str(), tensor);
    const auto [at, is_new] = opened.emplace(file, files_.size());
    if (is_new) files_.emplace_back(path_ + "/" + file);
    add(tensor, at->second);
  }
  for (const auto& [file, number] : opened)
    for (const auto& [held, entry] : files_[number].entries()) {
      const auto listed = file_of_.find(held);
      if (listed == file_of_.end() || listed->second != number)
        fail("%s: weight_map does not name %s as the file of tensor %s, which it has", name.c_str(),
             file.c_str(), held.c_str());
    }
}

void llama_folder::add(const std::string& tensor, std::size_t file) {
  if (files_[file].entries().count(tensor) == 0)
    fail("%s: has no tensor %s, which %s expects there", files_[file].path().c_str(),
         tensor.c_str(), listed_in_.c_str());
  file_of_[tensor] = file;
}

const safetensors_reader& llama_folder::file_of(const std::string& tensor) const {
  const auto found = file_of_.find(tensor);
  if (found == file_of_.end()) fail("%s: has no tensor %s", listed_in_.c_str(), tensor.c_str());
  return files_[found->second];
}

const safetensors_reader::entry& llama_folder::entry_of(const std::string& tensor) const {
  return file_of(tensor).entries().at(tensor);
}

void llama_folder::require_model(const model_settings& model) const {
  std::map<std::string, std::vector<std::int64_t>> wanted;
  const weight_layout layout(model);
  for (const weight_slice& each : layout.slices) wanted[each.name] = each.shape;
  for (const score_bias& each : layout.biases) wanted[each.name] = {model.experts};
  if (model.tied && file_of_.count(head) > 0) wanted[head] = {model.vocab, model.hidden};
  for (const auto& [name, shape] : wanted) {
    if (entry_of(name).type == element::i32)
      fail("%s: tensor %s is I32, expected F32 or BF16", file_of(name).path().c_str(),
           name.c_str());
    const std::vector<std::int64_t>& found = entry_of(name).shape;
    if (found != shape)
      fail("%s: tensor %s is %s, but config.json makes it %s", file_of(name).path().c_str(),
           name.c_str(), shown(found).c_str(), shown(shape).c_str());
  }
  for (const auto& each : file_of_) {
    const std::string& name = each.first;
    // Frequencies of the rotary embedding, which old releases of transformers saved, too.
    if (wanted.count(name) > 0 || ends_with(name, ".rotary_emb.inv_freq")) continue;
    fail("%s: tensor %s has no place in this model", file_of(name).path().c_str(), name.c_str());
  }
  if (model.tied && file_of_.count(head) > 0) require_same(head, embedding);
}

// transformers keeps a head of its own whose weights differ from the embedding's.
void llama_folder::require_same(const std::string& one, const std::string& other) const {
  constexpr std::int64_t most = 1 << 20;
  std::int64_t count = 1;
  for (const std::int64_t size : entry_of(one).shape) count *= size;
  std::vector<float> mine(most), theirs(most);
  for (std::int64_t first = 0; first < count; first += most) {
    const std::int64_t now = std::min(most, count - first);
    file_of(one).read(one, first, now, mine.data());
    file_of(other).read(other, first, now, theirs.data());
    if (std::memcmp(mine.data(), theirs.data(), static_cast<std::size_t>(now) * sizeof(float)) != 0)
      fail("%s: tensor %s differs from %s, but config.json has tie_word_embeddings true",
           file_of(one).path().c_str(), one.c_str(), other.c_str());
  }
}

void llama_folder::read(weights& into, const velo::stream_ref& stream) const {
  into.fill(stream, [&](const weight_slice& of, std::int64_t first, std::int64_t count, float* to) {
    file_of(of.name).read(of.name, first, count, to);
  });
  into.fill_biases([&](const score_bias& of, float* to) {
    file_of(of.name).read(of.name, 0, into.score_bias_of(of.layer).numel(), to);
  });
}

}  // namespace decoder
