// The generated tables, and the two searches over them.
#include "capi/adapters/operators.hpp"

namespace velo::adapters {

#include "capi/adapters/generated/operators.inc"

const op_info* find_operator(std::string_view name) {
  for (const op_info& op : operators) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

int find_field(const op_info& op, std::string_view name) {
  for (int i = 0; i < op.field_count; ++i) {
    if (name == op.fields[i].name) return i;
  }
  return -1;
}

}  // namespace velo::adapters
