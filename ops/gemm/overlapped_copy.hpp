// Memory that a product copies while it multiplies, a few lines in every call of the micro-kernel.
//
// A separate copy waits for memory, and so do stores around the cache that follow each other. A
// line stored through the cache now and then waits in the store buffer while the sums go on, so
// most of its cost is hidden: a copy of 8 MiB within 29 ms of multiplying costs 0.15 ms, 0.36
// around the cache, 0.54 where each slice is copied before it is multiplied (Zen 4). Each task of a
// product copies its share, spread over its calls.
// Invariant: every byte is copied once, before the product ends. Cost: a load and a store a line.
#pragma once

#include <cassert>
#include <cstdint>

#include "ops/gemm/kernel/micro_kernel.hpp"

namespace velo::ops {

// Pieces of memory that overlap neither each other nor the product's result.
struct overlapped_copy {
  struct piece {
    const char* from;
    char* to;
    std::int64_t bytes;
  };
  static constexpr int most = 2;
  piece pieces[most];
  int count = 0;

  void add(const void* from, void* to, std::int64_t bytes) {
    assert(count < most);
    pieces[count++] = {static_cast<const char*>(from), static_cast<char*>(to), bytes};
  }
};

// One task's share of a copy.
class copy_share {
 public:
  // Share number `share` of `shares`, copied in `calls` calls.
  copy_share(const overlapped_copy& all, std::int64_t share, std::int64_t shares,
             std::int64_t calls);

  // The lines to copy in the next call.
  line_copies next() {
    if (left_.bytes < line && piece_ + 1 < all_.count) next_piece();
    const auto lines = static_cast<int>(left_.bytes / line);
    return take(lines < lines_a_call_ ? lines : lines_a_call_);
  }
  void finish();  // copies what is left

 private:
  static constexpr std::int64_t line = 64;

  line_copies take(int lines) {
    const line_copies some{left_.from, left_.to, lines};
    left_.from += lines * line;
    left_.to += lines * line;
    left_.bytes -= lines * line;
    return some;
  }
  overlapped_copy::piece part_of(int piece) const;
  void next_piece();  // copies the rest of this one, less than a line, first

  const overlapped_copy& all_;
  const std::int64_t share_, shares_;
  int piece_ = 0;
  overlapped_copy::piece left_;  // of the piece
  int lines_a_call_;
};

}  // namespace velo::ops
