// The lists of generated files: those under version control, and those a build makes for itself.
#include "abi/gen/emit/emit.hpp"

namespace velo::gen {

files emit_all(const spec& s) {
  files out;
  for (const family& f : s.families)
    out["capi/include/velo/ops_" + f.name + ".h"] = emit_ops_header(s, f);
  out["capi/include/velo/api.h"] = emit_api_header(s);
  out["cpp/include/velo/ops.hpp"] = emit_cpp_ops(s);
  const std::string folder = "abi/generated/";
  out[folder + "velo.map"] = emit_map(s);
  out[folder + "op_ids.inc"] = emit_op_ids(s);
  out[folder + "op_table.inc"] = emit_op_table(s);
  out[folder + "op_definitions.inc"] = emit_op_definitions(s);
  out[folder + "op_entries.inc"] = emit_op_entries(s);
  out[folder + "functions.inc"] = emit_functions(s);
  out[folder + "handles.inc"] = emit_handles(s);
  out[folder + "api_table.inc"] = emit_api_table(s);
  out[folder + "errors.inc"] = emit_errors(s);
  out[folder + "schedule_kinds.inc"] = emit_schedule_kinds(s);
  out[folder + "describe.json"] = emit_describe(s);
  out[folder + "api.md"] = emit_reference(s);
  out["capi/python/velo/ctypes.py"] = emit_ctypes(s);
  const std::string adapters = "capi/adapters/generated/";
  out[adapters + "operators.inc"] = emit_adapter_operators(s);
  out[adapters + "entries.cpp"] = emit_adapter_entries(s);
  out[adapters + "adapters.map"] = emit_adapter_map(s);
  return out;
}

files emit_for_gates(const spec& s) {
  return {{"client_operators.c", emit_client(s)},
          {"layout_lock.c", emit_layout_lock(s)},
          {"stub.c", emit_stub(s)}};
}

}  // namespace velo::gen
