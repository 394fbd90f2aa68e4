// capi/include/velo/ops_<family>.h: for every operator its args struct, the initializer with
// defaults, and the function, with comments that say all a caller needs.
#include <algorithm>
#include <set>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// Facts that the declaration does not hold: direction, types, default, bounds, then the spec's
// text.
std::string field_note(const op_field& f) {
  std::vector<std::string> dtypes;
  for (const std::string& d : f.dtypes) dtypes.push_back(dtype_name(d));
  std::string note;
  switch (f.type) {
    case kind::tensor:
    case kind::tensors:
      note = !f.output ? "in" : f.read ? "in and out" : "out";
      if (f.optional) note += ", or NULL";
      if (!dtypes.empty() && f.doc.rfind(join(dtypes, " | "), 0) != 0) {
        note += "; " + join(dtypes, " | ");
      }
      if (f.strided) note += "; strided";
      break;
    case kind::handle:
    case kind::ints:
    case kind::text:
      note = f.optional ? "in, or NULL" : "in";
      break;
    case kind::boolean:
      note = std::string("0 or 1, default ") + std::to_string(f.default_int);
      break;
    case kind::enumeration:
      note = enumerator_name(f.enumeration, "*") + ", default " + f.default_name;
      break;
    case kind::i64:
      note = "default " + std::to_string(f.default_int);
      break;
    case kind::f64:
      note = "default " + real(f.default_real);
      break;
  }
  const auto bound = [&](double v) {
    return f.type == kind::i64 ? std::to_string(static_cast<long long>(v)) : real(v);
  };
  if (f.has_minimum && f.has_maximum) {
    note += ", in [" + bound(f.minimum) + ", " + bound(f.maximum) + "]";
  } else if (f.has_minimum) {
    note += ", >= " + bound(f.minimum);
  } else if (f.has_maximum) {
    note += ", <= " + bound(f.maximum);
  }
  return note + ": " + f.doc;
}

// A declaration and, in a column to its right, what it means.
std::string beside(const std::string& head, std::size_t width, const std::string& text) {
  const std::vector<std::string> lines = wrap(text, columns - static_cast<int>(width) - 7);
  return pad(head, width) + " /* " + join(lines, "\n" + std::string(width + 1, ' ') + " * ") +
         " */\n";
}

std::string emit_struct(const op& o) {
  std::vector<std::string> heads = {"  uint32_t struct_size;", "  uint32_t reserved;"};
  std::vector<std::string> notes = {"sizeof(velo_" + o.name + "_args)", "0"};
  for (const op_field& f : o.fields) {
    heads.push_back("  " + declare(field_type(f), f.name) + ";");
    notes.push_back(field_note(f));
  }
  std::size_t width = 0;
  for (const std::string& head : heads) width = std::max(width, head.size());
  std::string out = "typedef struct velo_" + o.name + "_args {\n";
  unsigned state = o.since;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i >= 2) out += guard(state, o.fields[i - 2].since, o.since);
    out += beside(heads[i], width, notes[i]);
  }
  out += guard(state, o.since, o.since);
  return out + "} velo_" + o.name + "_args;\n";
}

std::string initial(const op_field& f) {
  switch (f.type) {
    case kind::f64:
      return real(f.default_real);
    case kind::enumeration:
      return enumerator_name(f.enumeration, f.default_name);
    default:  // 0, that is NULL, for pointers
      return std::to_string(f.default_int);
  }
}

std::string init_macro(const op& o, unsigned abi) {
  const std::string type = "velo_" + o.name + "_args";
  std::vector<std::string> values = {"sizeof(" + type + ")", "0"};
  for (const op_field& f : o.fields) {
    if (f.since <= abi) values.push_back(initial(f));
  }
  const std::string open = "#define " + upper(type) + "_INIT \\\n";
  const std::string flat = "  { " + join(values, ", ") + " }\n";
  if (flat.size() <= columns + 1) return open + flat;
  std::string out = open + "  { \\\n";
  const std::string body = fill(values, "    ", columns - 2) + "\n";
  for (const char c : body) out += c == '\n' ? std::string(" \\\n") : std::string(1, c);
  return out + "  }\n";
}

// One macro per ABI that added fields, the newest first.
std::string emit_init(const op& o) {
  std::vector<unsigned> steps = {o.since};
  for (const op_field& f : o.fields) {
    if (f.since != steps.back()) steps.push_back(f.since);
  }
  if (steps.size() == 1) return init_macro(o, steps[0]);
  std::string out;
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (i > 0)
      out += (out.empty() ? "#if" : "#elif") + std::string(" VELO_TARGET_ABI >= ") +
             std::to_string(steps[i]) + "\n";
    if (i == 0) out += "#else\n";
    out += init_macro(o, steps[i]);
  }
  return out + "#endif\n";
}

