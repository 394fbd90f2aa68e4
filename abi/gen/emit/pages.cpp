// The pages of the browsable reference, in MyST's Markdown, which Sphinx reads: one for each
// operator with what the spec says of it and the programs of emit_samples.cpp, one for each family,
// and one for each header written by hand. Made in the build; the pages that need no spec are in
// abi/reference, as is what reads the headers for the directive `from-header`.
#include <algorithm>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/emit/formula.hpp"
#include "abi/gen/emit/reference_parts.hpp"
#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// A directive with options or content; `marks` are the colons of its fence, more than within it.
std::string directive(const std::string& name, const std::string& argument,
                      const std::string& content, int marks = 3) {
  const std::string fence(static_cast<std::size_t>(marks), ':');
  return fence + "{" + name + "} " + argument + "\n" + content + fence + "\n\n";
}

std::string contents(const std::vector<std::string>& pages, const std::string& options = "") {
  return directive("toctree", "", options + "\n" + join(pages, "\n") + "\n");
}

std::string link(const std::string& name, const std::string& folder = "") {
  return "[" + name + "](" + folder + name + ".md)";
}

std::string value_entry(const std::string& name, std::int64_t value, const std::string& doc) {
  return directive("c:enumerator", name + " = " + std::to_string(value), doc + "\n");
}

// Enumerators belong to no type where the headers give them none.
std::string enumeration_entry(const enumeration& e, bool short_names) {
  std::string values;
  for (const enumerator& v : e.values)
    values += short_names ? value_entry(enumerator_name(e.name, v.name), v.value,
                                        "By name `" + v.name + "`: " + v.doc)
                          : value_entry(v.name, v.value, v.doc);
  if (short_names || !e.typed) return "### " + e.name + "\n\n" + e.doc + "\n\n" + values;
  return directive("c:enum", e.name, e.doc + "\n\n" + values, 4);
}

std::string member_entry(const member& m, const std::string& note) {
  const std::string count = m.count > 0 ? "[" + std::to_string(m.count) + "]" : "";
  if (m.members.empty())
    return directive("c:member", declare(m.type, m.name) + count, note + m.doc + "\n");
  std::string inner;
  for (const member& each : m.members) inner += member_entry(each, "");
  return directive("c:union", m.name, note + m.doc + "\n\n" + inner, 4);
}

std::string struct_entry(const spec& s, const structure& t) {
  const layout at = layout_of(s, t.fields);
  std::string content =
      directive("from-header", t.name, t.doc + "\n", 3) + size_text(s, t) + ".\n\n";
  for (std::size_t i = 0; i < t.fields.size(); ++i)
    content += member_entry(t.fields[i], "Offset " + std::to_string(at.offsets[i]) + ": ");
  return directive("c:struct", t.name, content, 5);
}

// Whether the table of a function's parameters says more than its prototype.
bool says(const function& f) {
  return std::any_of(f.parameters.begin(), f.parameters.end(), [](const parameter& p) {
    return p.type.find('*') != std::string::npos || p.nullable || !p.doc.empty();
  });
}

std::string function_page_entry(const function& f) {
  return directive("c:function",
                   f.result + " " + f.name + "(" + join(parameter_list(f), ", ") + ")",
                   directive("from-header", f.name, "") + (says(f) ? parameter_table(f) : "") +
                       "Since " + release(f.since) + (f.blocking ? "; may wait" : "") + ".\n",
                   4);
}

template <class Items, class Entry>
std::string section(const std::string& title, const Items& items, const std::string& header,
                    Entry entry) {
  std::string out;
  for (const auto& item : items) {
    if (item.header == header) out += entry(item);
  }
  return out.empty() ? "" : "## " + title + "\n\n" + out;
}

std::string header_page(const spec& s, const std::string& header) {
  std::string out = "# velo/" + header + "\n\n" + directive("from-header", header, "");
  out += section("Handles", s.handles, header, [](const handle& h) {
    return directive("c:type", h.name, h.doc + " Ends with `" + h.destroy + "`.\n");
  });
  out += section("Functions to hand over", s.callbacks, header, [](const callback& c) {
    return directive("c:type", declare(c.type, c.name), c.doc + "\n");
  });
  out += section("Enumerations", s.enums, header,
                 [](const enumeration& e) { return enumeration_entry(e, false); });
  out +=
      section("Structs", s.structs, header, [&](const structure& t) { return struct_entry(s, t); });
  out += section("Functions", s.functions, header, function_page_entry);
  return out;
}

std::string errors_page(const spec& s) {
  std::string phase, out = std::string("# Errors\n\n") + about_errors + "\n" +
                           directive("c:type", "int32_t velo_status", "What a call returns.\n") +
                           value_entry("VELO_OK", 0, "success");
  for (const error_code& e : s.errors) {
    if (e.phase != phase) out += "## Found in " + e.phase + "\n\n";
    phase = e.phase;
    out += value_entry(e.name, e.code, e.doc + "\n\n" + e.remedy);
  }
  return out;
}

// ---- operators

std::string display(const std::string& line) {
  const std::vector<std::string> formulas = formulas_of(line);
  if (formulas.empty()) return line + "\n\n";
  return "<div class=\"formula\">" + mathml(formulas) + "</div>\n\n";
}

