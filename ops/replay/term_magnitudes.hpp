// How large the terms are that every element of a call's outputs is a sum of.
//
// A rounding error is a share of the terms, which the element does not show where they cancel. The
// reference runs on copies of the call in which every floating number is changed by a small
// relative step, up or down at random; an element's magnitude is the root mean square of its
// changes over the step. For a sum of terms that have numbers of their own it is about the root of
// the sum of their squares, which is at most the sum of their magnitudes. A function steeper than
// linear, such as the exponential of a score, measures more: its bound is loose by that factor.
// Cost: `draws` runs of the reference, each on copies of all tensors; only for calls that seem to
// diverge.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/operator/args_block.hpp"

namespace velo::ops {

class term_magnitudes {
 public:
  // The changes that an element sums up may cancel by chance in a draw, but not in all draws.
  static constexpr int draws = 8;

  // before: a call with its outputs as they were; reference: after the reference ran on it.
  term_magnitudes(const op_spec& spec, const void* before, const void* reference);

  void change(const void* copy, int draw) const;  // copy: one of `before` that holds all tensors
  void add(const void* copy);                     // after the reference ran on it
  // The elements of all outputs in order, each at least `least`; no more is added.
  const double* all(double least);

 private:
  const op_spec& spec_;
  const void *before_, *reference_;
  double step_;
  std::vector<double> squares_;
};

}  // namespace velo::ops
