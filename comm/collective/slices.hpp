// How pieces of elements go through slots: slice by slice, one in each step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/transport/shared/meeting.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

// The slice of a piece that a step carries, in bytes.
struct slice {
  std::int64_t begin, bytes;
};
inline slice slice_of(std::int64_t piece_bytes, std::int64_t slice_bytes, std::int64_t step) {
  const std::int64_t begin = std::min(piece_bytes, step * slice_bytes);
  return {begin, std::min(slice_bytes, piece_bytes - begin)};
}
inline std::int64_t slices_in(std::int64_t piece_bytes, std::int64_t slice_bytes) {
  return (piece_bytes + slice_bytes - 1) / slice_bytes;
}

// A slot cut into sections of whole lines, one for each other rank, behind so many bytes.
class sections {
 public:
  // piece: of every rank's for every other; 0: they differ.
  explicit sections(const meeting& m, std::int64_t piece, std::int64_t behind = 0)
      : sections(m.slot_bytes(), m.size, piece, behind) {}
  sections(std::int64_t slot_bytes, int ranks, std::int64_t piece, std::int64_t behind)
      : first_(core::round_up(behind, 64)),
        bytes_((slot_bytes - first_) / std::max(1, ranks - 1) / 64 * 64) {
    if (piece > 0) bytes_ = std::min(bytes_, core::round_up(piece, 64));
    span_ = piece > 0 ? first_ + bytes_ * (ranks - 1) : slot_bytes;
  }

  std::int64_t bytes() const noexcept { return bytes_; }
  std::int64_t span() const noexcept { return span_; }  // of all
  std::int64_t begin(int owner, int reader) const noexcept {
    return first_ + bytes_ * (reader < owner ? reader : reader - 1);
  }

 private:
  std::int64_t first_, bytes_, span_;
};

}  // namespace velo::comm
