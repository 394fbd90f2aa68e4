// The checks of quantized weights.
#include "ops/quant/weight_matrix.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::ops {

using core::fail;
using core::text;

weight_sizes sizes_of(const weight_fields& f, velo_dtype x) {
  const int lead = f.experts ? 1 : 0;
  const velo_tensor& w = *f.weight;
  require_rank(w, f.weight_name, lead + 2, lead + 2);
  const bool pairs = w.dtype.bits == 8 && w.dtype.code == VELO_DTYPE_UINT;
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const std::int64_t rows = w.shape[lead], stored = w.shape[lead + 1];
  const std::int64_t columns = pairs && stored < most ? 2 * stored : stored;
  weight_sizes s;
  s.int4 = w.dtype.bits == 4 || pairs;
  s.experts = f.experts ? w.shape[0] : 1;
  s.k = f.transposed ? columns : rows;
  s.n = f.transposed ? rows : columns;
  if (std::max(s.k, s.n) >= most)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", f.weight_name), "sizes below 2^31",
         core::number(std::max(s.k, s.n)));
  if (s.int4 && columns % 2 != 0)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", f.weight_name), "an even last dimension of int4",
         core::number(columns));
  require_scales(f, x, s);
  return s;
}

namespace {

void require_equal_groups(const weight_fields& f, const weight_sizes& s) {
  if (s.groups == 0 || s.k % s.groups != 0 || (s.groups > 1 && s.k / s.groups % 32 != 0))
    fail(VELO_ERR_SHAPE, text("args.%s.shape", f.scale_name),
         core::concat("a number of groups that cuts k, ", s.k, ", into multiples of 32"),
         core::number(s.groups));
}

void require_groups_of_size(const weight_fields& f, const weight_sizes& s) {
  const std::int64_t size = f.group_size;
  if (size % 32 != 0 || size >= s.k)
    fail(VELO_ERR_ARGUMENT, "args.group_size",
         core::concat("a multiple of 32 below k, which is ", s.k), core::number(size));
  const std::int64_t wanted = core::ceil_div(s.k, size);
  if (s.groups != wanted)
    fail(VELO_ERR_SHAPE, text("args.%s.shape", f.scale_name),
         core::concat(wanted, " groups, because args.group_size is ", size, " and k is ", s.k),
         core::number(s.groups));
}

// Sets how k is cut into groups. grouped: the scale has a dimension for them.
void set_group(const weight_fields& f, bool grouped, weight_sizes& s) {
  if (f.group_size == 0) {
    if (grouped) require_equal_groups(f, s);
    s.group = std::max<std::int64_t>(s.k / s.groups, 1);
  } else if (grouped) {
    require_groups_of_size(f, s);
    s.group = f.group_size;
  } else {
    fail(VELO_ERR_ARGUMENT, "args.group_size",
         text("0, because args.%s has no dimension of groups", f.scale_name),
         core::number(f.group_size));
  }
}

}  // namespace

void require_scales(const weight_fields& f, velo_dtype x, weight_sizes& s) {
  const int lead = f.experts ? 1 : 0;
  const velo_tensor& scale = *f.scale;
  require_rank(scale, f.scale_name, lead + 1, lead + 2);
  require_f32_or(scale, f.scale_name, x);
  s.groups = scale.ndim == lead + 2 ? scale.shape[lead] : 1;
  std::int64_t wanted[3] = {s.experts, s.groups, s.n};
  const bool single = f.single_scale && scale.ndim == 1 && scale.shape[0] == 1;
  if (scale.ndim == lead + 1) wanted[1] = single ? 1 : s.n;
  require_shape(scale, f.scale_name, scale.ndim, wanted + 1 - lead);
  set_group(f, scale.ndim == lead + 2, s);
  if (f.offset != nullptr) require_like(*f.offset, f.offset_name, scale, f.scale_name);
}

weight_matrix matrix_of(const weight_fields& f, const weight_sizes& s, std::int64_t expert) {
  weight_matrix m = matrix_at(nullptr, f, s, expert);
  m.in_panels = false;
  m.transposed = f.transposed;
  m.data = data<const std::uint8_t>(f.weight) + expert * m.bytes();
  return m;
}

weight_matrix columns_of(const weight_matrix& all, std::int64_t first, std::int64_t count) {
  weight_matrix some = all;
  const auto skip = [&](const void*& scales) {
    if (scales != nullptr)
      scales = static_cast<const char*>(scales) + first * element_bytes(all.scales.type);
  };
  some.data = all.transposed ? all.byte_of(first, 0) : all.byte_of(0, first);
  some.n = count;
  skip(some.scales.scale), skip(some.scales.offset);
  return some;
}

weight_matrix matrix_at(const std::uint8_t* integers, const weight_fields& f, const weight_sizes& s,
                        std::int64_t expert) {
  weight_matrix m;
  m.data = integers;
  m.int4 = s.int4;
  m.transposed = false;
  m.in_panels = true;
  m.k = s.k, m.n = m.ld = s.n;
  const std::int64_t first = bytes_of(f.scale->dtype, expert * s.groups * s.n);
  m.scales.scale = data<const char>(f.scale) + first;
  m.scales.offset = f.offset == nullptr ? nullptr : data<const char>(f.offset) + first;
  m.scales.type = type_of(f.scale->dtype);
  m.scales.ld = s.n;
  m.scales.group = s.group;
  return m;
}

}  // namespace velo::ops
