// Attributes of a slot: one flat JSON object, read once when the slot is bound.
//
// Numbers, true and false (of flags), strings and lists of integers; null leaves a field at its
// default. The key "fields" names the tensors. The reader exists because this library needs nothing
// but libvelo; it takes all of JSON that an attribute can be and refuses the rest by column.
#pragma once

#include <string>
#include <vector>

#include "capi/adapters/call.hpp"

namespace velo::adapters {

struct attribute {
  enum class kind { integer, boolean, real, string, list };
  int field;
  kind type;
  std::int64_t integer;  // of a boolean: 0 or 1
  double real;
  std::string text;
  std::vector<std::int64_t> list;
};

struct attribute_set {
  std::vector<attribute> values;
  std::string fields;  // empty: tensors are placed by their number

  void put(call& made) const;
};

// Throws PARSE (column), NOT_FOUND (no such field), ARGUMENT (a kind that cannot fit).
attribute_set read_attributes(const op_info& op, const char* json);

}  // namespace velo::adapters
