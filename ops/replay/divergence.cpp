// Elements of any dtype as doubles, and their comparison.
#include "ops/replay/divergence.hpp"

#include <cmath>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/operator/registry.hpp"
#include "ops/replay/call_copy.hpp"

namespace velo::ops {
namespace {

template <class T>
T load(const char* first, std::int64_t element) {
  T value;
  std::memcpy(&value, first + element * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

double floating(velo_dtype type, const char* first, std::int64_t element) {
  if (type == f32) return static_cast<double>(load<float>(first, element));
  if (type == bf16) return static_cast<double>(simd::to_float(load<simd::bf16>(first, element)));
  if (type == f16) return static_cast<double>(simd::to_float(load<simd::f16>(first, element)));
  return load<double>(first, element);
}

double integer(velo_dtype type, const char* first, std::int64_t element) {
  if (type.bits == 4) {  // two in a byte, the first in the low half
    const int both = load<std::uint8_t>(first, element / 2);
    const int half = element % 2 == 0 ? both & 15 : both >> 4;
    return half >= 8 ? half - 16 : half;
  }
  if (type.bits == 32) return load<std::int32_t>(first, element);
  if (type.bits == 64) return static_cast<double>(load<std::int64_t>(first, element));
  if (type.code == VELO_DTYPE_INT) return load<std::int8_t>(first, element);
  return load<std::uint8_t>(first, element);
}

bool is_floating(velo_dtype type) {
  return type.code == VELO_DTYPE_FLOAT || type.code == VELO_DTYPE_BFLOAT;
}

double element_of(const velo_tensor& t, std::int64_t element) {
  const char* first = data<const char>(&t);
  return is_floating(t.dtype) ? floating(t.dtype, first, element)
                              : integer(t.dtype, first, element);
}

// Calls body(offset in elements, indices) for every element of a tensor in row-major order.
template <class Body>
void for_each_element(const velo_tensor& t, Body&& body) {
  std::int64_t at[max_rank] = {};
  const std::int64_t count = numel(t);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = i;
    if (t.strides != nullptr) {
      offset = 0;
      for (int d = 0; d < t.ndim; ++d) offset += at[d] * t.strides[d];
    }
    body(offset, at);
    for (int d = t.ndim - 1; d >= 0 && ++at[d] == t.shape[d]; --d) at[d] = 0;
  }
}

bool is_mixed(const op_spec& spec, const void* args) {
  bool mixed = false;
  for_each_tensor(spec, args, [&](const velo_tensor& t, int, std::int64_t) {
    mixed = mixed || (is_floating(t.dtype) && t.dtype.bits < 32);
  });
  return mixed;
}

// The smallest magnitude of a dtype: rounding a denormal errs by as much.
double least_magnitude(velo_dtype type) {
  if (!is_floating(type)) return 0;
  if (type == f16) return 0x1p-24;
  if (type == bf16) return 0x1p-133;
  return type == f32 ? 0x1p-149 : 0;
}

// The largest finite magnitude. Infinity for a float16 output that overflowed, if the bound depends
// on it: such an output does not show its largest magnitude.
double largest_magnitude(const velo_tensor& t, const error_bound& bound) {
  double largest = 0;
  for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
    const double value = std::abs(element_of(t, offset));
    if (std::isinf(value) && t.dtype == f16 && bound.largest > 0) largest = value;
    if (std::isfinite(value) && value > largest) largest = value;
  });
  return largest;
}

bool agree(double value, double reference, double allowed) {
  return value == reference || (std::isnan(value) && std::isnan(reference)) ||
         (std::isfinite(reference) && std::abs(value - reference) <= allowed);
}

// Compares one output with the reference's.
divergence compare(const velo_tensor& output, const velo_tensor& reference,
                   const error_bound& bound) {
  divergence found;
  const double largest = largest_magnitude(reference, bound);
  if (std::isinf(largest)) return found;
  for_each_element(output, [&](std::int64_t offset, const std::int64_t* at) {
    const double value = element_of(output, offset), exact = element_of(reference, offset);
    const double allowed =
        2 * (allowed_error(bound, exact, largest) + least_magnitude(output.dtype));
    if (agree(value, exact, allowed) || ++found.beyond > 1) return;
    found.place = shape_name(output.ndim, at);
    found.value = value;
    found.reference = exact;
    found.allowed = allowed;
  });
  found.elements = numel(output);
  return found;
}

}  // namespace

divergence first_divergence(const op_spec& spec, const void* args, const void* reference) {
  const bool mixed = is_mixed(spec, args);
  divergence first;
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t index) {
    if (first || !spec.fields[field].output) return;
    const divergence here =
        compare(t, tensor_of(reference, field, index), bound_of(spec, t.dtype, mixed));
    if (here.beyond == 0) return;
    first = here;
    first.field = field;
    first.index = index;
  });
  return first;
}

bool is_judged(const op_spec& spec, const void* args) {
  bool all = true;
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t) {
    if (!all || !spec.fields[field].read || !is_floating(t.dtype)) return;
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      const double magnitude = std::abs(element_of(t, offset));
      all = all && (magnitude == 0 || (std::isfinite(magnitude) && magnitude >= spec.least_input &&
                                       magnitude <= spec.most_input));
    });
  });
  return all;
}

}  // namespace velo::ops
