// Packs of a weight beside it, and packs that do not fit it.
#pragma once

#include "tests/sched/overlap/matrices.hpp"
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

// Whether kernels of the context's instruction set pass over a pack [k, n] for its form.
inline bool has_another_form(velo_context context, velo_pack packed, velo_dtype dtype,
                             std::int64_t k, std::int64_t n) {
  const matrix x(dtype, {4, k}, 1), y(dtype, {4, n});
  const velo_tensor from = x.view(), to = y.view();
  velo_named_value values[3] = {};
  values[0].name = "a", values[0].value.kind = VELO_VALUE_TENSOR, values[0].value.as.tensor = &from;
  values[1].name = "c", values[1].value.kind = VELO_VALUE_TENSOR, values[1].value.as.tensor = &to;
  values[2].name = "packed", values[2].value.kind = VELO_VALUE_HANDLE;
  values[2].value.as.p = packed;
  char text[2048] = "";
  REQUIRE(velo_op_explain(context, "matmul", values, 3, text, sizeof text, nullptr) == VELO_OK);
  return std::string(text).find("another instruction set") != std::string::npos;
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
