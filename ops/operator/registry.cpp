// The generated tables of all operators, and lookup by name (registry.hpp).
#include "ops/operator/registry.hpp"

#include <cstring>
#include <limits>

#include "core/handle/handle_kinds.hpp"
#include "velo/velo.h"

namespace velo::ops {

#include "abi/generated/op_definitions.inc"

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double largest_float = static_cast<double>(std::numeric_limits<float>::max());
#include "abi/generated/op_table.inc"

// True when `name` is one of the comma-separated `list`.
bool listed(const char* list, const char* name) {
  const std::size_t length = std::strlen(name);
  for (const char* at = list; at != nullptr && *at != 0;) {
    const char* end = std::strchr(at, ',');
    const std::size_t size = end == nullptr ? std::strlen(at) : static_cast<std::size_t>(end - at);
    if (size == length && std::memcmp(at, name, length) == 0) return true;
    at = end == nullptr ? nullptr : end + 1;
  }
  return false;
}

}  // namespace

int op_count() {
  return static_cast<int>(sizeof specs / sizeof specs[0]);
}
const op_spec& spec_of(op_id op) {
  return specs[static_cast<int>(op)];
}
const operator_def& definition_of(op_id op) {
  return *definitions[static_cast<int>(op)];
}

bool find_op(const char* name, op_id& op) {
  int i = 0;
  while (i < op_count() && std::strcmp(specs[i].name, name) != 0) ++i;
  if (i == op_count()) {
    for (i = 0; i < op_count() && !listed(specs[i].aliases, name);) ++i;
  }
  op = static_cast<op_id>(i);
  return i < op_count();
}

error_bound bound_of(const op_spec& spec, velo_dtype output, bool mixed) {
  error_bound found{dtype_bit_of(output), mixed, 0, 0, 0};
  for (int i = 0; i < spec.bound_count; ++i) {
    const error_bound& b = spec.bounds[i];
    if (b.dtype == found.dtype && (!b.mixed || mixed)) found = b;
  }
  return found;
}

const op_spec* find_spec(const char* name) {
  op_id op{};
  return find_op(name, op) ? &spec_of(op) : nullptr;
}

}  // namespace velo::ops
