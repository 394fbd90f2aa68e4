// ops/<family>.json: operators, their fields and enumerations.
#include <algorithm>
#include <map>

#include "abi/gen/emit/formula.hpp"
#include "abi/gen/read/example.hpp"
#include "abi/gen/read/parts.hpp"
#include "abi/gen/read/rows.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

const std::map<std::string, kind>& kinds() {
  static const std::map<std::string, kind> map = {
      {"tensor", kind::tensor}, {"tensors", kind::tensors},
      {"handle", kind::handle}, {"i64", kind::i64},
      {"f64", kind::f64},       {"bool", kind::boolean},
      {"ints", kind::ints},     {"enumeration", kind::enumeration},
      {"text", kind::text}};
  return map;
}

// Errors any operator can give; a spec entry adds others.
const std::vector<std::string> usual_errors = {
    "NULL",   "HANDLE", "STRUCT",  "ARGUMENT",    "RANK",  "SHAPE", "DTYPE",
    "LAYOUT", "DEVICE", "OVERLAP", "UNSUPPORTED", "STATE", "MEMORY"};

// Refuses text that a page would set as a formula and that is none.
void check_formulas(const node& at, const std::string& line) {
  try {
    mathml(formulas_of(line));
  } catch (const formula_error& error) {
    at.fail(error.text);
  }
}

std::vector<std::string> read_doc(const node& at) {
  std::vector<std::string> doc;
  for (const node& line : at["doc"].items()) {
    doc.push_back(line.text());
    check_doc(line, doc.back());
    check_formulas(line, doc.back());
  }
  if (doc.empty()) at["doc"].fail("the text is empty");
  return doc;
}

enumeration read_enum(const node& at, std::set<std::string>& names) {
  at.only({"name", "since", "doc", "values"});
  enumeration e;
  e.name = at.text("name");
  check_name(at["name"], e.name);
  check_new(at["name"], names, "enum " + e.name);
  e.doc = at.text("doc");
  check_doc(at["doc"], e.doc);
  if (at.has("since")) e.since = parse_release(at["since"]);
  std::set<std::string> values;
  for (const node& value : at["values"].items()) {
    const enumerator v = read_enumerator(value, e.since);
    check_name(value["name"], v.name);
    check_new(value["name"], values, v.name);
    check_doc(value["doc"], v.doc);
    for (const enumerator& other : e.values) {
      if (other.value == v.value)
        value["value"].fail("\"" + other.name + "\" has this value already");
    }
    if (!e.values.empty() && v.since < e.values.back().since) {
      value.fail("enumerators only grow at the end: this one is older than the one before");
    }
    e.values.push_back(v);
  }
  if (e.values.empty()) at["values"].fail("an enumeration without enumerators");
  return e;
}

void read_range(const node& at, op_field& f) {
  f.has_minimum = at.has("min");
  f.has_maximum = at.has("max");
  if (f.has_minimum) f.minimum = at["min"].number();
  if (f.has_maximum) f.maximum = at["max"].number();
  if (f.has_minimum && f.has_maximum && f.minimum > f.maximum) at["min"].fail("min is above max");
  const double value = f.type == kind::i64 ? static_cast<double>(f.default_int) : f.default_real;
  if ((f.has_minimum && value < f.minimum) || (f.has_maximum && value > f.maximum)) {
    at["default"].fail("the default is outside its own range");
  }
}

void read_default(const node& at, const family& home, op_field& f) {
  switch (f.type) {
    case kind::i64:
      f.default_int = at["default"].integer();
      read_range(at, f);
      return;
    case kind::f64:
      f.default_real = at["default"].number();
      read_range(at, f);
      return;
    case kind::boolean:
      f.default_int = at["default"].integer();
      if (f.default_int != 0 && f.default_int != 1) at["default"].fail("a bool is 0 or 1");
      return;
    case kind::enumeration: {
      f.enumeration = at.text("enum");
      f.default_name = at.text("default");
      for (const enumeration& e : home.enums) {
        if (e.name != f.enumeration) continue;
        for (const enumerator& v : e.values) {
          if (v.name != f.default_name) continue;
          f.default_int = v.value;
          return;
        }
        at["default"].fail("the enumeration \"" + e.name + "\" has no \"" + f.default_name + "\"");
      }
      at["enum"].fail("this family's \"enums\" has no \"" + f.enumeration + "\"");
    }
    default:
      return;
  }
}

void read_handle(const node& at, const spec& whole, op_field& f) {
  f.handle = at.text("handle");
  for (const handle& h : whole.handles) {
    if (h.name == f.handle) return;
  }
  at["handle"].fail("no module declares a handle \"" + f.handle + "\"");
}

