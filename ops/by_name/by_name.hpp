// Fills an args struct from named values by the operator's field table.
//
// Strict by intent: an unknown name, a second value for a field, or a kind that does not fit is a
// failure that names the field. Only an integer that a double holds exactly is converted.
// VELO_VALUE_NONE leaves a field at its default. The values are checked together later, as for
// every call. Cost: a search over the field names per value. Not hot.
#pragma once

#include <cstdint>

#include "ops/call/call.hpp"
#include "velo/introspect.h"

namespace velo::ops {

// Completes the defaults of `spec` with `count` named values. The block keeps the pointers it is
// given. Throws NULL, NOT_FOUND (no such field) or ARGUMENT (count, kind, enumerator, duplicate).
field_set assign(const op_spec& spec, const velo_named_value* values, std::int64_t count,
                 args_block& block);

// The field of that name, -1 when there is none. length: characters of name that count.
int find_field(const op_spec& spec, const char* name, std::size_t length);

const char* value_kind_name(velo_value_kind kind);  // "a tensor"

}  // namespace velo::ops
