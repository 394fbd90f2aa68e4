// The line of JSON, and the elements after it.
#include "tools/velo/commands/capsule_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/velo/call.hpp"
#include "tools/velo/commands.hpp"

namespace command {

// The file, unpacked piece by piece.
struct capsule_file::unpacked {
  explicit unpacked(const std::string& file) : in(gzopen(file.c_str(), "rb")) {}
  ~unpacked() {
    if (in != nullptr) gzclose(in);
  }
  unpacked(const unpacked&) = delete;

  // The reason why a read gave less than it should.
  std::string reason() const {
    int code = Z_OK;
    const char* message = gzerror(in, &code);
    if (code == Z_ERRNO) return std::strerror(errno);
    if (code == Z_OK || code == Z_BUF_ERROR) return "it ends before its end";
    return std::string("it is damaged: ") + message;
  }
  gzFile in;
};

namespace {

constexpr std::size_t longest_line = 1 << 24;
constexpr std::size_t piece = 1 << 20;
// Zeros that stand for a tensor without elements: most bytes of it.
constexpr std::int64_t most_zeros = std::int64_t{4} << 30;
constexpr std::int64_t most_rank = 8;

bool read_whole(const json_t* node, std::int64_t& number) {
  number = json_integer_value(node);
  return json_is_integer(node);
}

bool read_sizes(const json_t* node, std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < json_array_size(node); ++i) {
    sizes.push_back(0);
    if (!read_whole(json_array_get(node, i), sizes.back()) || sizes.back() < 0) return false;
  }
  return json_is_array(node);
}

// Bytes from the first to past the last element; false if they overflow.
bool bytes_reached(velo_dtype type, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides, std::int64_t& bytes) {
  std::int64_t last = 0, compact = 1;
  bytes = 0;
  for (const std::int64_t size : sizes)
    if (size == 0) return true;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    std::int64_t span = 0;
    const std::int64_t stride = strides.empty() ? compact : strides[i];
    if (__builtin_mul_overflow(sizes[i] - 1, stride, &span) ||
        __builtin_add_overflow(last, span, &last) ||
        __builtin_mul_overflow(compact, strides.empty() ? sizes[i] : 1, &compact))
      return false;
  }
  return !__builtin_add_overflow(last, 1, &last) &&
         !__builtin_mul_overflow(last, std::int64_t{type.bits}, &bytes) &&
         !__builtin_add_overflow(bytes, 7, &bytes) && (bytes /= 8) >= 0;
}

std::uint32_t checksum(const char* bytes, std::size_t count) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(bytes), count));
}

}  // namespace

void capsule_file::refuse(const std::string& reason) const {
  throw input_error(file_ + ": " + reason);
}

capsule_file::capsule_file(const std::string& file) : file_(file) {
  unpacked in(file);
  if (in.in == nullptr) refuse(std::string("cannot be read: ") + std::strerror(errno));
  in_ = &in;
  std::string line;
  for (int c = gzgetc(in.in); c != '\n'; c = gzgetc(in.in)) {
    if (gzdirect(in.in) != 0) refuse("is no capsule: no gzip file");
    if (c < 0) refuse("is no capsule: " + in.reason());
    if (line.size() == longest_line) refuse("is no capsule: its first line has no end");
    line += static_cast<char>(c);
  }
  json_error_t error;
  const json all(json_loadb(line.data(), line.size(), JSON_REJECT_DUPLICATES, &error));
  if (all == nullptr) refuse(std::string("is no capsule: ") + error.text);
  std::int64_t format = 0;
  if (!read_whole(member(all.get(), "capsule"), format)) refuse("is no capsule");
  if (format != 1) refuse("has format " + std::to_string(format) + "; this velo reads format 1");
  op = text(all.get(), "op");
  kernel = text(all.get(), "kernel");
  if (!json_is_string(member(all.get(), "kernel"))) refuse("names no kernel");
  isa = text(all.get(), "isa");
  release = text(all.get(), "release");
  const json_t* fields = member(all.get(), "fields");
  for (std::size_t i = 0; i < json_array_size(fields); ++i) read_field(json_array_get(fields, i));
  if (json_array_size(member(all.get(), "outputs")) == 0) refuse("has no outputs");
  read_outputs(member(all.get(), "outputs"));
  char more = 0;
  if (gzread(in.in, &more, 1) != 0) refuse("has bytes after its last tensor, or is damaged");
  if (gzclose(std::exchange(in.in, nullptr)) != Z_OK)
    refuse("is not whole: it ends before its end");
  in_ = nullptr;
}

