// The reader: every number of the header is checked before it is used.
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/decoder/files/safetensors.hpp"

namespace decoder {
namespace {

constexpr std::uint64_t header_limit = 100'000'000;  // the format's own

void read_at(const std::string& path, int fd, void* into, std::size_t bytes, std::uint64_t at) {
  auto rest = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, rest, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("%s: cannot read: %s", path.c_str(), std::strerror(errno));
    if (got == 0) fail("%s: ends too early", path.c_str());
    rest += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

// One entry of the header; the byte range is still relative to the data.
safetensors_reader::entry parse_entry(const std::string& where, json_t* json) {
  json_t *dtype = json_object_get(json, "dtype"), *shape = json_object_get(json, "shape");
  json_t* offsets = json_object_get(json, "data_offsets");
  if (!json_is_string(dtype) || !json_is_array(shape) || json_array_size(offsets) != 2) {
    fail("%s: must have dtype, shape and two data_offsets", where.c_str());
  }
  safetensors_reader::entry result{};
  const auto is_named = [&](element type) {
    return std::strcmp(json_string_value(dtype), name_of(type)) == 0;
  };
  constexpr element known[] = {element::f32, element::bf16, element::i32};
  const auto* const found = std::find_if(std::begin(known), std::end(known), is_named);
  if (found == std::end(known))
    fail("%s: dtype %s is none of F32, BF16 and I32", where.c_str(), json_string_value(dtype));
  result.type = *found;
  std::uint64_t bytes = element_bytes(result.type);
  size_t index;
  json_t* size;
  json_array_foreach(shape, index, size) {
    if (!json_is_integer(size) || json_integer_value(size) < 0)
      fail("%s: malformed shape", where.c_str());
    result.shape.push_back(json_integer_value(size));
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(json_integer_value(size)),
                               &bytes)) {
      fail("%s: the shape is too large", where.c_str());
    }
  }
  json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  if (!json_is_integer(begin) || !json_is_integer(end) || json_integer_value(begin) < 0 ||
      json_integer_value(end) < json_integer_value(begin)) {
    fail("%s: malformed data_offsets", where.c_str());
  }
  result.begin = static_cast<std::uint64_t>(json_integer_value(begin));
  result.end = static_cast<std::uint64_t>(json_integer_value(end));
  if (result.end - result.begin != bytes)
    fail("%s: data_offsets disagree with dtype and shape", where.c_str());
  return result;
}

}  // namespace

std::string shown(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

safetensors_reader::safetensors_reader(const std::string& path)
    : path_(path), file_(open_to_read(path)) {
  struct stat facts;
  if (::fstat(file_.get(), &facts) != 0)
    fail("%s: cannot examine: %s", path.c_str(), std::strerror(errno));
  const auto file_bytes = static_cast<std::uint64_t>(facts.st_size);
  std::uint64_t length = 0;
  if (file_bytes < sizeof length) fail("%s: too short to be a safetensors file", path.c_str());
  read_at(path, file_.get(), &length, sizeof length, 0);
  if (length > header_limit || length > file_bytes - sizeof length) {
    fail("%s: the header's length %llu exceeds the file", path.c_str(),
         static_cast<unsigned long long>(length));
  }
  std::string header(length, '\0');
  read_at(path, file_.get(), header.data(), length, sizeof length);
  parse(header, sizeof length + length, file_bytes);
}

void safetensors_reader::parse(const std::string& header, std::uint64_t data_begin,
                               std::uint64_t file_bytes) {
  json_error_t error;
  const std::unique_ptr<json_t, void (*)(json_t*)> root(
      json_loadb(header.data(), header.size(), JSON_REJECT_DUPLICATES, &error), json_decref);
  require_json_memory();
  if (!root) fail("%s: malformed header: %s", path_.c_str(), error.text);
  if (!json_is_object(root.get())) fail("%s: the header is not an object", path_.c_str());
  const char* name;
  json_t* json;
  json_object_foreach(root.get(), name, json) {
    if (std::strcmp(name, "__metadata__") == 0) {
      read_metadata(json);
      continue;
    }
    const std::string where = path_ + ": tensor " + name;
    entry parsed = parse_entry(where, json);
    if (parsed.end > file_bytes - data_begin)
      fail("%s: lies beyond the end of the file", where.c_str());
    parsed.begin += data_begin;
    parsed.end += data_begin;
    entries_.emplace(name, std::move(parsed));
  }
  require_tiling(data_begin, file_bytes);
}

void safetensors_reader::read_metadata(json_t* json) {
  const char* key;
  json_t* value;
  json_object_foreach(json, key, value) {
    if (json_is_string(value)) metadata_[key] = json_string_value(value);
  }
}

void safetensors_reader::require_tiling(std::uint64_t data_begin, std::uint64_t file_bytes) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, each] : entries_) ranges.emplace_back(each.begin, each.end);
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t at = data_begin;
  for (const auto& [begin, end] : ranges) {
    if (begin < at) fail("%s: tensors overlap", path_.c_str());
    if (begin > at) fail("%s: bytes between tensors belong to none", path_.c_str());
    at = end;
  }
  if (at != file_bytes) fail("%s: bytes behind the last tensor belong to none", path_.c_str());
}

