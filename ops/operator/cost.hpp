// The work of a call, as its shapes and attributes state it.
//
// `flops` are those of products, two a multiply-add, as MindSpeed counts them (F93): attention
// counts every score, and `flops_visible` only those that its mask leaves. Bytes count the elements
// of every tensor once, whatever the caches hold. ops/call/cost.cpp fills in the bytes of the
// fields; an operator that multiplies, or that moves other bytes, adds a function
//   void cost_of(const Args&, const Problem&, op_cost&)
// to its definition: with_cost<cost_of>(define<..>(..)). Not hot.
#pragma once

#include "ops/operator/definition.hpp"

namespace velo::ops {

struct op_cost {
  double flops = 0, flops_visible = 0;
  double bytes_read = 0, bytes_written = 0;
  velo_dtype products = f32;  // the element type that is multiplied

  void multiply(double all, double visible, velo_dtype type) {
    flops = all, flops_visible = visible, products = type;
  }
};

// The bytes of a tensor's elements; 0 for one that is left out.
inline double bytes_of(const velo_tensor* t) {
  return t == nullptr ? 0 : static_cast<double>(bytes_of(t->dtype, numel(*t)));
}

// The bytes of rows of n elements, which need not be those of one tensor: n may be 2^62.
inline double bytes_of_rows(std::int64_t rows, std::int64_t n, velo_dtype dtype) {
  return static_cast<double>(rows) * static_cast<double>(n) *
         static_cast<double>(element_bytes(dtype));
}

template <auto Cost>
struct cost_types;
template <class Args, class Problem, void (*Cost)(const Args&, const Problem&, op_cost&)>
struct cost_types<Cost> {
  static void of(const void* args, const void* problem, op_cost& cost) {
    Cost(*static_cast<const Args*>(args), *static_cast<const Problem*>(problem), cost);
  }
};
template <auto Cost>
constexpr operator_def with_cost(operator_def definition) {
  definition.cost = cost_types<Cost>::of;
  return definition;
}

}  // namespace velo::ops
