// How blocks are cut: into slices that fit a slot, a slot into sections, a tensor into shares.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/pattern/pattern.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

// The slice of a block that one step carries, in bytes.
struct slice {
  std::int64_t begin, bytes;
};
inline slice slice_of(std::int64_t block_bytes, std::int64_t slice_bytes, std::int64_t step) {
  const std::int64_t begin = std::min(block_bytes, step * slice_bytes);
  return {begin, std::min(slice_bytes, block_bytes - begin)};
}
inline std::int64_t slices_in(std::int64_t block_bytes, std::int64_t slice_bytes) {
  return core::ceil_div(block_bytes, slice_bytes);
}

// A rank's share of `count` elements: all shares but the last ones are as long, a multiple of
// `unit`.
inline block share_of(std::int64_t count, int ranks, int rank, std::int64_t unit) {
  const std::int64_t each = core::round_up(core::ceil_div(count, ranks), unit);
  const std::int64_t begin = std::min(count, rank * each);
  return {begin, std::min(each, count - begin)};
}

// A slot that is cut into sections of whole cache lines, one for each other rank. The first
// `header` bytes of the slot stay free.
class sections {
 public:
  // block: bytes that every rank gives every other one; 0: they differ.
  sections(std::int64_t slot_bytes, int ranks, std::int64_t block, std::int64_t header = 0)
      : first_(core::round_up(header, 64)),
        bytes_((slot_bytes - first_) / std::max(1, ranks - 1) / 64 * 64) {
    if (block > 0) bytes_ = std::min(bytes_, core::round_up(block, 64));
    span_ = block > 0 ? first_ + bytes_ * (ranks - 1) : slot_bytes;
  }

  std::int64_t bytes() const noexcept { return bytes_; }  // of a section
  std::int64_t span() const noexcept { return span_; }    // of the slot that is used
  std::int64_t begin(int owner, int reader) const noexcept {
    return first_ + bytes_ * (reader < owner ? reader : reader - 1);
  }

 private:
  std::int64_t first_, bytes_, span_;
};

}  // namespace velo::comm
