// The binding of a MindSpore slot: an operator, and the attributes of its calls.
#pragma once

#include <string>

#include "capi/adapters/attributes.hpp"

namespace velo::adapters {

struct slot_binding {
  const op_info* op;
  std::string json;  // as given: two bindings of one text share a slot
  attribute_set attributes;
};

const slot_binding& bound_slot(int slot);  // throws a refusal for a free one, or no slot

}  // namespace velo::adapters
