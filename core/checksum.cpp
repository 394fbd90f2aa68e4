// zlib at its fastest level: packing is for what is used late, and must not hold up what is used
// soon.
#define ZLIB_CONST  // it does not write its inputs
#include "core/checksum.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace velo::core {
namespace {

constexpr std::size_t word = 4;

const Bytef* bytes_of(const char* at) {
  return reinterpret_cast<const Bytef*>(at);
}

// Byte 0 of every word, then byte 1 of every word ..; bytes behind the last whole word stay.
void sort_bytes(const char* from, std::size_t count, char* to) noexcept {
  const std::size_t words = count / word;
  for (std::size_t place = 0; place < word; ++place)
    for (std::size_t i = 0; i < words; ++i) to[place * words + i] = from[i * word + place];
  std::copy(from + words * word, from + count, to + words * word);
}

void unsort_bytes(const char* from, std::size_t count, char* to) noexcept {
  const std::size_t words = count / word;
  for (std::size_t place = 0; place < word; ++place)
    for (std::size_t i = 0; i < words; ++i) to[i * word + place] = from[place * words + i];
  std::copy(from + words * word, from + count, to + words * word);
}

z_stream stream_over(const char* from, std::size_t size, char* to, std::size_t room) {
  z_stream z{};
  z.next_in = bytes_of(from);
  z.avail_in = static_cast<uInt>(size);
  z.next_out = reinterpret_cast<Bytef*>(to);
  z.avail_out = static_cast<uInt>(room);
  return z;
}

}  // namespace

std::uint32_t checksum(const char* bytes, std::size_t count) noexcept {
  return static_cast<std::uint32_t>(crc32_z(0, bytes_of(bytes), count));
}

std::size_t pack(const char* bytes, std::size_t count, char* scratch, char* packed,
                 std::size_t capacity) {
  sort_bytes(bytes, count, scratch);
  z_stream z = stream_over(scratch, count, packed, capacity);
  if (deflateInit(&z, Z_BEST_SPEED) != Z_OK) throw std::bad_alloc();
  const bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
  const std::size_t size = z.total_out;
  deflateEnd(&z);
  return whole ? size : 0;
}

bool unpack(const char* packed, std::size_t size, char* scratch, char* bytes, std::size_t count) {
  z_stream z = stream_over(packed, size, scratch, count);
  if (inflateInit(&z) != Z_OK) throw std::bad_alloc();
  const int end = inflate(&z, Z_FINISH);
  const bool whole = end == Z_STREAM_END && z.total_out == count;
  inflateEnd(&z);
  if (end == Z_MEM_ERROR) throw std::bad_alloc();
  if (whole) unsort_bytes(scratch, count, bytes);
  return whole;
}

}  // namespace velo::core
