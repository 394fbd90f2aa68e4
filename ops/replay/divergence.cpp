// The comparison of elements, and the magnitudes for which it is made.
#include "ops/replay/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/matmul/pack.hpp"
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

bool agree(double value, double reference, double allowed) {
  return value == reference || (std::isnan(value) && std::isnan(reference)) ||
         (std::isfinite(reference) && std::abs(value - reference) <= allowed);
}

// Compares one output with the reference's. terms: the magnitude of each element's terms, or
// nullptr.
divergence compare(const velo_tensor& output, const velo_tensor& reference,
                   const error_bound& bound, const double* terms) {
  divergence found;
  const double largest = largest_magnitude(reference);
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

bool shows_magnitudes(const op_spec& spec, const void* args) {
  const bool mixed = is_mixed(spec, args);
  bool all = true;
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t) {
    if (!spec.fields[field].output || t.dtype != f16) return;
    if (bound_of(spec, t.dtype, mixed).largest == 0) return;
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      all = all && !std::isinf(element_of(t, offset));
    });
  });
  return all;
}

namespace {

// Whether an output's elements before the call matter to it.
bool accumulates(const op_spec& spec, const void* args) {
  for (int i = 0; i < spec.field_count; ++i)
    if (std::strcmp(spec.fields[i].name, "accumulate") == 0) return values_of(args)[i].i != 0;
  return true;
}

bool packs_are_within(const op_spec& spec, const void* args) {
  for (int i = 0; i < spec.field_count; ++i) {
    const field& f = spec.fields[i];
    const void* handle = values_of(args)[i].pointer;
    if (f.kind != field_kind::handle || f.handle != &core::kinds::pack || handle == nullptr)
      continue;
    const auto& pack =
        core::object_of<weight_pack>(static_cast<velo_pack>(const_cast<void*>(handle)));
    if (!pack.is_within(spec.least_input, spec.most_input)) return false;
  }
  return true;
}

}  // namespace

bool is_judged(const op_spec& spec, const void* args) {
  const bool outputs_read = accumulates(spec, args);
  bool all = packs_are_within(spec, args);
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t) {
    const struct field& f = spec.fields[field];
    if (!all || !f.read || !is_floating(t.dtype) || (f.output && !outputs_read)) return;
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      const double magnitude = std::abs(element_of(t, offset));
      all = all && (magnitude == 0 || (std::isfinite(magnitude) && magnitude >= spec.least_input &&
                                       magnitude <= spec.most_input));
    });
  });
  return all;
}

}  // namespace velo::ops
