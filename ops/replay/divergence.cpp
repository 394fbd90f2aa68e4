// The comparison of elements, and the magnitudes for which it is made.
#include "ops/replay/divergence.hpp"

#include <algorithm>
#include <cmath>

#include "ops/operator/registry.hpp"
#include "ops/replay/call_copy.hpp"
#include "ops/replay/elements.hpp"

namespace velo::ops {
namespace {

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

// The largest magnitude that an output shows. Infinity for a float16 output that overflowed, if the
// bound depends on it: such an output does not show its largest magnitude.
double magnitude_shown(const velo_tensor& t, const error_bound& bound) {
  bool overflowed = false;
  if (t.dtype == f16 && bound.largest > 0)
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      overflowed = overflowed || std::isinf(element_of(t, offset));
    });
  return overflowed ? HUGE_VAL : largest_magnitude(t);
}

bool agree(double value, double reference, double allowed) {
  return value == reference || (std::isnan(value) && std::isnan(reference)) ||
         (std::isfinite(reference) && std::abs(value - reference) <= allowed);
}

// Compares one output with the reference's. terms: the magnitude of each element's terms, or
// nullptr.
divergence compare(const velo_tensor& output, const velo_tensor& reference,
                   const error_bound& bound, const double* terms) {
  divergence found;
  const double largest = magnitude_shown(reference, bound);
  if (std::isinf(largest)) return found;
  std::int64_t i = 0;
  for_each_element(output, [&](std::int64_t offset, const std::int64_t* at) {
    const double value = element_of(output, offset), exact = element_of(reference, offset);
    const double magnitude = terms == nullptr ? largest : std::max(largest, terms[i++]);
    const double allowed =
        2 * (allowed_error(bound, exact, magnitude) + least_magnitude(output.dtype));
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

divergence first_divergence(const op_spec& spec, const void* args, const void* reference,
                            const double* terms) {
  const bool mixed = is_mixed(spec, args);
  divergence first;
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t index) {
    if (first || !spec.fields[field].output) return;
    const divergence here =
        compare(t, tensor_of(reference, field, index), bound_of(spec, t.dtype, mixed), terms);
    if (terms != nullptr) terms += numel(t);
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
