// One function per generated file (or family of files). Each is a pure function of the spec; none
// of them checks anything.
#pragma once

#include <map>
#include <string>

#include "abi/gen/model.hpp"

namespace velo::gen {

using files = std::map<std::string, std::string>;  // path from the root -> contents

// capi/include/velo/ops_<family>.h
std::string emit_ops_header(const spec& s, const family& f);
std::string emit_api_header(const spec& s);      // capi/include/velo/api.h
std::string emit_map(const spec& s);             // abi/generated/velo.map
std::string emit_op_ids(const spec& s);          // abi/generated/op_ids.inc
std::string emit_op_table(const spec& s);        // abi/generated/op_table.inc
std::string emit_op_definitions(const spec& s);  // abi/generated/op_definitions.inc
std::string emit_op_entries(const spec& s);      // abi/generated/op_entries.inc
std::string emit_functions(const spec& s);       // abi/generated/functions.inc
std::string emit_handles(const spec& s);         // abi/generated/handles.inc
std::string emit_api_table(const spec& s);       // abi/generated/api_table.inc
std::string emit_errors(const spec& s);          // abi/generated/errors.inc
std::string emit_schedule_kinds(const spec& s);  // abi/generated/schedule_kinds.inc
std::string emit_describe(const spec& s);        // abi/generated/describe.json
std::string emit_reference(const spec& s);       // abi/generated/api.md
std::string emit_cpp_ops(const spec& s);         // cpp/include/velo/ops.hpp

std::string emit_adapter_operators(const spec& s);  // capi/adapters/generated/operators.inc
std::string emit_adapter_entries(const spec& s);    // capi/adapters/generated/entries.cpp
std::string emit_adapter_map(const spec& s);        // capi/adapters/generated/adapters.map
std::string emit_ctypes(const spec& s);             // capi/python/velo/ctypes.py

// Files that only the ABI gates need: made in the build's own folder, not committed.
std::string emit_stub(const spec& s);         // stub.c
std::string emit_layout_lock(const spec& s);  // layout_lock.c
std::string emit_client(const spec& s);       // client_operators.c

// The reference to be browsed: made in the build's own folder too.
files emit_samples(const spec& s);          // examples/<op>.{c,cpp,py}
files emit_pages(const spec& s);            // them, operators/<op>.md, headers/<header>.md, ..
const example* known_example(const op& o);  // the one that the samples run; nullptr for none

files emit_all(const spec& s);
files emit_for_gates(const spec& s);

}  // namespace velo::gen
