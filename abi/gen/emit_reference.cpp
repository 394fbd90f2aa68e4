// abi/generated/api.md: the API reference for people, from the same facts the headers are made of.
#include "abi/gen/emit.hpp"
#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// Text inside a table cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(const std::string& text) {
  return "`" + cell(text) + "`";
}

std::string row(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string head(const std::vector<std::string>& cells) {
  std::string out = row(cells) + "|";
  for (std::size_t i = 0; i < cells.size(); ++i) out += "---|";
  return out + "\n";
}

std::string code_list(const std::vector<std::string>& items, const std::string& prefix) {
  std::vector<std::string> out;
  for (const std::string& item : items) out.push_back("`" + prefix + item + "`");
  return join(out, ", ");
}

std::string errors(const spec& s) {
  std::string out =
      "## Errors\n\nEvery call that can fail returns one of these; `velo_last_error` gives the "
      "record with function, "
      "argument, what was expected and what came. After a validation error outputs are untouched, "
      "after a failure "
      "during the work they are undefined.\n\n";
  out += head({"code", "value", "phase", "meaning", "what to do"});
  out += row({code("VELO_OK"), "0", "", "success", ""});
  for (const error_code& e : s.errors) {
    out += row({code(e.name), std::to_string(e.code), e.phase, cell(e.doc), cell(e.remedy)});
  }
  return out;
}

std::string handles(const spec& s) {
  std::string out = "\n## Handles\n\nTyped pointers to structs that are never defined.\n\n" +
                    head({"handle", "what it is", "ends with"});
  for (const handle& h : s.handles) out += row({code(h.name), cell(h.doc), code(h.destroy)});
  return out;
}

std::string enumeration_table(const enumeration& e, const std::string& header, bool short_names) {
  std::string out = "\n### " + e.name + "\n\n" + e.doc + " (`velo/" + header + "`)\n\n" +
                    head({"name", "value", "meaning"});
  for (const enumerator& v : e.values) {
    const std::string name = short_names ? enumerator_name(e.name, v.name) : v.name;
    const std::string by_name = short_names ? ", by name " + code(v.name) : "";
    out += row({code(name) + by_name, std::to_string(v.value), cell(v.doc)});
  }
  return out;
}

std::string struct_table(const spec& s, const structure& t) {
  const layout at = layout_of(s, t.fields);
  std::string out = "\n### " + t.name + "\n\n" + t.doc + " " + std::to_string(at.whole.size) +
                    " bytes" + (t.sized ? ", grows at its end" : ", fixed") + " (`velo/" +
                    t.header + "`).\n\n";
  out += head({"offset", "field", "type", "meaning"});
  for (std::size_t i = 0; i < t.fields.size(); ++i) {
    const member& m = t.fields[i];
    const std::string count = m.count > 0 ? "[" + std::to_string(m.count) + "]" : "";
    out += row({std::to_string(at.offsets[i]), code(m.name), code(m.type + count), cell(m.doc)});
    for (const member& inner : m.members)
      out += row({"", code(m.name + "." + inner.name), code(inner.type), cell(inner.doc)});
  }
  return out;
}

std::string function_entry(const function& f) {
  std::string out = "\n### " + f.name + "\n\n```c\n" + prototype(f) + ";\n```\n\n" + f.doc + "\n\n";
  if (!f.parameters.empty()) {
    out += head({"parameter", "direction", "NULL", "ownership", "note"});
    for (const parameter& p : f.parameters) {
      const bool pointer = p.type.find('*') != std::string::npos || p.nullable;
      out += row({code(p.name), p.direction,
                  p.nullable ? "allowed"
                  : pointer  ? "no"
                             : "",
                  pointer ? p.ownership : "", cell(p.doc)});
    }
    out += "\n";
  }
  out += "Since " + release(f.since) + ". Thread class: " + f.thread +
         (f.blocking ? ", may wait" : "") + ".";
  if (f.result != "void")
    out +=
        f.errors.empty() ? " Cannot fail." : " Errors: " + code_list(f.errors, "VELO_ERR_") + ".";
  return out + "\n";
}

std::string default_text(const op_field& f) {
  switch (f.type) {
    case kind::enumeration:
      return code(f.default_name);
    case kind::f64:
      return real(f.default_real);
    case kind::i64:
    case kind::boolean:
      return std::to_string(f.default_int);
    default:
      return f.optional ? "NULL" : "required";
  }
}

std::string range_text(const op_field& f) {
  if (holds_tensors(f)) return join(f.dtypes, " ");
  if (f.type == kind::handle) return code(f.handle);
  if (f.type == kind::enumeration) return code(f.enumeration);
  const auto number = [&](double v) {
    return f.type == kind::i64 ? std::to_string(static_cast<long long>(v)) : real(v);
  };
  std::string out;
  if (f.has_minimum) out += ">= " + number(f.minimum);
  if (f.has_maximum) out += std::string(out.empty() ? "" : ", ") + "<= " + number(f.maximum);
  return out;
}

std::string bounds_text(const op& o) {
  std::vector<std::string> all;
  for (const error_bound& b : o.bounds) {
    std::vector<std::string> parts;
    if (b.absolute > 0) parts.push_back(real(b.absolute));
    if (b.relative > 0) parts.push_back(real(b.relative) + " of the value");
    if (b.largest > 0) parts.push_back(real(b.largest) + " of the largest");
    all.push_back(dtype_name(b.dtype) + (b.mixed ? " of mixed calls: " : ": ") +
                  (parts.empty() ? "exact" : join(parts, " + ")));
  }
  return join(all, "; ");
}

std::string op_entry(const op& o) {
  std::string out = "\n#### " + o.name + "\n\n```c\nvelo_status velo_" + o.name +
                    "(velo_stream stream, const velo_" + o.name + "_args* args);\n```\n\n";
  for (const std::string& line : o.doc) out += line + "\n\n";
  out += head({"field", "kind", "direction", "accepts", "default", "meaning"});
  for (const op_field& f : o.fields) {
    const std::string direction = !f.output ? "in" : f.read ? "inout" : "out";
    std::string note = f.doc;
    if (f.strided) note += " (strides allowed)";
    if (!f.alias.empty()) note += " (in place: may be " + join(f.alias, ", ") + ")";
    out += row(
        {code(f.name), kind_name(f.type), direction, range_text(f), default_text(f), cell(note)});
  }
  out += "\n";
  if (!o.gradient_of.empty()) out += "Gradient of `" + o.gradient_of + "`. ";
  out += "Since " + release(o.since) + ". Accuracy: " + o.accuracy + " (" + bounds_text(o) +
         "). Cost: " + o.bytes + ". Source: " + o.source + ".";
  if (!o.aliases.empty()) out += " Aliases: " + code_list(o.aliases, "") + ".";
  return out + "\n";
}

std::string operators(const spec& s) {
  std::string out =
      "\n## Operators\n\nEach is `velo_<name>(stream, args)`; each args struct begins with "
      "`struct_size` and "
      "`reserved` and then has one 8-byte word per field in the order below, starting at byte 8. "
      "Accuracy ends with numbers: how far an output of a dtype may be from the exact value, as "
      "the "
      "sum of an absolute part, a share of the value and a share of the largest magnitude in the "
      "same output (which for sums holds for up to 4096 terms of either sign; the words before "
      "hold always). A mixed call has a floating tensor narrower than float32. "
      "Thread class: "
      "per-stream. Every operator can fail with " +
      code_list(
          s.families.empty() || s.ops().empty() ? std::vector<std::string>{} : s.ops()[0]->errors,
          "VELO_ERR_") +
      "; on a stream that has failed, with that failure.\n";
  for (const family& f : s.families) {
    out +=
        "\n### Family " + f.name + "\n\n" + join(f.doc, "\n") + " (`velo/ops_" + f.name + ".h`)\n";
    for (const op& o : f.ops) out += op_entry(o);
  }
  return out;
}

}  // namespace

