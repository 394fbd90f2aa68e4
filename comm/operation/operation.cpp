// Combining elements, and the kernel for their dtypes.
#include "comm/operation/operation.hpp"

#include <algorithm>
#include <cstring>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/tensor/check.hpp"

namespace velo::comm {
namespace {

// Returns -1 if no kernel reduces this dtype.
int element_of(std::uint8_t code, std::uint8_t bits) {
  struct known {
    std::uint8_t code, bits;
    element as;
  };
  constexpr known table[] = {
      {VELO_DTYPE_FLOAT, 32, element::f32}, {VELO_DTYPE_FLOAT, 64, element::f64},
      {VELO_DTYPE_FLOAT, 16, element::f16}, {VELO_DTYPE_BFLOAT, 16, element::bf16},
      {VELO_DTYPE_INT, 8, element::i8},     {VELO_DTYPE_INT, 32, element::i32},
      {VELO_DTYPE_INT, 64, element::i64},   {VELO_DTYPE_UINT, 8, element::u8}};
  for (const known& one : table)
    if (one.code == code && one.bits == bits) return static_cast<int>(one.as);
  return -1;
}

constexpr std::uint32_t reduced_dtypes = core::dtype_f32 | core::dtype_f64 | core::dtype_f16 |
                                         core::dtype_bf16 | core::dtype_i8 | core::dtype_i32 |
                                         core::dtype_i64 | core::dtype_u8;

bool is_float(int of) {
  return of >= 0 && of <= static_cast<int>(element::bf16);
}

[[noreturn]] void refuse_scale(double scale) {
  core::fail(VELO_ERR_ARGUMENT, "reduction.scale", "1 where no floating-point numbers are added",
             core::text("%g", scale));
}

// A custom reduction takes elements of any dtype; its output has the same dtype.
void require_custom(const terms& what) {
  if (what.in_code != what.out_code || what.in_bits != what.out_bits)
    core::refuse_dtype(what.out_dtype(), core::dtype_name(what.in_dtype()), "out");
  if (what.scale != 1) refuse_scale(what.scale);
}

}  // namespace

// A custom function combines in a separate buffer, since `out` may be one of the sources.
void operation::combine(const reduction_slice& slice) const {
  if (reducer.custom == nullptr) return reducer.kernel(slice);
  alignas(64) char total[4096];
  const velo_dtype dtype{terms.in_code, terms.in_bits, 1};
  const std::int64_t size = in_size(), most = static_cast<std::int64_t>(sizeof total) / size;
  for (std::int64_t begin = 0; begin < slice.n; begin += most) {
    const std::int64_t n = std::min(most, slice.n - begin);
    const auto from = [&](int rank) {
      return static_cast<const char*>(slice.in[rank]) + begin * size;
    };
    std::memcpy(total, from(0), static_cast<std::size_t>(n * size));
    core::call_host("reduction.fn", [&] {
      for (int rank = 1; rank < slice.ranks; ++rank)
        reducer.custom(reducer.user, from(rank), total, n, &dtype);
    });
    std::memcpy(static_cast<char*>(slice.out) + begin * size, total,
                static_cast<std::size_t>(n * size));
  }
}

reduce_fn kernel_for(const terms& what, const reduction_kernels& kernels) {
  if (what.reduction == VELO_REDUCE_CUSTOM) {
    require_custom(what);
    return nullptr;
  }
  const int in = element_of(what.in_code, what.in_bits);
  const int out = element_of(what.out_code, what.out_bits);
  if (in < 0) core::refuse_dtype(what.in_dtype(), core::dtype_names(reduced_dtypes), "in");
  const bool narrow = in == static_cast<int>(element::f16) || in == static_cast<int>(element::bf16);
  const bool widens = narrow && out == static_cast<int>(element::f32);
  if (out != in && !widens)
    core::refuse_dtype(
        what.out_dtype(),
        core::text("%s%s", core::dtype_name(what.in_dtype()).buffer, narrow ? " or float32" : ""),
        "out");
  const bool adds = what.reduction == VELO_REDUCE_SUM || what.reduction == VELO_REDUCE_AVG;
  if (what.scale != 1 && !(adds && is_float(in))) refuse_scale(what.scale);
  if (widens) return kernels.wide[what.reduction][in == static_cast<int>(element::bf16) ? 1 : 0];
  return kernels.same[what.reduction][in];
}

}  // namespace velo::comm
