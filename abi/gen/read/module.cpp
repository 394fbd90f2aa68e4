// <module>.json: what a module's hand-written headers declare.
#include <algorithm>

#include "abi/gen/read/check_types.hpp"
#include "abi/gen/read/parts.hpp"

namespace velo::gen {
namespace {

void read_headers(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root["headers"].items()) {
    const std::string header = at.text();
    const std::size_t stem = header.size() < 2 ? 0 : header.size() - 2;
    if (header.substr(stem) != ".h") at.fail("expected a header such as \"stream.h\"");
    check_name(at, header.substr(0, stem));
    if (header.rfind("ops_", 0) == 0 || header == "api.h" || header == "velo.h")
      at.fail("\"" + header + "\" is generated or includes the others: it declares nothing");
    check_new(at, names, "header " + header);
    out.headers.push_back(header);
  }
}

// Reads the keys that every entry of a module has.
template <class Entry>
void read_common(const node& at, Entry& out, std::set<std::string>& names) {
  out.name = at.text("name");
  if (out.name.rfind("velo_", 0) != 0) at["name"].fail("public names begin with velo_");
  check_name(at["name"], out.name);
  check_new(at["name"], names, out.name);
  out.doc = at.text("doc");
  check_doc(at["doc"], out.doc);
  out.header = at.text("header");
  if (names.count("header " + out.header) == 0)
    at["header"].fail("no module read so far lists \"" + out.header + "\" in its \"headers\"");
  out.since = parse_release(at["since"]);
}

void read_handles(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root.items("handles")) {
    at.only({"name", "article", "header", "since", "doc", "destroy", "order"});
    handle h;
    read_common(at, h, names);
    h.article = at.text("article");
    if (h.article.rfind("a ", 0) != 0 && h.article.rfind("an ", 0) != 0)
      at["article"].fail("expected \"a\" or \"an\" and what it is, such as \"a stream\"");
    check_doc(at["article"], h.article);
    h.destroy = at.text("destroy");
    if (at.has("order")) {
      h.order = at["order"].integer();
      if (h.order < 1 || h.order > 15)
        at["order"].fail("places in the order of destruction are 1 to 15");
      check_new(at["order"], names, "order " + std::to_string(h.order));
    }
    out.handles.push_back(h);
  }
}

void read_errors(const node& root, spec& out, std::set<std::string>& names) {
  std::int64_t last = 0;
  for (const node& at : root.items("errors")) {
    at.only({"name", "code", "since", "phase", "doc", "remedy"});
    error_code e;
    e.name = at.text("name");
    if (e.name.rfind("VELO_ERR_", 0) != 0) at["name"].fail("error codes begin with VELO_ERR_");
    check_new(at["name"], names, e.name);
    e.code = at["code"].integer();
    if (e.code <= last) at["code"].fail("codes rise; the one before is " + std::to_string(last));
    last = e.code;
    e.since = parse_release(at["since"]);
    e.phase = at.text("phase");
    check_word(at["phase"], e.phase, {"validation", "work"});
    if ((e.code < 32) != (e.phase == "validation"))
      at["phase"].fail("validation codes are below 32, the others not");
    e.doc = at.text("doc");
    check_doc(at["doc"], e.doc);
    e.remedy = at.text("remedy");
    check_doc(at["remedy"], e.remedy);
    out.errors.push_back(e);
  }
}

void read_enums(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root.items("enums")) {
    at.only({"name", "typed", "header", "since", "doc", "values"});
    enumeration e;
    read_common(at, e, names);
    e.typed = at["typed"].boolean();
    for (const node& value : at["values"].items()) {
      const enumerator v = read_enumerator(value, e.since);
      if (v.name.rfind("VELO_", 0) != 0) value["name"].fail("enumerators begin with VELO_");
      check_new(value["name"], names, v.name);
      check_doc(value["doc"], v.doc);
      e.values.push_back(v);
    }
    out.enums.push_back(e);
  }
}

void read_callbacks(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root.items("callbacks")) {
    at.only({"name", "header", "since", "doc", "type"});
    callback c;
    read_common(at, c, names);
    c.type = at.text("type");
    if (c.type.find("(*)") == std::string::npos)
      at["type"].fail("expected a function pointer type with (*)");
    out.callbacks.push_back(c);
  }
}

member read_member(const node& at, unsigned since) {
  at.only({"name", "type", "count", "initial", "since", "doc", "members"});
  member m;
  m.name = at.text("name");
  if (m.name != "struct_size" && m.name != "reserved") check_name(at["name"], m.name);
  m.type = at.text("type");
  m.doc = at.text("doc");
  check_doc(at["doc"], m.doc);
  if (at.has("count")) m.count = at["count"].integer();
  if (m.count < 0 || (at.has("count") && m.count == 0))
    at["count"].fail("expected a positive number of elements");
  if (at.has("initial")) m.initial = at["initial"].dump();
  m.since = at.has("since") ? parse_release(at["since"]) : since;
  for (const node& inner : at.items("members")) m.members.push_back(read_member(inner, m.since));
  if ((m.type == "union") != !m.members.empty())
    at.fail("a union has members, and nothing else has");
  return m;
}

