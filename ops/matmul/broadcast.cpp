// The check of a shape, and the rows that a smaller tensor stands for.
#include "ops/matmul/broadcast.hpp"

#include "ops/operator/output_shapes.hpp"

namespace velo::ops {

std::int64_t broadcast::row(std::int64_t index) const {
  if (at_one_distance) return index * ld;
  std::int64_t element = 0;
  for (int i = leading - 1; i >= 0; --i) {
    element += index % sizes[i] * strides[i];
    index /= sizes[i];
  }
  return element;
}

const std::int64_t* broadcast::rows(std::int64_t count, core::arena& scratch) const {
  auto* all = scratch.take<std::int64_t>(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) all[i] = row(i);
  return all;
}

bool is_row(const velo_tensor& t, std::int64_t n) {
  return t.ndim > 0 && t.shape[t.ndim - 1] == n && product(t.shape, t.ndim - 1) == 1;
}

broadcast require_broadcast(const velo_tensor& t, const char* field, int rank,
                            const std::int64_t* shape) {
  const int missing = rank - t.ndim;
  bool fits = missing >= 0;
  for (int i = 0; fits && i < t.ndim; ++i)
    fits = t.shape[i] == 1 || t.shape[i] == shape[missing + i];
  if (!fits) {
    core::fail(VELO_ERR_SHAPE, core::text("args.%s.shape", field),
               core::text("one that broadcasts to %s", shape_name(rank, shape).buffer),
               shape_name(t.ndim, t.shape));
  }
  broadcast b;
  b.leading = rank - 1;
  b.one_column = t.ndim == 0 || t.shape[t.ndim - 1] != shape[rank - 1];
  std::int64_t stride = t.ndim == 0 ? 1 : t.shape[t.ndim - 1];
  bool all = true, none = true;
  for (int i = rank - 2; i >= 0; --i) {
    const std::int64_t size = i < missing ? 1 : t.shape[i - missing];
    b.sizes[i] = shape[i];
    b.strides[i] = size == 1 ? 0 : stride;
    stride *= size;
    all = all && size == shape[i];
    none = none && (size == 1 || shape[i] == 1);
  }
  b.at_one_distance = all || none;
  b.ld = all ? (t.ndim == 0 ? 1 : t.shape[t.ndim - 1]) : 0;
  return b;
}

}  // namespace velo::ops
