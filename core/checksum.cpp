// Packing uses zlib's fastest level: it is for data that is used late, and must not delay data that
// is used soon. zlib also computes the checksum of few bytes, and of any bytes if the processor
// lacks carry-less multiplication: its table look-ups reach 4 GB/s, less than a disk. Otherwise 64
// bytes at a time are folded into the next 64 (13 GB/s).
#define ZLIB_CONST  // zlib does not write its inputs
#include "core/checksum.hpp"

#include <immintrin.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "core/host/cpuid.hpp"

namespace velo::core {
namespace {

constexpr std::size_t word = 4;

const Bytef* as_bytes(const char* at) {
  return reinterpret_cast<const Bytef*>(at);
}

// Writes byte 0 of every word, then byte 1 of every word, and so on. Bytes after the last whole
// word stay.
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
  z.next_in = as_bytes(from);
  z.avail_in = static_cast<uInt>(size);
  z.next_out = reinterpret_cast<Bytef*>(to);
  z.avail_out = static_cast<uInt>(room);
  return z;
}

__attribute__((target("pclmul"))) __m128i fold(__m128i from, __m128i by, __m128i into) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(from, by, 0x00), into),
                       _mm_clmulepi64_si128(from, by, 0x11));
}

// A message has the same remainder as a shorter one, in which its first 16 bytes are multiplied by
// x^n modulo the polynomial and added n bits later (Gopal et al., Fast CRC Computation Using
// PCLMULQDQ, Intel 2009). The constants are x^n for n = 512 +- 32 and 128 +- 32, with reversed
// bits. zlib processes the last 16 bytes and the tail.
__attribute__((target("pclmul"))) std::uint32_t folded(const char* bytes, std::size_t count) {
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const auto at = [&](std::size_t place) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + place));
  };
  __m128i a = _mm_xor_si128(at(0), _mm_cvtsi32_si128(-1)), b = at(16), c = at(32), d = at(48);
  std::size_t done = 64;
  for (; done + 64 <= count; done += 64) {
    a = fold(a, by_64, at(done));
    b = fold(b, by_64, at(done + 16));
    c = fold(c, by_64, at(done + 32));
    d = fold(d, by_64, at(done + 48));
  }
  alignas(16) char rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest),
                  fold(fold(fold(a, by_16, b), by_16, c), by_16, d));
  const uLong so_far = crc32_z(0xffffffff, as_bytes(rest), sizeof rest);
  return static_cast<std::uint32_t>(crc32_z(so_far, as_bytes(bytes + done), count - done));
}

// Detected once, since CPUID takes 50 us in a virtual machine. An atomic is used because a child of
// a fork may wait for ever for a static initialized on first use.
bool multiplies_without_carries() noexcept {
  static std::atomic<int> known{-1};
  int does = known.load(std::memory_order_relaxed);
  if (does < 0) {
    does = bit(cpuid(1).c, 1) ? 1 : 0;
    known.store(does, std::memory_order_relaxed);
  }
  return does == 1;
}

}  // namespace

std::uint32_t checksum(const char* bytes, std::size_t count) noexcept {
  if (count >= 64 && multiplies_without_carries()) return folded(bytes, count);
  return checksum_by_tables(bytes, count);
}

std::uint32_t checksum_by_tables(const char* bytes, std::size_t count) noexcept {
  return static_cast<std::uint32_t>(crc32_z(0, as_bytes(bytes), count));
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

std::string unzip(const unsigned char* gzip, std::size_t size) {
  std::uint32_t count = 0;  // the file's last word, little-endian
  for (std::size_t i = 0; i < 4; ++i) count |= std::uint32_t{gzip[size - 4 + i]} << (8 * i);
  std::string text(count, '\0');
  z_stream z = stream_over(reinterpret_cast<const char*>(gzip), size, text.data(), count);
  if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();  // 16: a gzip file
  const int end = inflate(&z, Z_FINISH);
  inflateEnd(&z);
  if (end != Z_STREAM_END) throw std::bad_alloc();
  return text;
}

}  // namespace velo::core
