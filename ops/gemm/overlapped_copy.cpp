// How a copy is shared between tasks and calls.
#include "ops/gemm/overlapped_copy.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

void copy(const overlapped_copy::piece& some) {
  if (some.bytes > 0) std::memcpy(some.to, some.from, static_cast<std::size_t>(some.bytes));
}

}  // namespace

copy_share::copy_share(const overlapped_copy& all, std::int64_t share, std::int64_t shares,
                       std::int64_t calls)
    : all_(all), share_(share), shares_(shares), left_(part_of(0)) {
  std::int64_t lines = 0;
  for (int piece = 0; piece < all.count; ++piece) lines += part_of(piece).bytes / line + 1;
  lines_a_call_ = static_cast<int>(core::ceil_div(lines, std::max<std::int64_t>(calls, 1)));
}

// This share's part of a piece, whole lines but in the last share.
overlapped_copy::piece copy_share::part_of(int piece) const {
  if (piece >= all_.count) return {nullptr, nullptr, 0};
  const overlapped_copy::piece& whole = all_.pieces[piece];
  const auto begin_of = [&](std::int64_t share) {
    return share == shares_ ? whole.bytes : whole.bytes / line * share / shares_ * line;
  };
  const std::int64_t first = begin_of(share_);
  return {whole.from + first, whole.to + first, begin_of(share_ + 1) - first};
}

void copy_share::next_piece() {
  copy(left_);
  left_ = part_of(++piece_);
}

void copy_share::finish() {
  while (piece_ < all_.count) next_piece();
}

}  // namespace velo::ops
