// The changes of inputs, and the changes of outputs that follow from them.
#include "ops/replay/term_magnitudes.hpp"

#include <algorithm>
#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/replay/call_copy.hpp"
#include "ops/replay/elements.hpp"
#include "ops/replay/mixed_bits.hpp"

namespace velo::ops {
namespace {

// A step that a number of this dtype can take: one or two units in the last place of 16 bits.
double step_of(velo_dtype type) {
  return type == bf16 ? 0x1p-7 : type == f16 ? 0x1p-10 : 0x1p-18;
}

bool can_change(const velo_tensor& t) {
  return t.dtype == f32 || t.dtype == bf16 || t.dtype == f16;
}

}  // namespace

term_magnitudes::term_magnitudes(const op_spec& spec, const void* before, const void* reference)
    : spec_(spec), before_(before), reference_(reference), step_(0) {
  std::size_t elements = 0;
  for_each_tensor(spec, before, [&](const velo_tensor& t, int field, std::int64_t) {
    if (can_change(t)) step_ = std::max(step_, step_of(t.dtype));
    if (spec.fields[field].output) elements += static_cast<std::size_t>(numel(t));
  });
  squares_.resize(elements);
}

void term_magnitudes::change(const void* copy, int draw) const {
  std::uint64_t tensors = 0;
  for_each_tensor(spec_, before_, [&](const velo_tensor& t, int field, std::int64_t index) {
    const std::uint64_t seed = mixed_bits(static_cast<std::uint64_t>(draw) << 32 | tensors++);
    if (!can_change(t)) return;
    const velo_tensor& to = tensor_of(copy, field, index);
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      const bool up = mixed_bits(seed + static_cast<std::uint64_t>(offset)) >> 63 != 0;
      const double value = element_of(t, offset) * (up ? 1 + step_ : 1 - step_);
      with_element_type(t.dtype, [&](auto element) {
        simd::assign(element, value);
        std::memcpy(data<char>(&to) + bytes_of(t.dtype, offset), &element, sizeof element);
      });
    });
  });
}

void term_magnitudes::add(const void* copy) {
  double* square = squares_.data();
  for_each_tensor(spec_, copy, [&](const velo_tensor& t, int field, std::int64_t index) {
    if (!spec_.fields[field].output) return;
    const velo_tensor& reference = tensor_of(reference_, field, index);
    for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
      const double exact = element_of(reference, offset);
      const double change = element_of(t, offset) - exact;
      // A change beyond the dtype's range shows that the terms are large, not how large.
      if (std::isfinite(exact) && !std::isnan(change)) *square += change * change;
      ++square;
    });
  });
}

const double* term_magnitudes::all(double least) {
  for (double& x : squares_) x = std::max(least, std::sqrt(x / draws) / step_);
  return squares_.data();
}

}  // namespace velo::ops
