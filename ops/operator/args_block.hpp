// The args struct of any operator as words, and the problem that `infer` derives from it: what is
// passed between the steps of a call.
#pragma once

#include <cstdint>

#include "ops/operator/definition.hpp"
#include "ops/operator/spec.hpp"
#include "velo/introspect.h"

namespace velo::ops {

// An args struct of any operator, completed with defaults: value i is that of field i.
struct args_block {
  union field_value {
    std::int64_t i;
    double f;
    const velo_tensor* tensor;
    const velo_tensors* tensors;
    const velo_ints* ints;
    const char* text;
    const void* pointer;  // any of these, or a handle
  };
  std::uint32_t struct_size;
  std::uint32_t reserved;
  field_value values[max_fields];
};

inline const args_block::field_value* values_of(const void* args) {
  return static_cast<const args_block*>(args)->values;
}

// The problem that `infer` derives (definition.hpp), and whether there is anything to do: a call
// whose outputs have no elements is not run.
struct problem_storage {
  alignas(8) unsigned char bytes[max_problem_bytes];
  bool writes;
};

}  // namespace velo::ops