// A list cannot be an output: the operator's shapes do not say how many there are.
void read_tensor(const node& at, op_field& f) {
  const std::string direction = at.text("dir");
  if (f.type == kind::tensors) {
    check_word(at["dir"], direction, {"in", "inout"});
  } else {
    check_word(at["dir"], direction, {"in", "out", "inout"});
  }
  f.output = direction != "in";
  f.read = direction != "out";
  const std::string layout = at.text("layout", "compact");
  check_word(at, layout, {"compact", "strided"});
  f.strided = layout == "strided";
  f.dtypes = at.texts("dtypes");
  for (const node& d : at.items("dtypes")) {
    check_word(d, d.text(),
               {"f32", "bf16", "f64", "f16", "i32", "i64", "i8", "i4", "u8", "u64", "bool"});
  }
  if (f.read && f.dtypes.empty()) at.fail("a tensor that is read needs \"dtypes\"");
  f.alias = at.texts("alias");
}

op_field read_field(const node& at, const family& home, const spec& whole, unsigned op_since) {
  op_field f;
  const std::string type = at.text("kind");
  const auto found = kinds().find(type);
  if (found == kinds().end()) {
    check_word(
        at["kind"], type,
        {"tensor", "tensors", "handle", "i64", "f64", "bool", "enumeration", "ints", "text"});
  }
  f.type = found->second;
  switch (f.type) {
    case kind::tensor:
    case kind::tensors:
      at.only({"name", "kind", "dir", "optional", "dtypes", "layout", "alias", "since", "doc"});
      read_tensor(at, f);
      break;
    case kind::handle:
      at.only({"name", "kind", "handle", "optional", "since", "doc"});
      read_handle(at, whole, f);
      break;
    case kind::ints:
    case kind::text:
      at.only({"name", "kind", "optional", "since", "doc"});
      break;
    case kind::i64:
    case kind::f64:
      at.only({"name", "kind", "default", "min", "max", "since", "doc"});
      break;
    case kind::boolean:
      at.only({"name", "kind", "default", "since", "doc"});
      break;
    case kind::enumeration:
      at.only({"name", "kind", "enum", "default", "since", "doc"});
      break;
  }
  f.name = at.text("name");
  check_name(at["name"], f.name);
  // Adapters give these names to parameters of their own, beside the attributes.
  if (f.type != kind::tensor && f.type != kind::tensors &&
      (f.name == "tensors" || f.name == "outputs" || f.name == "gradients"))
    at["name"].fail("\"" + f.name + "\" is a parameter of the adapters");
  f.doc = at.text("doc");
  check_doc(at["doc"], f.doc);
  f.since = at.has("since") ? parse_release(at["since"]) : op_since;
  f.json = at.dump();
  if (is_pointer(f)) f.optional = at.boolean("optional", false);
  read_default(at, home, f);
  return f;
}

void check_fields(const node& at, const op& o) {
  const std::vector<node> nodes = at["fields"].items();
  std::set<std::string> names;
  unsigned last = o.since;
  for (std::size_t i = 0; i < o.fields.size(); ++i) {
    const op_field& f = o.fields[i];
    check_new(nodes[i]["name"], names, f.name);
    if (f.since < last)
      nodes[i].fail("fields only grow at the end: this one is older than the one before");
    if (f.since > o.since && !f.optional && f.output)
      nodes[i].fail("an output added later must be optional");
    last = f.since;
    for (const std::string& alias : f.alias) {
      const auto target = std::find_if(o.fields.begin(), o.fields.end(),
                                       [&](const op_field& g) { return g.name == alias; });
      if (target == o.fields.end() || target->type != f.type || &*target == &f) {
        nodes[i]["alias"].fail("\"" + alias + "\" is no other " + kind_name(f.type) +
                               " of this operator");
      }
      if (target - o.fields.begin() >= 32)
        nodes[i]["alias"].fail("only the first 32 fields can be aliased");
    }
  }
  if (o.fields.empty()) at["fields"].fail("an operator without fields");
  if (o.fields.size() > 48) at["fields"].fail("more than 48 fields");
}

bool is_floating(const std::string& dtype) {
  return dtype == "f32" || dtype == "bf16" || dtype == "f64" || dtype == "f16";
}

