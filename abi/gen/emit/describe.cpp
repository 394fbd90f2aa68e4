// The self-description: the JSON document behind velo_describe, without the kernels, which only the
// running library knows. A binding needs nothing else: every declaration of the public headers
// follows from it, with C names, C types, offsets and sizes (tests/examples/luajit derives them
// all).
#include "abi/gen/emit/declaration.hpp"
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/layout.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

std::string pair(const std::string& key, const std::string& json) {
  return quote(key) + ":" + json;
}

std::string object(const std::vector<std::string>& pairs) {
  return "{" + join(pairs, ",") + "}";
}

std::string array(const std::vector<std::string>& items) {
  return "[" + join(items, ",") + "]";
}

std::string flag(bool value) {
  return value ? "true" : "false";
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

using pairs = std::vector<std::string>;

void append(pairs& to, const pairs& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The result and parameters of a function type, for languages that cannot read the C type itself.
pairs call_of(const std::string& type) {
  const signature call = read_signature(type);
  std::vector<std::string> params;
  for (const declared& p : call.parameters) {
    pairs one = {pair("name", quote(p.name)), pair("type", quote(p.type))};
    if (is_function(p.type)) append(one, {pair("call", object(call_of(p.type)))});
    params.push_back(object(one));
  }
  return {pair("result", quote(call.result)), pair("params", array(params))};
}

std::string describe(const function& f, std::size_t slot) {
  std::vector<std::string> params, errors;
  for (const parameter& p : f.parameters) {
    params.push_back(object({pair("name", quote(p.name)), pair("type", quote(p.type)),
                             pair("dir", quote(p.direction)), pair("nullable", flag(p.nullable)),
                             pair("ownership", quote(p.ownership))}));
  }
  for (const std::string& e : f.errors) errors.push_back(quote(e));
  const auto offset = static_cast<std::int64_t>(8 + 8 * slot);
  return object(
      {pair("name", quote(f.name)), pair("header", quote(f.header)),
       pair("since", quote(release(f.since))), pair("result", quote(f.result)),
       pair("thread", quote(f.thread)), pair("blocking", flag(f.blocking)),
       pair("slot", object({pair("name", quote(f.slot())), pair("offset", number(offset))})),
       pair("doc", quote(f.doc)), pair("params", array(params)), pair("errors", array(errors))});
}

pairs describe(const spec& s, const member& m, std::int64_t offset) {
  pairs parts = {pair("name", quote(m.name)), pair("type", quote(m.type)),
                 pair("offset", number(offset)), pair("size", number(extent_of(s, m).size))};
  if (m.count > 0) parts.push_back(pair("count", number(m.count)));
  if (is_function(m.type)) parts.push_back(pair("call", object(call_of(m.type))));
  if (!m.initial.empty()) parts.push_back(pair("initial", m.initial));
  if (!m.members.empty()) {
    std::vector<std::string> inner;
    for (const member& i : m.members) inner.push_back(object(describe(s, i, 0)));
    parts.push_back(pair("members", array(inner)));
  }
  if (!m.doc.empty()) parts.push_back(pair("doc", quote(m.doc)));
  return parts;
}

// The size of a struct of these fields, and each of them.
pairs describe(const spec& s, const std::vector<member>& fields) {
  const layout at = layout_of(s, fields);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fields.size(); ++i)
    all.push_back(object(describe(s, fields[i], at.offsets[i])));
  return {pair("size", number(at.whole.size)), pair("fields", array(all))};
}

std::string describe(const spec& s, const structure& t) {
  pairs parts = {pair("name", quote(t.name)), pair("header", quote(t.header)),
                 pair("since", quote(release(t.since))), pair("sized", flag(t.sized)),
                 pair("doc", quote(t.doc))};
  append(parts, describe(s, t.fields));
  return object(parts);
}

// type: the C type that carries the enumeration's name; of one whose constants stand in integers of
// other types, null. c_name: an enumerator in C, whose name in JSON and in text is `name`.
std::string describe(const enumeration& e, const family* home) {
  std::vector<std::string> values;
  for (const enumerator& v : e.values) {
    const std::string c = home == nullptr ? v.name : enumerator_name(e.name, v.name);
    values.push_back(object({pair("name", quote(v.name)), pair("c_name", quote(c)),
                             pair("value", number(v.value)), pair("doc", quote(v.doc))}));
  }
  const bool typed = home == nullptr && e.typed;
  return object({pair("name", quote(e.name)),
                 pair("header", quote(home == nullptr ? e.header : "ops_" + home->name + ".h")),
                 pair("since", quote(release(e.since))),
                 pair("type", typed ? quote("int32_t") : "null"), pair("doc", quote(e.doc)),
                 pair("values", array(values))});
}

// The type every call returns, as the enumeration it is; what its codes mean is under "errors".
enumeration status_of(const spec& s) {
  enumeration e;
  e.name = "velo_status", e.header = "status.h", e.doc = "What a call returns.";
  e.values = {{"VELO_OK", "done", 0}};
  for (const error_code& code : s.errors) e.values.push_back({code.name, code.doc, code.code});
  return e;
}

std::string describe(const handle& h) {
  return object({pair("name", quote(h.name)), pair("header", quote(h.header)),
                 pair("since", quote(release(h.since))),
                 pair("type", quote("struct " + h.name + "_s*")), pair("destroy", quote(h.destroy)),
                 pair("doc", quote(h.doc))});
}

std::string describe(const callback& c) {
  pairs parts = {pair("name", quote(c.name)), pair("header", quote(c.header)),
                 pair("since", quote(release(c.since))), pair("type", quote(c.type))};
  append(parts, call_of(c.type));
  parts.push_back(pair("doc", quote(c.doc)));
  return object(parts);
}

std::string describe(const error_code& e) {
  return object({pair("name", quote(e.name)), pair("code", std::to_string(e.code)),
                 pair("phase", quote(e.phase)), pair("doc", quote(e.doc)),
                 pair("remedy", quote(e.remedy))});
}

// The head of the function table. The functions describe its slots.
std::string describe_table(const spec& s) {
  member size, abi;
  size.name = "struct_size", abi.name = "abi", size.type = abi.type = "uint32_t";
  size.doc = "bytes of the table this library fills";
  abi.doc = "newest ABI of this library, major * 100 + minor";
  const std::vector<std::string> prelude = {object(describe(s, size, 0)),
                                            object(describe(s, abi, 4))};
  return object({pair("name", quote("velo_api")), pair("header", quote("api.h")),
                 pair("prelude", array(prelude))});
}

// A default as C has it, where `default` names an enumerator.
std::string initial_of(const op_field& f) {
  if (f.type == kind::f64) return real(f.default_real);
  return number(is_pointer(f) ? 0 : f.default_int);
}

// The spec's own entry of an operator, with its C names in front; of its args struct the size, what
// stands before the fields, and where each field lies.
std::string describe(const spec& s, const family& home, const op& o) {
  const structure args = args_of(o);
  const layout at = layout_of(s, args.fields);
  const std::size_t before = args.fields.size() - o.fields.size();
  std::vector<std::string> prelude, fields;
  for (std::size_t i = 0; i < args.fields.size(); ++i) {
    const member& m = args.fields[i];
    if (i < before) {
      prelude.push_back(object(describe(s, m, at.offsets[i])));
      continue;
    }
    const op_field& f = o.fields[i - before];
    pairs parts = {pair("ctype", quote(m.type)), pair("offset", number(at.offsets[i])),
                   pair("size", number(extent_of(s, m).size))};
    if (!is_pointer(f)) parts.push_back(pair("initial", initial_of(f)));
    fields.push_back(f.json.substr(0, f.json.size() - 1) + "," + join(parts, ",") + "}");
  }
  return "{" +
         join({pair("family", quote(home.name)), pair("header", quote("ops_" + home.name + ".h")),
               pair("function", quote("velo_" + o.name)), pair("args", quote(args.name)),
               pair("args_size", number(at.whole.size)), pair("prelude", array(prelude)),
               pair("fields", array(fields))},
              ",") +
         "," + o.json.substr(1);
}

// The document. Each entry, and each comma between two, has a line of its own: the library finds
// entries by their lines, and a new entry changes no line of another.
class document {
 public:
  void member(const std::string& json) { text_ += json + ",\n"; }
  void section(const std::string& key) {
    close();
    text_ += (open_ ? ",\n" : "") + pair(key, "[");
    open_ = true;
    first_ = true;
  }
  void entry(const std::string& json) {
    text_ += (first_ ? "\n" : "\n,\n") + json;
    first_ = false;
  }
  std::string finished() {
    close();
    return text_ + "}\n";
  }

 private:
  void close() {
    if (open_) text_ += "\n]";
  }
  std::string text_ = "{";
  bool open_ = false, first_ = true;
};

}  // namespace

std::string emit_describe(const spec& s) {
  document all;
  all.member(pair("abi", quote(release(s.release))));
  all.member(pair("table", describe_table(s)));
  all.section("handles");
  for (const handle& h : s.handles) all.entry(describe(h));
  all.section("errors");
  for (const error_code& e : s.errors) all.entry(describe(e));
  all.section("enums");
  all.entry(describe(status_of(s), nullptr));
  for (const enumeration& e : s.enums) all.entry(describe(e, nullptr));
  for (const family& f : s.families) {
    for (const enumeration& e : f.enums) all.entry(describe(e, &f));
  }
  all.section("callbacks");
  for (const callback& c : s.callbacks) all.entry(describe(c));
  all.section("structs");
  for (const structure& t : s.structs) all.entry(describe(s, t));
  all.section("functions");
  const std::vector<const function*> slots = s.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) all.entry(describe(*slots[i], i));
  all.section("operators");
  for (const family& f : s.families) {
    for (const op& o : f.ops) all.entry(describe(s, f, o));
  }
  return all.finished();
}

}  // namespace velo::gen
