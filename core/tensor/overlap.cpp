// Comparing strides (overlap.hpp).
#include "core/tensor/overlap.hpp"

#include "core/failure.hpp"

namespace velo::core {
namespace {

// Bytes from the first to past the last element that a view reaches inside one period. Returns 0 if
// some dimension steps beyond a period without being a multiple of it.
std::int64_t reach_in_period(const velo_tensor& t, std::int64_t period) {
  const std::int64_t bytes = element_bytes(t.dtype);
  std::int64_t reach = bytes, compact = bytes;
  for (int i = t.ndim - 1; i >= 0; --i) {
    const std::int64_t stride = t.strides == nullptr ? compact : t.strides[i] * bytes;
    compact *= t.shape[i];
    if (t.shape[i] == 1 || stride % period == 0) continue;
    if (stride > period) return 0;
    reach += stride * (t.shape[i] - 1);
  }
  return reach <= period ? reach : 0;
}

// Tries every stride of `a` as the row.
bool fit_in_rows_of(const velo_tensor& a, const velo_tensor& b) {
  if (a.strides == nullptr || a.dtype.bits < 8 || b.dtype.bits < 8) return false;
  const std::uintptr_t first_a = first_byte(a), first_b = first_byte(b);
  for (int i = 0; i < a.ndim; ++i) {
    const std::int64_t period = a.strides[i] * element_bytes(a.dtype);
    if (a.shape[i] == 1 || period == 0) continue;
    const std::int64_t in_a = reach_in_period(a, period), in_b = reach_in_period(b, period);
    const auto p = static_cast<std::uintptr_t>(period);
    const auto ahead = static_cast<std::int64_t>(((first_b % p) + p - first_a % p) % p);
    if (in_a > 0 && in_b > 0 && in_a <= ahead && ahead + in_b <= period) return true;
  }
  return false;
}

}  // namespace

bool elements_apart(const velo_tensor& t) {
  int by_stride[max_rank];
  int count = 0;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 1) continue;
    int at = count++;
    for (; at > 0 && t.strides[by_stride[at - 1]] > t.strides[i]; --at)
      by_stride[at] = by_stride[at - 1];
    by_stride[at] = i;
  }
  std::int64_t reach = 0;
  for (int k = 0; k < count; ++k) {
    const std::int64_t stride = t.strides[by_stride[k]];
    if (stride <= reach) return false;
    reach += stride * (t.shape[by_stride[k]] - 1);
  }
  return true;
}

bool same_view(const velo_tensor& a, const velo_tensor& b) {
  if (first_byte(a) != first_byte(b) || a.dtype.bits != b.dtype.bits || !same_shape(a, b))
    return false;
  std::int64_t compact = 1;
  for (int i = a.ndim - 1; i >= 0; --i) {
    const std::int64_t stride_a = a.strides == nullptr ? compact : a.strides[i];
    const std::int64_t stride_b = b.strides == nullptr ? compact : b.strides[i];
    if (a.shape[i] > 1 && stride_a != stride_b) return false;
    compact *= a.shape[i];
  }
  return true;
}

bool side_by_side(const velo_tensor& a, const velo_tensor& b) {
  return fit_in_rows_of(a, b) || fit_in_rows_of(b, a);
}

void refuse_overlap(const char* argument, const char* other, bool or_same) {
  fail(
      VELO_ERR_OVERLAP, argument,
      or_same ? text("memory of its own, or exactly that of %s", other) : text("memory of its own"),
      text("memory shared with %s", other));
}

}  // namespace velo::core
