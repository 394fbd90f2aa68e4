// The self-description: the JSON document behind velo_describe, as C string pieces of one entry
// each.
#include "abi/gen/emit.hpp"
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

std::string describe(const function& f) {
  std::vector<std::string> params, errors;
  for (const parameter& p : f.parameters) {
    params.push_back(object({pair("name", quote(p.name)), pair("type", quote(p.type)),
                             pair("dir", quote(p.direction)), pair("nullable", flag(p.nullable)),
                             pair("ownership", quote(p.ownership))}));
  }
  for (const std::string& e : f.errors) errors.push_back(quote(e));
  return object({pair("name", quote(f.name)), pair("header", quote(f.header)),
                 pair("since", quote(release(f.since))), pair("result", quote(f.result)),
                 pair("thread", quote(f.thread)), pair("blocking", flag(f.blocking)),
                 pair("doc", quote(f.doc)), pair("params", array(params)),
                 pair("errors", array(errors))});
}

std::string describe(const member& m) {
  std::vector<std::string> parts = {pair("name", quote(m.name)), pair("type", quote(m.type))};
  if (m.count > 0) parts.push_back(pair("count", std::to_string(m.count)));
  if (!m.members.empty()) {
    std::vector<std::string> inner;
    for (const member& i : m.members) inner.push_back(describe(i));
    parts.push_back(pair("members", array(inner)));
  }
  parts.push_back(pair("doc", quote(m.doc)));
  return object(parts);
}

std::string describe(const structure& s) {
  std::vector<std::string> fields;
  for (const member& m : s.fields) fields.push_back(describe(m));
  return object({pair("name", quote(s.name)), pair("header", quote(s.header)),
                 pair("since", quote(release(s.since))), pair("sized", flag(s.sized)),
                 pair("doc", quote(s.doc)), pair("fields", array(fields))});
}

std::string describe(const enumeration& e, const std::string& header) {
  std::vector<std::string> values;
  for (const enumerator& v : e.values) {
    values.push_back(object({pair("name", quote(v.name)), pair("value", std::to_string(v.value)),
                             pair("doc", quote(v.doc))}));
  }
  return object({pair("name", quote(e.name)), pair("header", quote(header)),
                 pair("since", quote(release(e.since))), pair("doc", quote(e.doc)),
                 pair("values", array(values))});
}

std::string describe(const handle& h) {
  return object({pair("name", quote(h.name)), pair("since", quote(release(h.since))),
                 pair("destroy", quote(h.destroy)), pair("doc", quote(h.doc))});
}

std::string describe(const error_code& e) {
  return object({pair("name", quote(e.name)), pair("code", std::to_string(e.code)),
                 pair("phase", quote(e.phase)), pair("doc", quote(e.doc)),
                 pair("remedy", quote(e.remedy))});
}

// The spec's own entry of an operator, with what follows from its place put in front.
std::string describe(const family& home, const op& o) {
  return "{" + pair("family", quote(home.name)) + "," + pair("function", quote("velo_" + o.name)) +
         "," + pair("args", quote("velo_" + o.name + "_args")) + "," + o.json.substr(1);
}

// One piece per entry, so that no literal grows beyond what compilers take.
class pieces {
 public:
  void section(const std::string& key) {
    text_ += "    " + quote((open_ ? "]," : "") + pair(key, "[")) + ",\n";
    open_ = true;
    first_ = true;
  }
  void entry(const std::string& json) {
    text_ += "    " + quote((first_ ? "" : ",") + json) + ",\n";
    first_ = false;
  }
  void raw(const std::string& json) { text_ += "    " + quote(json) + ",\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool open_ = false, first_ = true;
};

}  // namespace

std::string emit_describe(const spec& s) {
  pieces before;
  before.raw("{" + pair("abi", quote(release(s.release))) + ",");
  before.section("handles");
  for (const handle& h : s.handles) before.entry(describe(h));
  before.section("errors");
  for (const error_code& e : s.errors) before.entry(describe(e));
  before.section("enums");
  for (const enumeration& e : s.enums) before.entry(describe(e, e.header));
  for (const family& f : s.families) {
    for (const enumeration& e : f.enums) before.entry(describe(e, "ops_" + f.name + ".h"));
  }
  before.section("structs");
  for (const structure& t : s.structs) before.entry(describe(t));
  before.section("functions");
  for (const function* f : s.slots()) before.entry(describe(*f));
  before.section("operators");
  std::string out =
      "// The self-description as JSON: all of describe_before, the entries of describe_operators "
      "(in the order of op_ids.inc)\n"
      "// with commas between them, then describe_after.\n"
      "// Generated from abi/spec: change that and build the target `generate`.\n";
  out += "constexpr const char* describe_before[] = {\n" + before.text() + "};\n\n";
  out += "constexpr const char* describe_operators[] = {\n";
  for (const family& f : s.families) {
    out += "    // " + f.name + "\n";
    for (const op& o : f.ops) out += "    " + quote(describe(f, o)) + ",\n";
  }
  return out + "};\n\nconstexpr const char* describe_after = \"]}\";\n";
}

}  // namespace velo::gen
