// The magnitude of terms that only their operator knows: of numbers between its inputs and outputs
// whose difference a change of the inputs does not show, since they change alike.
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