std::string emit_op(const op& o) {
  std::vector<std::string> text = o.doc;
  std::vector<std::string> inplace;
  for (const op_field& f : o.fields) {
    if (!f.alias.empty()) inplace.push_back(f.name + " may be " + join(f.alias, " or "));
  }
  text.push_back("");
  if (!o.gradient_of.empty()) text.push_back("Gradient of velo_" + o.gradient_of + ".");
  text.push_back(
      "In place: " +
      (inplace.empty() ? "no output may share memory with another tensor" : join(inplace, "; ")) +
      ".");
  text.push_back("Accuracy: " + o.accuracy + ".");
  text.push_back("Cost: " + o.bytes + ".");
  text.push_back("Source: " + o.source + ".");
  if (!o.aliases.empty()) text.push_back("Also called " + join(o.aliases, ", ") + ".");
  std::string out = emit_struct(o);
  out += "\n/* Starting values: every attribute at its default, every pointer NULL. */\n" +
         emit_init(o) + "\n";
  text.push_back("");
  text.push_back(
      "args is copied before the call returns; its tensors stay the caller's, and their data must "
      "live until the "
      "work is done. Thread class: " +
      o.thread + ". Errors: " + join(o.errors, ", ") + ".");
  out += comment(text);
  const std::string head = "VELO_API velo_status velo_" + o.name + "(";
  return out + arrange(head, {"velo_stream stream", "const velo_" + o.name + "_args* args"}, ");") +
         "\n";
}

std::string emit_enum(const enumeration& e) {
  std::string out = comment({e.doc}) + "enum {\n";
  std::vector<std::string> heads;
  std::size_t width = 0;
  for (std::size_t i = 0; i < e.values.size(); ++i) {
    // A newer enumerator brings the comma that sets it off.
    const bool comma = i + 1 < e.values.size() && e.values[i + 1].since == e.values[i].since;
    const bool newer = i > 0 && e.values[i].since != e.values[i - 1].since;
    heads.push_back((newer ? "  , " : "  ") + enumerator_name(e.name, e.values[i].name) + " = " +
                    std::to_string(e.values[i].value) + (comma ? "," : ""));
    width = std::max(width, heads.back().size());
  }
  unsigned state = e.since;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    out += guard(state, e.values[i].since, e.since) + beside(heads[i], width, e.values[i].doc);
  }
  return out + guard(state, e.since, e.since) + "};\n";
}

// The headers that declare the types of the fields.
std::set<std::string> headers_of(const spec& s, const family& f) {
  std::set<std::string> out = {"introspect.h", "status.h", "types.h"};
  for (const op& o : f.ops) {
    for (const op_field& field : o.fields) {
      for (const handle& h : s.handles) {
        if (h.name == field.handle) out.insert(h.header);
      }
    }
  }
  return out;
}

}  // namespace

std::string emit_ops_header(const spec& s, const family& f) {
  std::vector<std::string> text = f.doc;
  text.push_back("");
  text.push_back(
      "Every function here runs on a stream, takes its arguments in a struct that begins with its "
      "own size, and only "
      "grows at its end: start from the _INIT macro, set what you need. Tensors are row-major "
      "views; a size written "
      "[..., n] means any number of leading dimensions. Where an output may be strided, each of "
      "its "
      "strides is larger than all that the smaller ones reach. Of a double, float32's range is "
      "taken.");
  text.push_back("");
  text.push_back("Generated from abi/spec/ops/" + f.name +
                 ".json: change that and build the target `generate`.");
  const std::string once = "VELO_OPS_" + upper(f.name) + "_H";
  std::string out = comment(text) + "#ifndef " + once + "\n#define " + once + "\n\n";
  for (const std::string& header : headers_of(s, f)) out += "#include \"velo/" + header + "\"\n";
  out += "\nVELO_BEGIN_C\n";
  for (const enumeration& e : f.enums) out += "\n" + emit_enum(e);
  unsigned state = 100;
  for (const op& o : f.ops) {
    out += "\n" + guard(state, o.since) + "/* ---- " + o.name + " " +
           std::string(columns - o.name.size() - 12, '-') + " */\n\n";
    out += emit_op(o);
  }
  out += guard(state, 100);
  return out + "\nVELO_END_C\n\n#endif\n";
}

}  // namespace velo::gen
