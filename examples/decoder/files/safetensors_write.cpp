// The writer: header first, then each tensor's bytes straight from memory.
#include <jansson.h>

#include <cstdlib>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/decoder/files/safetensors.hpp"

namespace decoder {

const char* name_of(element type) {
  return type == element::f32 ? "F32" : type == element::bf16 ? "BF16" : "I32";
}

std::size_t named_tensor::bytes() const {
  std::size_t total = element_bytes(type);
  for (const std::int64_t size : shape) total *= static_cast<std::size_t>(size);
  return total;
}

void write_safetensors(durable_file& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  json_t* root = json_object();
  json_t* notes = json_object();
  for (const auto& [key, value] : metadata)
    json_object_set_new(notes, key.c_str(), json_string(value.c_str()));
  json_object_set_new(root, "__metadata__", notes);
  std::uint64_t offset = 0;
  for (const named_tensor& each : tensors) {
    json_t* shape = json_array();
    for (const std::int64_t size : each.shape) json_array_append_new(shape, json_integer(size));
    const std::uint64_t end = offset + each.bytes();
    json_object_set_new(
        root, each.name.c_str(),
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", name_of(each.type), "shape", shape,
                  "data_offsets", static_cast<json_int_t>(offset), static_cast<json_int_t>(end)));
    offset = end;
  }
  char* dumped = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  require_json_memory();
  if (!dumped) fail("safetensors: cannot write the header: a name is not UTF-8");
  std::string header = dumped;
  std::free(dumped);
  header.append((64 - (header.size() + 8) % 64) % 64, ' ');
  const std::uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header);
  std::vector<float> passing;
  for (const named_tensor& each : tensors) {
    if (each.data != nullptr || !each.give) {
      file.write(each.data, each.bytes());
      continue;
    }
    each_piece(each, [&](std::int64_t begin, std::int64_t count) {
      passing.resize(static_cast<std::size_t>(count));
      each.give(begin, count, passing.data());
      file.write(passing.data(), piece_bytes(each, begin, count));
    });
  }
}

}  // namespace decoder
