// The generated sources of libvelo_adapters.so: the field tables that drive its code, the exported
// entries (each only passes its operator's number on), and the version script.
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

constexpr int slots = 512;

const char* const note =
    "// Generated from abi/spec: change that and build the target `generate`.\n";

std::string flag(bool value) {
  return value ? "true" : "false";
}

std::string slot_name(int slot) {
  const std::string digits = std::to_string(slot);
  return "velo_ms_slot_" + std::string(3 - digits.size(), '0') + digits;
}

std::string mindspore_entry(const std::string& name, const std::string& function,
                            const std::string& number) {
  return "int " + name +
         "(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,\n" +
         std::string(5 + name.size(), ' ') + "void* stream, void*) {\n  return " + function + "(" +
         number + ", {count, params, ndims, shapes, dtypes, stream});\n}\n";
}

}  // namespace

std::string emit_adapter_operators(const spec& s) {
  std::string out =
      "// Field tables of all operators: name, kind, read, written, optional, default.\n";
  out += note;
  for (const op* o : s.ops()) {
    out += "constexpr field " + o->name + "_fields[] = {\n";
    for (const op_field& f : o->fields) {
      const bool tensor = holds_tensors(f);
      out += "    {" + quote(f.name) +
             ", field_kind::" + (f.type == kind::boolean ? "boolean" : kind_name(f.type)) + ", " +
             flag(tensor && f.read) + ", " + flag(tensor && f.output) + ", " + flag(f.optional) +
             ", " + std::to_string(f.default_int) + ", " + real(f.default_real) + "},\n";
    }
    out += "};\n";
  }
  out += "\nconst op_info operators[] = {\n";
  for (const op* o : s.ops())
    out += "    {" + quote(o->name) + ", " + o->name + "_fields, " +
           std::to_string(o->fields.size()) + "},\n";
  return out + "};\nconst int operator_count = sizeof operators / sizeof operators[0];\n";
}

std::string emit_adapter_entries(const spec& s) {
  std::string out =
      "// The exported entries of every operator in each host's convention, and MindSpore's "
      "slots.\n";
  out += note;
  out +=
      "#include \"capi/adapters/entries.hpp\"\n\n"
      "using namespace velo::adapters;\n\n"
      "namespace {\n\nstruct number {\n  enum : int {\n";
  for (const op* o : s.ops()) out += "    " + o->name + ",\n";
  out +=
      "  };\n};\n\n}  // namespace\n\n"
      "#pragma GCC visibility push(default)\n"
      "extern \"C\" {\n";
  for (const op* o : s.ops()) {
    const std::string index = "number::" + o->name;
    out += "\n" + mindspore_entry("velo_ms_" + o->name, "enter_mindspore", index);
    out += "void* velo_xla_" + o->name + "(void* call_frame) {\n  return enter_xla(" + index +
           ", call_frame);\n}\n";
    out += "int __tvm_ffi_velo_" + o->name +
           "(void*, const void* args, int32_t count, void*) {\n  return enter_tvm(" + index +
           ", args, count);\n}\n";
  }
  for (int i = 0; i < slots; ++i) {
    out += "\n" + mindspore_entry(slot_name(i), "enter_mindspore_slot", std::to_string(i));
    out += "void* " + slot_name(i) +
           "InferShape(void* result, int* ndims, int64_t** shapes, void*) {\n"
           "  return infer_mindspore_slot(" +
           std::to_string(i) + ", result, ndims, shapes);\n}\n";
  }
  out += "\n}\n#pragma GCC visibility pop\n\n";
  out += "const torch_kernels velo::adapters::torch_entries[] = {\n";
  for (const op* o : s.ops()) out += "    torch_kernels_of<number::" + o->name + ">,\n";
  return out + "};\n";
}

std::string emit_adapter_map(const spec& s) {
  std::string out =
      "# The exported names of libvelo_adapters.so.\n"
      "# Generated from abi/spec: change that and build the target `generate`.\n"
      "VELO_ADAPTERS_1.0 {\n  global:\n";
  for (const char* name :
       {"velo_adapters_set_context", "velo_adapters_context", "velo_adapters_set_log",
        "velo_adapters_last_error", "velo_ms_slot_bind", "velo_ms_slot_infer",
        "velo_ms_slot_release", "velo_torch_register", "velo_torch_context", "velo_torch_attention",
        "velo_torch_attention_calls"})
    out += "    " + std::string(name) + ";\n";
  for (const char* prefix : {"velo_ms_", "velo_xla_", "__tvm_ffi_velo_"}) {
    for (const op* o : s.ops()) out += "    " + (prefix + o->name) + ";\n";
  }
  for (int i = 0; i < slots; ++i)
    out += "    " + slot_name(i) + ";\n    " + slot_name(i) + "InferShape;\n";
  return out + "  local:\n    *;\n};\n";
}

}  // namespace velo::gen
