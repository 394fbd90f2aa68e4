// The magnitude of intermediate numbers that cancel inside an operator. Changes of the inputs do
// not show it where both numbers change alike, as lse and the largest logit do.
//
// An operator adds it to its definition: with_terms<terms_of>(define<..>(..)). For check mode. Not
// hot.
#pragma once

#include "ops/operator/definition.hpp"
#include "ops/replay/elements.hpp"

namespace velo::ops {

template <auto Terms>
struct own_terms;
template <class Args, double (*Terms)(const Args&)>
struct own_terms<Terms> {
  static double of(const void* args) { return Terms(*static_cast<const Args*>(args)); }
};
template <auto Terms>
constexpr operator_def with_terms(operator_def definition) {
  definition.terms = own_terms<Terms>::of;
  return definition;
}

}  // namespace velo::ops
