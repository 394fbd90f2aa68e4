// A pack that holds a weight: a matrix, or a tensor of three dimensions with one for each expert.
#pragma once

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

class weight_pack {
 public:
  // weight_only: its integers are int8, or int4, two in each uint8.
  weight_pack(session& s, const velo_tensor& weight, bool transposed, bool weight_only = false) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    const bool pairs = weight.dtype.code == VELO_DTYPE_UINT;
    const std::int64_t* last = weight.shape + weight.ndim - 2;
    const std::int64_t rows = last[0], columns = last[1] * (pairs ? 2 : 1);
    desc.dtype = pairs ? ops::i4 : weight.dtype, desc.transpose = transposed;
    desc.weight_only = weight_only;
    desc.k = transposed ? columns : rows, desc.n = transposed ? rows : columns;
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
