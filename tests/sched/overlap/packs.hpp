// Packs of a weight beside it, and packs that do not fit it.
#pragma once

#include "tests/tensors.hpp"

namespace velo::testing {

inline velo_pack make_pack(velo_context context, velo_dtype dtype, std::int64_t k, std::int64_t n,
                           bool transposed) {
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.dtype = dtype, desc.k = k, desc.n = n, desc.transpose = transposed;
  velo_pack made = nullptr;
  REQUIRE(velo_pack_create(context, &desc, &made) == VELO_OK);
  return made;
}
// A pack for a matrix, or for its transpose.
inline velo_pack make_pack(velo_context context, const velo_tensor& weight, bool transposed) {
  return make_pack(context, weight.dtype, weight.shape[transposed ? 1 : 0],
                   weight.shape[transposed ? 0 : 1], transposed);
}

// Packs in place of one of float32, [k, n].
struct wrong_packs {
  wrong_packs(velo_context context, std::int64_t k, std::int64_t n)
      : right(make_pack(context, f32, k, n, false)),
        half(make_pack(context, bf16, k, n, false)),
        turned(make_pack(context, f32, n, k, false)),
        wide(make_pack(context, f32, k, n + 1, false)) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.k = k, desc.n = n, desc.count = 2;
    REQUIRE(velo_pack_create(context, &desc, &experts) == VELO_OK);
    desc.count = 0, desc.dtype = i8, desc.weight_only = 1;
    REQUIRE(velo_pack_create(context, &desc, &integers) == VELO_OK);
  }
  ~wrong_packs() {
    for (const velo_pack one : {right, half, turned, wide, experts, integers})
      velo_pack_destroy(one);
  }
  wrong_packs(const wrong_packs&) = delete;

  const velo_pack right, half, turned, wide;
  velo_pack experts = nullptr, integers = nullptr;
};

}  // namespace velo::testing