// "in tensor: f32 bf16"
std::string takes(const family& home, const op_field& f) {
  for (const enumeration& e : home.enums) {
    if (f.type != kind::enumeration || e.name != f.enumeration) continue;
    std::vector<std::string> names;
    for (const enumerator& v : e.values) names.push_back(code(v.name));
    return "[" + e.name + "](../families/" + home.name + ".md): " + join(names, ", ");
  }
  const std::string what = (holds_tensors(f) ? direction(f) + " " : "") + kind_name(f.type);
  const std::string range = range_text(f);
  return what + (range.empty() ? "" : ": " + range);
}

std::string arguments(const family& home, const op& o) {
  std::string table = head({"field", "takes", "default", "shape and meaning"});
  for (const op_field& f : o.fields)
    table += row({code(f.name), takes(home, f), default_text(f), field_note(f)});
  return "## Arguments\n\n" + directive("c:struct", "velo_" + o.name + "_args", table);
}

std::string accuracy(const op& o) {
  std::string out = "## Accuracy\n\n" + o.accuracy + ".\n\n";
  out += head({"output", "bound"});
  for (const error_bound& b : o.bounds)
    out += row({dtype_name(b.dtype) + (b.mixed ? ", mixed calls" : ""), bound_text(b)});
  return out + "\n[What a bound means](../operators.md).\n\n";
}

std::string samples(const op& o) {
  if (known_example(o) == nullptr) return "";
  struct language {
    const char *name, *ending, *mark, *close;
  };
  std::string out = "## Example\n\n";
  for (const language& l : {language{"C", "c", "/* ", " */"}, language{"C++", "cpp", "// ", ""},
                            language{"Python", "py", "# ", ""}}) {
    const std::string file = o.name + "." + l.ending;
    const std::string language = std::string(l.ending) == "py" ? "python" : l.ending;
    out +=
        "### " + std::string(l.name) + "\n\n" +
        directive("literalinclude", "../examples/" + file,
                  ":language: " + language + "\n:start-after: \"" + l.mark + "the call" + l.close +
                      "\"\n:end-before: \"" + l.mark + "the results" + l.close + "\"\n:dedent:\n") +
        "The whole program: {download}`" + file + " <../examples/" + file + ">`\n\n";
  }
  return out;
}

std::string gradient(const family& home, const op& o) {
  std::vector<std::string> sentences;
  if (!o.gradient_of.empty())
    sentences.push_back("It is the gradient of " + link(o.gradient_of) + ".");
  for (const op& other : home.ops) {
    if (other.gradient_of == o.name)
      sentences.push_back("Its gradient is " + link(other.name) + ".");
  }
  return join(sentences, " ");
}

// In the index, by every name.
std::string entries(const op& o) {
  std::string out = directive("index", "single: " + o.name, "");
  for (const std::string& alias : o.aliases) out += directive("index", "single: " + alias, "");
  return out;
}

std::string op_page(const family& home, const op& o) {
  std::string out = "# " + o.name + "\n\n" + entries(o) +
                    directive("c:function",
                              "velo_status velo_" + o.name + "(velo_stream stream, const velo_" +
                                  o.name + "_args* args)",
                              "");
  for (const std::string& line : o.doc) out += display(line);
  const std::string of = gradient(home, o);
  if (!of.empty()) out += of + "\n\n";
  out += arguments(home, o) + samples(o) + accuracy(o);
  out += "## Errors and threads\n\nThread class: " + o.thread +
         ". Errors: " + code_list(o.errors, "VELO_ERR_") +
         "; on a stream that has failed, with that failure.\n\n";
  out += "## Source and cost\n\nSource: " + o.source + ". Cost: " + o.bytes + ". Since " +
         release(o.since) + ", in `velo/ops_" + home.name + ".h` (" +
         link(home.name, "../families/") + ").";
  if (!o.aliases.empty()) out += " Also called " + code_list(o.aliases, "") + ".";
  return out + "\n";
}

std::string family_page(const family& home) {
  std::string out = "# " + home.name + "\n\n" + join(home.doc, " ") + " Header: `velo/ops_" +
                    home.name + ".h`.\n\n";
  std::vector<std::string> pages;
  for (const op& o : home.ops) pages.push_back("/operators/" + o.name);
  out += contents(pages);
  if (!home.enums.empty()) out += "## Enumerations\n\n";
  for (const enumeration& e : home.enums) out += enumeration_entry(e, true);
  return out;
}

std::string operators_page(const spec& s) {
  std::string out = std::string("# Operators\n\n") + about_args + "\n\nBounds of accuracy say " +
                    about_bounds + "\n\n" + head({"family", "operators", "what"});
  std::vector<std::string> pages;
  for (const family& f : s.families) {
    std::vector<std::string> names;
    for (const op& o : f.ops) names.push_back(link(o.name, "operators/"));
    out += row({link(f.name, "families/"), join(names, ", "), cell(join(f.doc, " "))});
    pages.push_back("families/" + f.name);
  }
  return out + "\n" + contents(pages, ":hidden:\n");
}

}  // namespace

files emit_pages(const spec& s) {
  files out = emit_samples(s);
  out["errors.md"] = errors_page(s);
  out["operators.md"] = operators_page(s);
  for (const family& f : s.families) {
    out["families/" + f.name + ".md"] = family_page(f);
    for (const op& o : f.ops) out["operators/" + o.name + ".md"] = op_page(f, o);
  }
  std::vector<std::string> pages;
  for (const std::string& header : s.headers) {
    pages.push_back("headers/" + header);
    out[pages.back() + ".md"] = header_page(s, header);
  }
  out["headers.md"] = std::string("# C interface\n\n") + about_threads + "\n" + about_ownership +
                      "\n" + contents(pages);
  return out;
}

}  // namespace velo::gen