void read_structs(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root.items("structs")) {
    at.only({"name", "header", "since", "sized", "doc", "fields"});
    structure s;
    read_common(at, s, names);
    s.sized = at["sized"].boolean();
    std::set<std::string> fields;
    unsigned last = s.since;
    for (const node& field : at["fields"].items()) {
      s.fields.push_back(read_member(field, s.since));
      check_new(field["name"], fields, s.fields.back().name);
      if (s.fields.back().since < last || (!s.sized && s.fields.back().since > s.since)) {
        field.fail("only a sized struct grows, and only at its end");
      }
      last = s.fields.back().since;
    }
    const bool first =
        !s.fields.empty() && s.fields[0].name == "struct_size" && s.fields[0].type == "uint32_t";
    if (s.sized != first)
      at["fields"].fail("a sized struct, and only such a one, begins with uint32_t struct_size");
    out.structs.push_back(s);
  }
}

parameter read_parameter(const node& at) {
  at.only({"name", "type", "dir", "nullable", "ownership", "doc"});
  parameter p;
  p.name = at.text("name");
  check_name(at["name"], p.name);
  p.type = at.text("type");
  p.direction = at.text("dir", "in");
  check_word(at, p.direction, {"in", "out", "inout"});
  const bool pointer = p.type.find('*') != std::string::npos;
  if (p.direction != "in" && !pointer) at["dir"].fail("only a pointer can carry something out");
  p.nullable = at.boolean("nullable", false);
  p.ownership = at.text("ownership", "borrow");
  check_word(at, p.ownership, {"borrow", "copy", "keep", "own", "take", "static", "buffer"});
  p.doc = at.text("doc", "");
  return p;
}

// A handle that may not be NULL is looked up, which can fail in three ways.
void check_handle_errors(const node& at, const function& f, const spec& s) {
  if (f.result == "void") return;
  for (const parameter& p : f.parameters) {
    const bool looked_up =
        !p.nullable && std::any_of(s.handles.begin(), s.handles.end(),
                                   [&](const auto& h) { return h.name == p.type; });
    for (const char* code : {"NULL", "HANDLE", "STATE"}) {
      if (looked_up && std::find(f.errors.begin(), f.errors.end(), code) == f.errors.end())
        at["errors"].fail("a function that takes a " + p.type + " has the error " + code);
    }
  }
}

void read_functions(const node& root, spec& out, std::set<std::string>& names) {
  for (const node& at : root.items("functions")) {
    at.only({"name", "header", "since", "thread", "blocking", "result", "doc", "params", "errors"});
    function f;
    read_common(at, f, names);
    f.thread = at.text("thread");
    check_word(at["thread"], f.thread, {"any", "per-handle", "per-stream", "init"});
    f.blocking = at.boolean("blocking", false);
    f.result = at.text("result", "velo_status");
    check_word(at, f.result, {"velo_status", "void"});
    std::set<std::string> parameters;
    for (const node& p : at["params"].items()) {
      f.parameters.push_back(read_parameter(p));
      check_new(p["name"], parameters, f.parameters.back().name);
    }
    if ((f.result == "void") == at.has("errors"))
      at.fail("a function has \"errors\" exactly when it returns a status");
    for (const node& e : at.items("errors")) {
      f.errors.push_back(e.text());
      if (names.count("VELO_ERR_" + f.errors.back()) == 0)
        e.fail("no error code VELO_ERR_" + f.errors.back());
    }
    check_handle_errors(at, f, out);
    out.functions.push_back(f);
  }
}

}  // namespace

void read_module(const node& root, const std::string& name, spec& out,
                 std::set<std::string>& names) {
  if (root.text("module") != name) root["module"].fail("the file is named " + name + ".json");
  if (name == "core") {
    root.only({"module", "release", "headers", "handles", "errors", "enums", "callbacks", "structs",
               "functions"});
    out.release = parse_release(root["release"]);
    names.insert({"velo_status", "velo_api", "VELO_OK"});
  } else {
    root.only({"module", "headers", "handles", "enums", "callbacks", "structs", "functions"});
  }
  read_headers(root, out, names);
  read_handles(root, out, names);
  read_errors(root, out, names);
  read_enums(root, out, names);
  read_callbacks(root, out, names);
  read_structs(root, out, names);
  read_functions(root, out, names);
}

void check_module(const node& root, const spec& whole, const std::set<std::string>& names) {
  check_types(root, whole);
  for (const node& at : root.items("handles")) {
    if (names.count(at.text("destroy")) == 0) at["destroy"].fail("no such function");
  }
}

}  // namespace velo::gen
