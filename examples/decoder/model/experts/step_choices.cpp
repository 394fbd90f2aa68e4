// A recording's files: the metadata that says which run they belong to, reading and writing.
#include "examples/decoder/model/experts/step_choices.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/replaced_file.hpp"

namespace decoder {
namespace {

std::string hexadecimal(std::uint32_t of) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(of));
  return text;
}

// The model and the data of a recording, as the metadata of its files.
std::map<std::string, std::string> origin_of(const settings& values, std::uint32_t data_crc) {
  const model_settings& m = values.model;
  const data_settings& d = values.data;
  const auto number = [](const char* name, std::int64_t value) {
    return std::string(name) + " " + std::to_string(value);
  };
  return {{"model", number("layers", m.layers) + ", " + number("experts", m.experts) + ", " +
                        number("experts_per_token", m.experts_per_token)},
          {"data", number("sequence", d.sequence) + ", " + number("batch", d.batch) + ", " +
                       number("accumulation", d.accumulation) + ", " +
                       number("seed", values.run.seed) + ", crc32 " + hexadecimal(data_crc)}};
}

}  // namespace

step_choices::step_choices(const member& rank, const settings& values, std::uint32_t data_crc)
    : rank_(rank),
      recorded_(values.run.routing_record),
      replayed_(values.run.routing_replay),
      origin_(origin_of(values, data_crc)),
      tokens_(values.data.step_tokens()),
      choices_(values.model.experts_per_token),
      experts_(values.model.experts),
      layers_(static_cast<std::size_t>(values.model.layers)) {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (values.model.has_experts(i))
      layers_[i].resize(static_cast<std::size_t>(tokens_ * choices_));
}

std::string step_choices::file_of(const std::string& directory, std::int64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "/step-%06lld.safetensors", static_cast<long long>(step));
  return directory + name;
}

// Other ranks' tokens are zero, so that a sum over the ranks has all. The sum is one of floats: a
// choice as the bits of a float is subnormal, and its sum with zeros is exact.
std::vector<named_tensor> step_choices::tensors() {
  std::vector<named_tensor> all;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layers_[layer].empty()) continue;
    std::int32_t* const own = layers_[layer].data();
    named_tensor one{"layer." + std::to_string(layer), element::i32, {tokens_, choices_}, nullptr};
    one.give = [this, own](std::int64_t first, std::int64_t count, float* words) {
      std::memcpy(words, own + first, static_cast<std::size_t>(count) * sizeof *own);
      rank_.collect(words, count);
    };
    one.take = [own](std::int64_t first, std::int64_t count, const float* words) {
      std::memcpy(own + first, words, static_cast<std::size_t>(count) * sizeof *own);
    };
    all.push_back(std::move(one));
  }
  return all;
}

std::map<std::string, std::string> step_choices::origin_of_step() const {
  std::map<std::string, std::string> all = origin_;
  all["step"] = std::to_string(step_);
  return all;
}

void step_choices::begin(std::int64_t step) {
  step_ = step;
  for (auto& each : layers_) std::fill(each.begin(), each.end(), 0);
  if (!replays()) return;
  const safetensors_reader from(file_of(replayed_, step));
  for (const auto& [key, wanted] : origin_of_step()) {
    const auto found = from.metadata().find(key);
    const std::string got = found == from.metadata().end() ? "nothing" : found->second;
    if (got != wanted)
      fail("%s: its choices are those of %s: %s; this run has %s", from.path().c_str(), key.c_str(),
           got.c_str(), wanted.c_str());
  }
  from.read_exactly(tensors());
  require_choices(from.path());
}

void step_choices::require_choices(const std::string& path) const {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (std::size_t i = 0; i < layers_[layer].size(); ++i) {
      const std::int32_t expert = layers_[layer][i];
      if (expert < 0 || expert >= experts_)
        fail("%s: layer.%zu: token %zu chooses expert %d, expected 0 to %lld", path.c_str(), layer,
             i / static_cast<std::size_t>(choices_), static_cast<int>(expert),
             static_cast<long long>(experts_ - 1));
    }
}

void step_choices::end() {
  if (recorded_.empty()) return;
  const std::vector<named_tensor> all = tensors();
  if (rank_.leads()) {
    replace_file(file_of(recorded_, step_),
                 [&](durable_file& file) { write_safetensors(file, all, origin_of_step()); });
    return;
  }
  std::vector<float> passing;
  for (const named_tensor& each : all)
    each_piece(each, [&](std::int64_t first, std::int64_t count) {
      passing.resize(static_cast<std::size_t>(count));
      each.give(first, count, passing.data());
    });
}

}  // namespace decoder
