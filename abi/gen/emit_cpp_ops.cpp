// cpp/include/velo/ops.hpp: operators as C++ functions, their arguments as structs with chained
// setters.
#include "abi/gen/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

std::string one_line(const std::string& text) {
  std::string out;
  const std::vector<std::string> lines = wrap(text, columns - 5);
  for (const std::string& line : lines) out += "  // " + line + "\n";
  return out;
}

std::string setter(const op& o, const op_field& f) {
  const std::string self = "  " + o.name + "_args& " + f.name + "(";
  const std::string slot = "velo_" + o.name + "_args::" + f.name;
  const auto body = [&](const std::string& parameter, const std::string& value) {
    const std::string flat = self + parameter + ") { return " + slot + " = " + value + ", *this; }";
    if (flat.size() <= columns) return flat + "\n";
    return self + parameter + ") {\n    " + slot + " = " + value + ";\n    return *this;\n  }\n";
  };
  switch (f.type) {
    case kind::tensor:
      return body("const velo_tensor& value", "&value") +
             (f.optional ? body("std::nullptr_t", "nullptr") : "");
    case kind::ints:
      return body("const velo_ints& value", "&value") +
             (f.optional ? body("std::nullptr_t", "nullptr") : "");
    case kind::pack:
      return body("velo_pack value", "value");
    case kind::f64:
      return body("double value", "value");
    case kind::boolean:
      return body("bool value", "value");
    case kind::enumeration:
      return body("velo::" + f.enumeration + " value", "static_cast<std::int64_t>(value)");
    case kind::i64:
      return body("std::int64_t value", "value");
  }
  return "";
}

std::string emit_op(const op& o) {
  std::string out;
  for (const std::string& line : wrap(o.doc[0], columns - 3)) out += "// " + line + "\n";
  const std::string name = o.name + "_args";
  out += "struct " + name + " : velo_" + name + " {\n";
  out += "  " + name + "() noexcept : velo_" + name + " VELO_" + upper(name) + "_INIT {}\n\n";
  for (const op_field& f : o.fields) out += one_line(f.doc) + setter(o, f);
  out += "};\n\n";
  const std::string head =
      "inline outcome<> " + o.name + "(stream_ref stream, const " + name + "& args) {\n";
  out += head + "  return detail::check(VELO_FN(" + o.name + ")(stream.get(), &args));\n}\n";
  return out;
}

std::string emit_enum(const enumeration& e) {
  std::string out;
  for (const std::string& line : wrap(e.doc, columns - 3)) out += "// " + line + "\n";
  out += "enum class " + e.name + " : std::int64_t {\n";
  for (const enumerator& v : e.values) {
    out += "  " + v.name + " = " + enumerator_name(e.name, v.name) + ",  // " + v.doc + "\n";
  }
  return out + "};\n";
}

}  // namespace

std::string emit_cpp_ops(const spec& s) {
  std::string out =
      "// Operators in C++: rms_norm(stream, rms_norm_args().x(x).gamma(gamma).y(y)).\n"
      "//\n"
      "// An args object starts with every attribute at its default and every tensor absent; each "
      "setter returns the object. It\n"
      "// keeps pointers: tensors given to it must live until the call returns, their data until "
      "the work is done. A failure\n"
      "// throws velo::error, or is returned as velo::result<void> when VELO_NO_EXCEPTIONS is "
      "defined. velo/ops_<family>.h says\n"
      "// what each operator computes.\n"
      "// Generated from abi/spec: change that and build the target `generate`.\n"
      "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\n#include \"velo/api.h\"\n#include "
      "\"velo/detail/call.hpp\"\n#include \"velo/detail/door.hpp\"\n#include "
      "\"velo/stream.hpp\"\n\n"
      "VELO_CPP_BEGIN\n";
  unsigned state = 100;
  for (const family& f : s.families) {
    out += "\n// ---- " + f.name + "\n";
    for (const enumeration& e : f.enums) out += "\n" + emit_enum(e);
    for (const op& o : f.ops) out += "\n" + guard(state, o.since) + emit_op(o);
  }
  out += guard(state, 100);
  return out + "\nVELO_CPP_END\n";
}

}  // namespace velo::gen
