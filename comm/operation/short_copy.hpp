// Copies data that is usually a few bytes: the payload of a short collective.
//
// Up to 16 bytes are copied as two words, which may overlap. That takes 1 ns, less than a call of
// memcpy; longer data is copied by memcpy.
#pragma once

#include <cstdint>
#include <cstring>

namespace velo::comm {

template <class Word>
inline void copy_both_ends(void* to, const void* from, std::int64_t bytes) noexcept {
  const std::int64_t rest = bytes - static_cast<std::int64_t>(sizeof(Word));
  Word first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, static_cast<const char*>(from) + rest, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(static_cast<char*>(to) + rest, &last, sizeof last);
}

// from and to: disjoint; nullptr if bytes is 0.
inline void copy_short(void* to, const void* from, std::int64_t bytes) noexcept {
  if (bytes > 16) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else if (bytes >= 8) {
    copy_both_ends<std::uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_both_ends<std::uint32_t>(to, from, bytes);
  } else if (bytes >= 2) {
    copy_both_ends<std::uint16_t>(to, from, bytes);
  } else if (bytes == 1) {
    *static_cast<char*>(to) = *static_cast<const char*>(from);
  }
}

}  // namespace velo::comm