void capsule_file::read_field(const json_t* field) {
  texts_.push_back(text(field, "name"));
  const std::string& name = texts_.back();
  velo_value value{VELO_VALUE_NONE, 0, {0}};
  if (const json_t* node = member(field, "integer"); json_is_integer(node)) {
    value.kind = VELO_VALUE_INT;
    value.as.i = json_integer_value(node);
  } else if (const json_t* real = member(field, "real"); json_is_number(real)) {
    value.kind = VELO_VALUE_FLOAT;
    value.as.f = json_number_value(real);
  } else if (member(field, "text") != nullptr) {
    texts_.push_back(text(field, "text"));
    value.kind = VELO_VALUE_STRING;
    value.as.s = texts_.back().c_str();
  } else if (const json_t* list = member(field, "ints"); list != nullptr) {
    numbers_.emplace_back();
    for (std::size_t i = 0; i < json_array_size(list); ++i)
      numbers_.back().push_back(json_integer_value(json_array_get(list, i)));
    ints_.push_back({numbers_.back().data(), static_cast<std::int64_t>(numbers_.back().size())});
    value.kind = VELO_VALUE_INTS;
    value.as.ints = &ints_.back();
  } else if (const json_t* tensors = member(field, "tensors"); tensors != nullptr) {
    views_.emplace_back();
    for (std::size_t k = 0; k < json_array_size(tensors); ++k) {
      read_tensor(json_array_get(tensors, k), name + "[" + std::to_string(k) + "]");
      views_.back().push_back(tensors_.back().view);
    }
    tensor_lists_.push_back(
        {views_.back().data(), static_cast<std::int64_t>(views_.back().size())});
    value.kind = VELO_VALUE_TENSORS;
    value.as.tensors = &tensor_lists_.back();
  } else if (member(field, "dtype") != nullptr) {
    read_tensor(field, name);
    value.kind = VELO_VALUE_TENSOR;
    value.as.tensor = &tensors_.back().view;
  } else if (member(field, "handle") != nullptr) {
    refuse("the call was given " + text(field, "handle") + " for " + name +
           ", which a capsule does not hold");
  } else {
    refuse("field \"" + name + "\" has no value");
  }
  values_.push_back({name.c_str(), value});
}

void capsule_file::read_tensor(const json_t* node, const std::string& name) {
  tensors_.emplace_back();
  tensor& t = tensors_.back();
  t.name = name;
  if (!dtype_called(text(node, "dtype"), t.view.dtype))
    refuse(name + " has the unknown dtype \"" + text(node, "dtype") + "\"");
  const json_t* strides = member(node, "strides");
  if (!read_sizes(member(node, "shape"), t.sizes) || t.sizes.size() > most_rank ||
      (strides != nullptr &&
       (!read_sizes(strides, t.strides) || t.strides.size() != t.sizes.size())))
    refuse(name + " has invalid sizes or strides");
  t.elements = read_memory(node, t);
  t.view.data = t.elements->first;
  t.view.device = {VELO_DEVICE_CPU, 0};
  t.view.ndim = static_cast<std::int32_t>(t.sizes.size());
  t.view.shape = t.sizes.data();
  t.view.strides = t.strides.empty() ? nullptr : t.strides.data();
}

const capsule_file::memory* capsule_file::read_memory(const json_t* node, const tensor& of) {
  std::int64_t bytes = 0, listed = 0, modulo = 0, crc = 0;
  if (!bytes_reached(of.view.dtype, of.sizes, of.strides, bytes))
    refuse(of.name + " has sizes whose bytes overflow");
  if (member(node, "shares") != nullptr) {
    const memory* shared = tensor_called(text(node, "shares")).elements;
    if (shared == nullptr || shared->count < static_cast<std::size_t>(bytes))
      refuse(of.name + " shares memory that does not hold it");
    return shared;
  }
  if (!read_whole(member(node, "modulo64"), modulo) || modulo < 0 || modulo >= 64)
    refuse(of.name + " has no \"modulo64\" from 0 to 63");
  if (!read_whole(member(node, "crc32"), crc)) refuse(of.name + " has no \"crc32\"");
  if (!read_whole(member(node, "bytes"), listed) || listed != bytes)
    refuse(of.name + " has " + std::to_string(listed) + " bytes, but its sizes " +
           std::to_string(bytes));
  const bool with_data = json_is_true(member(node, "data"));
  if (!with_data && bytes > most_zeros)
    refuse(of.name + " has no elements, and " + std::to_string(bytes) +
           " bytes of zeros are more than " + std::to_string(most_zeros));
  memories_.emplace_back();
  memory& m = memories_.back();
  m.count = static_cast<std::size_t>(bytes);
  if (!with_data) zeroed.push_back(of.name);
  // Grows with the bytes that really come, whatever the line claims.
  for (std::size_t done = 0; done < m.count || m.bytes.empty();) {
    const std::size_t next = std::min(piece, m.count - done);
    m.bytes.resize(128 + done + next);
    if (with_data && gzread(in_->in, m.bytes.data() + 128 + done, static_cast<unsigned>(next)) !=
                         static_cast<int>(next))
      refuse(of.name + " is not whole: " + in_->reason());
    done += next;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(m.bytes.data());
  m.first = m.bytes.data() + (64 - start % 64) % 64 + modulo;
  std::memmove(m.first, m.bytes.data() + 128, m.count);
  if (with_data && checksum(m.first, m.count) != static_cast<std::uint32_t>(crc))
    refuse(of.name + " has other bytes than its checksum says");
  return &m;
}

const capsule_file::tensor& capsule_file::tensor_called(const std::string& name) const {
  for (const tensor& t : tensors_)
    if (t.name == name) return t;
  refuse("no tensor is called \"" + name + "\"");
}

void capsule_file::read_outputs(const json_t* list) {
  for (std::size_t i = 0; i < json_array_size(list); ++i) {
    const json_t* one = json_array_get(list, i);
    std::string name = text(one, "name");
    if (const json_t* index = member(one, "index"); index != nullptr)
      name += "[" + std::to_string(json_integer_value(index)) + "]";
    tensor_called(name);
    outputs_.push_back(
        {name, static_cast<std::uint32_t>(json_integer_value(member(one, "crc32"))), 0});
  }
}

std::vector<capsule_file::output> capsule_file::outputs() const {
  std::vector<output> all = outputs_;
  for (output& one : all) {
    const memory& m = *tensor_called(one.name).elements;
    one.now = checksum(m.first, m.count);
  }
  return all;
}

}  // namespace command
