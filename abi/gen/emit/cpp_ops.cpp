// cpp/include/velo/ops.hpp: operators as C++ functions, their arguments as structs with chained
// setters.
#include <algorithm>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// `self` and `base` are short names of the struct and of the C struct, so that a setter fits one
// line: users pay for the lines of this header.
std::string setter(const op_field& f) {
  const std::string self = "  self& " + f.name + "(", slot = "base::" + f.name;
  const auto body = [&](const std::string& parameter, const std::string& value) {
    const std::string statement = "return " + slot + " = " + value + ", *this;";
    const std::string flat = self + parameter + ") { " + statement + " }";
    if (flat.size() <= columns) return flat + "\n";
    return self + parameter + ") {\n    " + statement + "\n  }\n";
  };
  switch (f.type) {
    case kind::tensor:
      return body("const velo_tensor& value", "&value") +
             (f.optional ? body("std::nullptr_t", "nullptr") : "");
    case kind::ints:
      return body("const velo_ints& value", "&value") +
             (f.optional ? body("std::nullptr_t", "nullptr") : "");
    case kind::tensors:
      return body("const velo_tensors& value", "&value") + self +
             "std::initializer_list<tensor_view>) = delete;\n" +
             (f.optional ? body("std::nullptr_t", "nullptr") : "");
    case kind::handle:
      return body(f.handle + " value", "value");
    case kind::text:
      return body("const char* value", "value");
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
  std::string out = line_comment({o.doc[0]});
  const std::string name = o.name + "_args";
  out += "struct " + name + " : velo_" + name + " {\n";
  out += "  using self = " + name + ";\n  using base = velo_" + name + ";\n";
  const std::string init = "VELO_" + upper(name) + "_INIT {}\n\n";
  const std::string flat = "  " + name + "() noexcept : velo_" + name + " " + init;
  if (flat.size() <= columns + 2) {
    out += flat;
  } else {
    out += "  " + name + "() noexcept\n      : velo_" + name;
    out += (init.size() + name.size() + 11 <= columns ? " " : "\n        ") + init;
  }
  unsigned state = o.since;
  for (const op_field& f : o.fields) {
    out += guard(state, f.since, o.since);
    out += line_comment({f.doc}, "  ") + setter(f);
  }
  out += guard(state, o.since, o.since);
  out += "};\n\n";
  out += arrange("inline outcome<> " + o.name + "(",
                 {"stream_ref stream", "const " + name + "& args"}, ") {");
  return out + "\n  return detail::check(VELO_FN(" + o.name + ")(stream.get(), &args));\n}\n";
}

std::string emit_enum(const enumeration& e) {
  std::string out = line_comment({e.doc});
  out += "enum class " + e.name + " : std::int64_t {\n";
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const enumerator& v : e.values) {
    lines.push_back("  " + v.name + " = " + enumerator_name(e.name, v.name) + ",");
    width = std::max(width, lines.back().size());
  }
  unsigned state = e.since;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += guard(state, e.values[i].since, e.since);
    const std::vector<std::string> text =
        wrap(e.values[i].doc, columns - static_cast<int>(width) - 5);
    out += pad(lines[i], width) + "  // " + text[0] + "\n";
    for (std::size_t k = 1; k < text.size(); ++k) {
      out += std::string(width, ' ') + "  // " + text[k] + "\n";
    }
  }
  return out + guard(state, e.since, e.since) + "};\n";
}

}  // namespace

std::string emit_cpp_ops(const spec& s) {
  std::string out = line_comment(
      {"Operators in C++: rms_norm(stream, rms_norm_args().x(x).gamma(gamma).y(y)).", "",
       "An args object starts with every attribute at its default and every tensor absent; each "
       "setter "
       "returns the object. It keeps pointers: tensors given to it must live until the call "
       "returns, "
       "their data until the work is done. A failure throws velo::error, or is returned as "
       "velo::result<void> where exceptions are off. velo/ops_<family>.h says what each operator "
       "computes.",
       "",
       "A list of tensors is velo_tensors{pointer, count} over velo_tensor: "
       "std::vector<velo_tensor> list(views.begin(), views.end()); the views must live until the "
       "call returns, too.",
       "", "Generated from abi/spec: change that and build the target `generate`."});
  out += "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n#include <initializer_list>\n\n";
  out += "#include \"velo/api.h\"\n";
  out += "#include \"velo/detail/call.hpp\"\n#include \"velo/detail/function.hpp\"\n";
  out += "#include \"velo/stream.hpp\"\n#include \"velo/tensor.hpp\"\n\nVELO_CPP_BEGIN\n";
  unsigned state = 100;
  for (const family& f : s.families) {
    out += "\n// ---- " + f.name + "\n";
    for (const enumeration& e : f.enums) out += "\n" + guard(state, e.since) + emit_enum(e);
    for (const op& o : f.ops) out += "\n" + guard(state, o.since) + emit_op(o);
  }
  out += guard(state, 100);
  return out + "\nVELO_CPP_END\n";
}

}  // namespace velo::gen