const safetensors_reader::entry& safetensors_reader::find(const named_tensor& wanted) const {
  const auto found = entries_.find(wanted.name);
  if (found == entries_.end()) fail("%s: has no tensor %s", path_.c_str(), wanted.name.c_str());
  const entry& each = found->second;
  if (each.type != wanted.type || each.shape != wanted.shape) {
    fail("%s: tensor %s is %s %s, expected %s %s", path_.c_str(), wanted.name.c_str(),
         name_of(each.type), shown(each.shape).c_str(), name_of(wanted.type),
         shown(wanted.shape).c_str());
  }
  return each;
}

void safetensors_reader::read(const named_tensor& into) const {
  const std::uint64_t begin = find(into).begin;
  if (into.data != nullptr || !into.take)
    return read_at(path_, file_.get(), into.data, into.bytes(), begin);
  std::vector<float> passing;
  each_piece(into, [&](std::int64_t first, std::int64_t count) {
    passing.assign(static_cast<std::size_t>(count), 0);
    read_at(path_, file_.get(), passing.data(), piece_bytes(into, first, count),
            begin + static_cast<std::uint64_t>(first) * sizeof(float));
    into.take(first, count, passing.data());
  });
}

void safetensors_reader::read(const std::string& name, std::int64_t first, std::int64_t count,
                              float* into) const {
  const entry& from = entries_.at(name);
  const std::size_t size = element_bytes(from.type), n = static_cast<std::size_t>(count);
  auto* const words = reinterpret_cast<std::byte*>(into);
  std::byte* const stored = words + n * (sizeof(float) - size);  // the end of the room for f32
  read_at(path_, file_.get(), stored, n * size,
          from.begin + static_cast<std::uint64_t>(first) * size);
  if (from.type != element::bf16) return;
  for (std::size_t i = 0; i < n; ++i) {  // no write reaches what is not read yet
    std::uint16_t high;
    std::memcpy(&high, stored + i * size, size);
    const std::uint32_t bits = std::uint32_t{high} << 16;
    std::memcpy(words + i * sizeof bits, &bits, sizeof bits);
  }
}

void safetensors_reader::read_exactly(const std::vector<named_tensor>& all) const {
  require_exactly(all);
  for (const named_tensor& each : all) read(each);
}

void safetensors_reader::require_exactly(const std::vector<named_tensor>& all) const {
  for (const named_tensor& each : all) find(each);
  if (entries_.size() == all.size()) return;
  for (const auto& entry : entries_) {
    const std::string& name = entry.first;
    const bool wanted =
        std::any_of(all.begin(), all.end(), [&](const named_tensor& t) { return t.name == name; });
    if (!wanted) fail("%s: tensor %s has no place in this model", path_.c_str(), name.c_str());
  }
}

}  // namespace decoder
