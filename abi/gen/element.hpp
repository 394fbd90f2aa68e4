// The elements of an example's tensors as C text, for the programs that the generator writes.
#pragma once

#include <string>
#include <vector>

#include "abi/gen/model.hpp"

namespace velo::gen {

struct element {
  const char *dtype, *c_type, *code;  // "f32", "float", "FLOAT" (VELO_DTYPE_FLOAT)
  int bits;
};

const element& element_of(const std::string& dtype);
bool is_bfloat16(const element& e);  // C has no type for it, nor for f16: uint16_t holds their bits

// A number as an initializer of that C type.
std::string literal(double value, const element& e);

const example_value* find(const std::vector<example_value>& values, const std::string& field);

}  // namespace velo::gen