std::string emit_reference(const spec& s) {
  std::string out = "# velo C API reference, ABI " + release(s.release) +
                    "\n\nGenerated from abi/spec: change that and build the target `generate`.\n\n"
                    "Thread classes: *any*: from any thread at any time; *per-handle*: not twice "
                    "at once for one handle; "
                    "*per-stream*: calls on one stream take turns, others run beside them. \"May "
                    "wait\" marks calls that can block "
                    "on work of others.\n\n"
                    "Ownership: *borrow*: read during the call only; *copy*: copied before the "
                    "call returns; *keep*: must live "
                    "until the work is done; *own*: the caller owns it now and ends it; *take*: "
                    "the call ends it; *static*: lives "
                    "as long as the library; *buffer*: the caller's memory, asked for its size "
                    "with NULL and capacity 0.\n\n";
  out += errors(s) + handles(s) + "\n## Enumerations\n";
  for (const enumeration& e : s.enums) out += enumeration_table(e, e.header, false);
  for (const family& f : s.families) {
    for (const enumeration& e : f.enums) out += enumeration_table(e, "ops_" + f.name + ".h", true);
  }
  out += "\n## Structs\n";
  for (const structure& t : s.structs) out += struct_table(s, t);
  out += "\n## Functions\n";
  std::string header;
  for (const function& f : s.functions) {
    if (f.header.rfind("ops_", 0) == 0) continue;
    if (f.header != header) out += "\n## velo/" + f.header + "\n";
    header = f.header;
    out += function_entry(f);
  }
  return out + operators(s);
}

}  // namespace velo::gen
