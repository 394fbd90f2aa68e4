// A tensor as a collective sees it: consecutive elements.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/operation/operation.hpp"
#include "core/tensor/overlap.hpp"
#include "velo/types.h"

namespace velo::core {
class context;
}

namespace velo::comm {

struct buffer {
  char* data;
  std::int64_t count;  // elements
  velo_dtype dtype;

  std::int64_t size() const noexcept { return dtype.bits / 8; }  // of an element
  std::int64_t bytes() const noexcept { return count * size(); }
  const char* at(std::int64_t element) const noexcept { return data + element * size(); }
};

// Throws NULL, RANK, SHAPE, DTYPE, LAYOUT (not compact, misaligned), DEVICE.
buffer buffer_of(const core::context& owner, const velo_tensor* given, const char* argument);

// Throws OVERLAP when they share bytes.
inline void require_apart(const buffer& out, const char* name, const buffer& in,
                          const char* other) {
  if (out.count != 0 && in.count != 0 && out.data < in.data + in.bytes() &&
      in.data < out.data + out.bytes())
    core::refuse_overlap(name, other, true);
}

// The calling rank of a group, in its context.
struct caller {
  const core::context& owner;
  int rank, size;
};

// The blocks of a tensor. counts: one for each rank. offsets: where each block begins; nullptr:
// each follows the one before it. apart: no two blocks may share elements. Throws NULL, ARGUMENT.
struct block_names {
  const char* counts;
  const char* offsets;
};
blocks blocks_of(const caller& by, const std::int64_t* counts, const std::int64_t* offsets,
                 const block_names& names, const buffer& of, bool apart);

// Throws SHAPE unless `of` has `count` elements.
[[noreturn]] void refuse_count(const buffer& of, const char* argument, std::int64_t count,
                               const char* why);
inline void require_count(const buffer& of, const char* argument, std::int64_t count,
                          const char* why) {
  if (of.count != count) refuse_count(of, argument, count, why);
}

}  // namespace velo::comm
