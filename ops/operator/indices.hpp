// Reads integer tensors that hold indices, int32 or int64, and refuses indices out of range.
//
// Values are data, so they are checked when the kernel runs, before it writes anything.
#pragma once

#include <cstdint>

#include "ops/operator/tensor.hpp"

namespace velo::ops {

class index_reader {
 public:
  explicit index_reader(const velo_tensor& t)
      : narrow_(t.dtype == i32 ? data<const std::int32_t>(&t) : nullptr),
        wide_(t.dtype == i32 ? nullptr : data<const std::int64_t>(&t)) {}
  std::int64_t operator[](std::int64_t i) const {
    return narrow_ != nullptr ? narrow_[i] : wide_[i];
  }

 private:
  const std::int32_t* narrow_;
  const std::int64_t* wide_;
};

// Throws VELO_ERR_ARGUMENT naming the first element that is neither in [0, limit) nor
// *also_allowed.
inline void require_indices(const velo_tensor& t, const char* field, std::int64_t limit,
                            const std::int64_t* also_allowed = nullptr) {
  const index_reader at(t);
  const std::int64_t n = numel(t);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t index = at[i];
    if ((index >= 0 && index < limit) || (also_allowed != nullptr && index == *also_allowed))
      continue;
    core::fail(VELO_ERR_ARGUMENT, core::text("args.%s", field),
               core::concat("indices in [0, ", limit, ")"), core::concat(index, " in element ", i));
  }
}

}  // namespace velo::ops
