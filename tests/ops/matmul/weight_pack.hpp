// A pack that holds a weight: a matrix, or a tensor of three dimensions with one for each expert.
#pragma once

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

class weight_pack {
 public:
  weight_pack(session& s, const velo_tensor& weight, bool transposed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    const std::int64_t* last = weight.shape + weight.ndim - 2;
    desc.dtype = weight.dtype, desc.transpose = transposed;
    desc.k = last[transposed ? 1 : 0], desc.n = last[transposed ? 0 : 1];
    desc.count = weight.ndim == 3 ? weight.shape[0] : 0;
    VELO_RUN(velo_pack_create(s.context(), &desc, &pack_));
    VELO_RUN(velo_pack_update(s.stream(), pack_, &weight));
  }
  ~weight_pack() { velo_pack_destroy(pack_); }
  weight_pack(const weight_pack&) = delete;
  weight_pack& operator=(const weight_pack&) = delete;

  operator velo_pack() const { return pack_; }

 private:
  velo_pack pack_ = nullptr;
};

}  // namespace velo::testing