// {"float32": {"relative": 1e-6}, "inputs": [1e-18, 1e18], "text": ".."}: a bound for every
// floating dtype that an output lists, and the magnitudes of inputs for which they hold: all unless
// given.
void read_bounds(const node& at, op& o) {
  at.only({"float32", "bfloat16", "float64", "float16", "float32 of mixed", "inputs", "text"});
  o.accuracy = at.text("text");
  check_doc(at["text"], o.accuracy);
  if (at.has("inputs")) {
    const std::vector<node> ends = at["inputs"].items();
    if (ends.size() != 2) at["inputs"].fail("the least and the largest magnitude");
    o.least_input = ends[0].number(), o.most_input = ends[1].number();
    if (!(0 <= o.least_input && o.least_input < o.most_input)) at["inputs"].fail("no range");
    o.accuracy = "for inputs that are 0 or of magnitude " + real(o.least_input) + " to " +
                 real(o.most_input) + ": " + o.accuracy;
  }
  const auto read = [&](const char* key, const char* dtype, bool mixed) {
    if (!at.has(key)) return;
    const node numbers = at[key];
    numbers.only({"absolute", "relative", "largest"});
    error_bound bound{dtype, mixed};
    for (const auto& [name, to] : {std::pair<const char*, double*>{"absolute", &bound.absolute},
                                   {"relative", &bound.relative},
                                   {"largest", &bound.largest}}) {
      if (numbers.has(name)) *to = numbers[name].number();
      if (*to < 0) numbers[name].fail("a bound is 0 or more");
    }
    o.bounds.push_back(bound);
  };
  read("float32", "f32", false);
  read("float32 of mixed", "f32", true);
  read("bfloat16", "bf16", false);
  read("float16", "f16", false);
  read("float64", "f64", false);
  for (const op_field& f : o.fields) {
    for (const std::string& dtype : f.dtypes) {
      if (f.output && is_floating(dtype) && !at.has(dtype_name(dtype).c_str()))
        at.fail("no bound for " + dtype_name(dtype) + ", which " + f.name + " may be");
    }
  }
}

// The doc of the key "row_invariant", which reaches hosts in the self-description.
const char* const row_invariance =
    "A row of the result has the same bits among any number of rows: of a whole sequence, of its "
    "chunks or one by one.";

op read_op(const node& at, const family& home, const spec& whole, std::set<std::string>& names) {
  at.only({"name", "gradient_of", "aliases", "since", "thread", "blocking", "doc", "source",
           "error_bound", "bytes", "row_invariant", "errors", "rows", "fields", "examples"});
  op o;
  o.name = at.text("name");
  check_name(at["name"], o.name);
  check_new(at["name"], names, "velo_" + o.name);
  check_new(at["name"], names, "op " + o.name);
  o.aliases = at.texts("aliases");
  for (const node& alias : at.items("aliases")) {
    check_name(alias, alias.text());
    check_new(alias, names, "op " + alias.text());
  }
  o.since = parse_release(at["since"]);
  o.thread = at.text("thread");
  check_word(at["thread"], o.thread, {"per-stream"});
  o.doc = read_doc(at);
  if (at.boolean("row_invariant", false)) o.doc.push_back(row_invariance);
  o.source = at.text("source");
  check_doc(at["source"], o.source);
  o.bytes = at.text("bytes");
  check_doc(at["bytes"], o.bytes);
  o.errors = usual_errors;
  for (const node& e : at.items("errors")) {
    if (names.count("VELO_ERR_" + e.text()) == 0) e.fail("no error code VELO_ERR_" + e.text());
    o.errors.push_back(e.text());
  }
  for (const node& field : at["fields"].items())
    o.fields.push_back(read_field(field, home, whole, o.since));
  check_fields(at, o);
  read_bounds(at["error_bound"], o);
  read_examples(at, home, o);
  check_rows(at, home, o);
  o.gradient_of = at.text("gradient_of", "");
  o.json = at.dump("fields");
  return o;
}

function entry_of(const op& o, const std::string& family_name) {
  function f;
  f.name = "velo_" + o.name;
  f.doc = o.doc[0];
  f.header = "ops_" + family_name + ".h";
  f.since = o.since;
  f.thread = o.thread;
  f.blocking = true;  // on the inline stream
  f.result = "velo_status";
  f.parameters = {{"stream", "velo_stream", "", "in", "borrow", false},
                  {"args", "const velo_" + o.name + "_args*", "", "in", "copy", false}};
  f.errors = o.errors;
  return f;
}

}  // namespace

void read_family(const std::string& file, const std::string& name, spec& out,
                 std::set<std::string>& names) {
  const document source(file);
  const node root(source);
  root.only({"name", "doc", "enums", "ops"});
  family home;
  home.name = root.text("name");
  if (home.name != name) root["name"].fail("the file is listed as \"" + name + "\"");
  home.doc = read_doc(root);
  for (const node& at : root.items("enums")) home.enums.push_back(read_enum(at, names));
  for (const node& at : root["ops"].items()) {
    home.ops.push_back(read_op(at, home, out, names));
    const op& o = home.ops.back();
    if (!o.gradient_of.empty() && names.count("op " + o.gradient_of) == 0) {
      at["gradient_of"].fail("no operator \"" + o.gradient_of + "\" before this one");
    }
    out.functions.push_back(entry_of(o, home.name));
  }
  out.families.push_back(std::move(home));
}

}  // namespace velo::gen
