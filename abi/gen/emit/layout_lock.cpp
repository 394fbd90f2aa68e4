// layout_lock.c: assertions that pin every offset, size, constant, signature and slot
// of the public headers.
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

std::string lock(const std::string& condition) {
  return "LOCK(" + condition + ");\n";
}

std::string array_or_plain(const member& m, const std::string& name) {
  return m.count > 0 ? m.type + " (" + name + ")[" + std::to_string(m.count) + "]"
                     : declare(m.type, name);
}

// Offsets and size by assertion, types by taking a pointer of the spec's type to each field.
std::string lock_struct(const spec& s, const structure& t) {
  const layout at = layout_of(s, t.fields);
  std::string out = "\n";
  for (std::size_t i = 0; i < t.fields.size(); ++i) {
    out += lock("offsetof(" + t.name + ", " + t.fields[i].name +
                ") == " + std::to_string(at.offsets[i]));
  }
  out += (t.sized ? "GROWS(" : "FIXED(") + t.name + ", " + std::to_string(at.whole.size) + ");\n";
  out += "void lock_" + t.name + "(" + t.name + "* s);\n";
  out += "void lock_" + t.name + "(" + t.name + "* s) {\n";
  const auto pointer = [&](const member& m, const std::string& path, const std::string& name) {
    out += "  " + array_or_plain(m, "*" + name) + " = &s->" + path + ";\n";
    out += "  (void)" + name + ";\n";
  };
  for (const member& m : t.fields) {
    if (m.members.empty()) pointer(m, m.name, m.name);
    for (const member& inner : m.members)
      pointer(inner, m.name + "." + inner.name, m.name + "_" + inner.name);
  }
  return out + "}\n";
}

std::string lock_constants(const spec& s) {
  std::string out =
      "\n/* ---- constants ---- */\n\n" + lock("VELO_OK == 0") + lock("sizeof(velo_status) == 4");
  for (const error_code& e : s.errors) out += lock(e.name + " == " + std::to_string(e.code));
  for (const enumeration& e : s.enums) {
    out += "\n";
    if (e.typed) out += lock("sizeof(" + e.name + ") == 4");
    for (const enumerator& v : e.values) out += lock(v.name + " == " + std::to_string(v.value));
  }
  for (const family& f : s.families) {
    for (const enumeration& e : f.enums) {
      out += "\n";
      for (const enumerator& v : e.values)
        out += lock(enumerator_name(e.name, v.name) + " == " + std::to_string(v.value));
    }
  }
  return out;
}

// A declaration that differs from the header's in any parameter does not compile beside it.
std::string lock_functions(const spec& s) {
  std::string out = "\n/* ---- signatures ---- */\n\n";
  for (const handle& h : s.handles) out += lock("sizeof(" + h.name + ") == 8");
  for (const callback& c : s.callbacks) {
    out += "void lock_" + c.name + "(" + c.name + " f, " + declare(c.type, "*to") + ");\n";
    out += "void lock_" + c.name + "(" + c.name + " f, " + declare(c.type, "*to") +
           ") {\n  *to = f;\n}\n";
  }
  for (const function* f : s.slots()) out += prototype(*f) + ";\n";
  return out;
}

// Slots are counted by name, so that a new function changes no line of the others.
std::string lock_table(const spec& s) {
  std::string out =
      "\n/* ---- the function table: one slot for each, in this order ---- */\n\nenum {\n";
  for (const function* f : s.slots()) out += "  slot_" + f->slot() + ",\n";
  out += "  slots\n};\n" + lock("offsetof(struct velo_api, struct_size) == 0") +
         lock("offsetof(struct velo_api, abi) == 4");
  for (const function* f : s.slots()) out += "SLOT(" + f->slot() + ");\n";
  out +=
      "ALL(slots);\n\nvoid lock_slots(struct velo_api* api);\n"
      "void lock_slots(struct velo_api* api) {\n";
  for (const function* f : s.slots()) out += "  api->" + f->slot() + " = " + f->name + ";\n";
  return out + "}\n";
}

}  // namespace

std::string emit_layout_lock(const spec& s) {
  std::string out =
      comment({"The binary interface as assertions: compiles as C11 and C++17 exactly when "
               "headers, spec and compiler agree on every "
               "offset, size, constant, signature and slot. Nothing of it is ever linked.",
               "",
               "With VELO_LOCK_CURRENT, structs that may grow must have exactly the size of the "
               "spec; without it, as a frozen copy "
               "compiled against later headers, at least that size.",
               "", "Generated from abi/spec: change that and build the target `generate`."});
  out += "#ifndef VELO_TARGET_ABI\n#define VELO_TARGET_ABI " + std::to_string(s.release) +
         "\n#endif\n\n";
  out += "#include <stddef.h>\n\n#include \"velo/velo.h\"\n\n";
  out +=
      "#ifdef __cplusplus\n#define LOCK(condition) static_assert(condition, #condition)\n#else\n"
      "#define LOCK(condition) _Static_assert(condition, #condition)\n#endif\n";
  out += "#define FIXED(type, size) LOCK(sizeof(type) == size)\n";
  out +=
      "#define SLOT(name) \\\n"
      "  LOCK(offsetof(struct velo_api, name) == 8 + slot_##name * sizeof(void*))\n";
  out +=
      "#ifdef VELO_LOCK_CURRENT\n#define GROWS(type, size) LOCK(sizeof(type) == size)\n"
      "#define ALL(count) LOCK(sizeof(struct velo_api) == 8 + (count) * sizeof(void*))\n#else\n"
      "#define GROWS(type, size) LOCK(sizeof(type) >= size)\n"
      "#define ALL(count) LOCK(sizeof(struct velo_api) >= 8 + (count) * sizeof(void*))\n"
      "#endif\n\n";
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* ---- structs ---- */\n";
  for (const structure& t : s.structs) out += lock_struct(s, t);
  for (const op* o : s.ops()) out += lock_struct(s, args_of(*o));
  out += lock_constants(s) + lock_functions(s) + lock_table(s);
  return out + "\n#ifdef __cplusplus\n}\n#endif\n";
}

}  // namespace velo::gen
