// Whether two kernels' outputs of one call agree.
//
// Each kernel promises the error bound of the operator's spec against the exact value, so two of
// them differ by at most twice the bound. Its share of the largest magnitude in the same output
// stands for a share of the magnitude of the terms that an element is a sum of; where these cancel
// throughout an output, they have to be measured (term_magnitudes.hpp). The bound holds for finite
// inputs of the magnitudes that the spec names; a call with others is not judged. Not hot: elements
// one by one, in order.
#pragma once

#include <cstdint>

#include "core/text/text.hpp"
#include "ops/operator/args_block.hpp"

namespace velo::ops {

// The first element beyond twice the bound; `beyond` of `elements` of its tensor are.
struct divergence {
  int field = -1;           // -1: there is none
  std::int64_t index = -1;  // in a list
  core::text place;         // "[3, 17]"
  double value = 0, reference = 0, allowed = 0;
  std::int64_t beyond = 0, elements = 0;

  explicit operator bool() const { return field >= 0; }
};

// Two calls of one operator that differ in the memory of their outputs alone. terms: the magnitude
// of the terms of every element of all outputs, in order, or nullptr.
divergence first_divergence(const op_spec& spec, const void* args, const void* reference,
                            const double* terms = nullptr);

// Whether outputs show their largest magnitudes: none of float16 overflowed that the bound depends
// on. args: of a call that has run.
bool shows_magnitudes(const op_spec& spec, const void* args);

// Whether every floating input, in a pack too, is finite and of a magnitude for which the spec's
// bounds hold. What an output that is read held before is an input where the call
// accumulates.
bool is_judged(const op_spec& spec, const void* args);

}  // namespace velo::ops
