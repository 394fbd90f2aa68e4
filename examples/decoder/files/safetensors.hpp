// The safetensors format: a length (8 bytes, little-endian), a JSON header, then the tensors' bytes
// end to end.
//
// The reader trusts nothing: it refuses headers that are truncated, malformed or larger than the
// file, unknown dtypes, shapes whose product overflows or disagrees with the byte range, and ranges
// that overlap, leave gaps or leave the file. After construction every tensor is known to lie
// inside the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "examples/decoder/files/file.hpp"

struct json_t;

namespace decoder {

enum class element : std::uint8_t { f32, bf16, i32 };

constexpr std::size_t element_bytes(element type) {
  return type == element::bf16 ? 2 : 4;
}

// A tensor in memory under its name in files; compact, row-major.
struct named_tensor {
  std::string name;
  element type;
  std::vector<std::int64_t> shape;
  void* data;
  // Where data is nullptr, these give and take words of 4 bytes [first, first + count), piece by
  // piece.
  std::function<void(std::int64_t first, std::int64_t count, float* to)> give = nullptr;
  std::function<void(std::int64_t first, std::int64_t count, const float* from)> take = nullptr;
  std::int64_t piece_words = 1 << 20;  // of each piece but the last

  std::size_t bytes() const;
};

// Calls piece(first, count) for each piece of a tensor that has no data. The last word of an odd
// number of 16-bit elements has one of them.
template <class F>
void each_piece(const named_tensor& of, F&& piece) {
  const auto count = static_cast<std::int64_t>((of.bytes() + sizeof(float) - 1) / sizeof(float));
  for (std::int64_t first = 0; first < count; first += of.piece_words)
    piece(first, std::min(of.piece_words, count - first));
}

// The bytes of a file that words [first, first + count) are.
inline std::size_t piece_bytes(const named_tensor& of, std::int64_t first, std::int64_t count) {
  return std::min(static_cast<std::size_t>(count) * sizeof(float),
                  of.bytes() - static_cast<std::size_t>(first) * sizeof(float));
}

// "F32", as in the header of a file.
const char* name_of(element type);

// "[2, 3]"
std::string shown(const std::vector<std::int64_t>& shape);

// Writes the tensors in their order, each at a multiple of its element size, with the header padded
// to 64 bytes.
void write_safetensors(durable_file& file, const std::vector<named_tensor>& tensors,
                       const std::map<std::string, std::string>& metadata);

class safetensors_reader {
 public:
  explicit safetensors_reader(const std::string& path);

  struct entry {
    element type;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;  // in the file
  };
  const std::map<std::string, entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  // Fills the tensor; refuses when the file has none of that name, dtype and shape.
  void read(const named_tensor& into) const;

  // Reads elements [first, first + count) of the entry `name`, which must be there, as f32.
  void read(const std::string& name, std::int64_t first, std::int64_t count, float* into) const;

  // Refuses a file that lacks one of these tensors or holds others; their `data` is not used.
  void require_exactly(const std::vector<named_tensor>& all) const;

  // Does the same and fills them.
  void read_exactly(const std::vector<named_tensor>& all) const;

 private:
  const entry& find(const named_tensor& wanted) const;
  void read_metadata(json_t* json);
  void parse(const std::string& header, std::uint64_t data_begin, std::uint64_t file_bytes);
  void require_tiling(std::uint64_t data_begin, std::uint64_t file_bytes) const;

  std::string path_;
  descriptor file_;
  std::map<std::string, entry> entries_;
  std::map<std::string, std::string> metadata_;  // texts alone
};

}  // namespace decoder
