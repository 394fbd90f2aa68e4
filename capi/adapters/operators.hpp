// The field tables the adapters are driven by, and the names of every operator's entries.
//
// Generated from abi/spec into generated/operators.inc: an operator that joins the spec
// is reachable from every host with no line written here. A tensor with both flags is
// read and written.
#pragma once

#include <cstdint>
#include <string_view>

namespace velo::adapters {

enum class field_kind : std::uint8_t {
  tensor,
  tensors,
  handle,
  i64,
  f64,
  boolean,
  enumeration,
  ints,
  text
};

struct field {
  const char* name;
  field_kind kind;
  bool input, output;  // tensors and lists of them only
  bool optional;
  std::int64_t initial;  // what an attribute is when nothing is given; of an enumeration its number
  double initial_real;   // of f64
};

struct op_info {
  const char* name;  // "rms_norm"
  const field* fields;
  int field_count;
};

constexpr int max_fields = 48;    // velo's own bound on values of one call
constexpr int max_buffers = 512;  // tensors of one call, those in lists included

extern const op_info operators[];
extern const int operator_count;

const op_info* find_operator(std::string_view name);       // nullptr when there is none
int find_field(const op_info& op, std::string_view name);  // -1 when there is none

}  // namespace velo::adapters
