// abi/generated/api.md: the API reference for people, from the same facts the headers are made of.
#include <algorithm>
#include <sstream>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/emit/reference_parts.hpp"
#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

constexpr int page_columns = 120;

std::string handles(const spec& s) {
  std::string out = std::string("\n## Handles\n\n") + about_handles + "\n" +
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
  std::string out = "\n### " + t.name + "\n\n" + t.doc + " " + size_text(s, t) + " (`velo/" +
                    t.header + "`).\n\n";
  // A row, its last but one cell only where the struct's macro sets something beside the size.
  const bool preset = std::any_of(t.fields.begin(), t.fields.end(),
                                  [](const member& m) { return !m.initial.empty(); });
  const auto cells = [&](std::vector<std::string> all) {
    if (!preset) all.erase(all.end() - 2);
    return all;
  };
  out += head(cells({"offset", "field", "type", "default, else 0", "meaning"}));
  for (std::size_t i = 0; i < t.fields.size(); ++i) {
    const member& m = t.fields[i];
    const std::string type = m.type + (m.count > 0 ? "[" + std::to_string(m.count) + "]" : "");
    out += row(
        cells({std::to_string(at.offsets[i]), code(m.name), code(type), m.initial, cell(m.doc)}));
    for (const member& inner : m.members)
      out +=
          row(cells({"", code(m.name + "." + inner.name), code(inner.type), "", cell(inner.doc)}));
  }
  return out;
}

std::string function_entry(const function& f) {
  std::string out = "\n### " + f.name + "\n\n```c\n" + prototype(f) + ";\n```\n\n" + f.doc + "\n\n";
  out += parameter_table(f);
  out += "Since " + release(f.since) + ". Thread class: " + f.thread +
         (f.blocking ? ", may wait" : "") + ".";
  if (f.result != "void")
    out +=
        f.errors.empty() ? " Cannot fail." : " Errors: " + code_list(f.errors, "VELO_ERR_") + ".";
  return out + "\n";
}

std::string bounds_text(const op& o) {
  std::vector<std::string> all;
  for (const error_bound& b : o.bounds)
    all.push_back(dtype_name(b.dtype) + (b.mixed ? " of mixed calls: " : ": ") + bound_text(b));
  return join(all, "; ");
}

std::string op_entry(const op& o) {
  std::string out = "\n#### " + o.name + "\n\n```c\nvelo_status velo_" + o.name +
                    "(velo_stream stream, const velo_" + o.name + "_args* args);\n```\n\n";
  for (const std::string& line : o.doc) out += line + "\n\n";
  out += head({"field", "kind", "direction", "accepts", "default", "meaning"});
  for (const op_field& f : o.fields)
    out += row({code(f.name), kind_name(f.type), direction(f), range_text(f), default_text(f),
                field_note(f)});
  out += "\n";
  if (!o.gradient_of.empty()) out += "Gradient of `" + o.gradient_of + "`. ";
  out += "Since " + release(o.since) + ". Accuracy: " + o.accuracy + " (" + bounds_text(o) +
         "). Cost: " + o.bytes + ". Source: " + o.source + ".";
  if (!o.aliases.empty()) out += " Aliases: " + code_list(o.aliases, "") + ".";
  return out + "\n";
}

std::string operators(const spec& s) {
  const std::vector<const op*> all = s.ops();
  std::string out =
      std::string("\n## Operators\n\n") + about_args +
      " Accuracy ends with numbers: " + about_bounds +
      " Thread class: per-stream. Every operator can fail with " +
      code_list(all.empty() ? std::vector<std::string>{} : all[0]->errors, "VELO_ERR_") +
      "; on a stream that has failed, with that failure.\n";
  for (const family& f : s.families) {
    out +=
        "\n### Family " + f.name + "\n\n" + join(f.doc, "\n") + " (`velo/ops_" + f.name + ".h`)\n";
    for (const op& o : f.ops) out += op_entry(o);
  }
  return out;
}

// Lines of at most 120 columns, none of which begins with an operator of a formula, which Markdown
// takes for an item of a list.
std::string wrapped(std::string paragraph) {
  constexpr char kept_space = 1;
  for (const char* sign : {" * ", " + ", " - "}) {
    for (std::size_t at = 0; (at = paragraph.find(sign, at)) != std::string::npos; at += 2)
      paragraph[at] = kept_space;
  }
  std::string lines = join(wrap(paragraph, page_columns), "\n");
  std::replace(lines.begin(), lines.end(), kept_space, ' ');
  return lines;
}

// The page with paragraphs in such lines; tables, code and headings stay.
std::string in_columns(const std::string& page) {
  std::istringstream lines(page);
  std::string out, line;
  bool in_code = false;
  while (std::getline(lines, line)) {
    if (line.rfind("```", 0) == 0) in_code = !in_code;
    const bool paragraph = !in_code && !line.empty() && line[0] != '|' && line[0] != '#';
    if (paragraph && line.size() > page_columns) line = wrapped(line);
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string emit_reference(const spec& s) {
  std::string out = "# velo C API reference, ABI " + release(s.release) +
                    "\n\nGenerated from abi/spec: change that and build the target `generate`.\n\n";
  out += about_threads + std::string("\n") + about_ownership;
  out += std::string("\n## Errors\n\n") + about_errors + "\n" + error_table(s);
  out += handles(s) + "\n## Enumerations\n";
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
  return in_columns(out + operators(s));
}

}  // namespace velo::gen
