// The key "examples" of an operator (read_example.hpp).
//
// {"in": {field: value, ..}, "out": {tensor: value, ..}}. A tensor is a number or nested arrays, or
// {"dtype": .., "values": ..} where it is not float32 (ids: not the first dtype of the field), or
// {"shape": .., "range": [low, high]}, whose numbers are drawn: from -1 to 1 where no range is
// given. An attribute is a number, the name of an enumerator or a list. An output in "in" is what
// the call finds there.
#include "abi/gen/read/example.hpp"

#include <algorithm>

#include "abi/gen/read/rules.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

// Values that an example cannot give: other calls make them, or they consist of several tensors.
bool is_beyond(kind type) {
  return type == kind::handle || type == kind::tensors;
}

// Appends the numbers of nested arrays and finds their shape; every array of a depth is as long.
void read_nested(const node& at, std::size_t depth, example_value& out) {
  if (!at.is_array()) {
    if (depth != out.shape.size()) at.fail("arrays of one depth have one length");
    out.values.push_back(at.number());
    return;
  }
  const std::vector<node> items = at.items();
  const auto length = static_cast<std::int64_t>(items.size());
  if (length == 0) at.fail("a tensor of an example has elements");
  if (depth == out.shape.size() && out.values.empty()) out.shape.push_back(length);
  if (depth >= out.shape.size() || out.shape[depth] != length)
    at.fail("arrays of one depth have one length");
  for (const node& item : items) read_nested(item, depth + 1, out);
}

void read_drawn(const node& at, bool integers, example_value& out) {
  for (const node& size : at["shape"].items()) out.shape.push_back(size.integer());
  if (integers && !at.has("range")) at.fail("integers are drawn from a \"range\"");
  if (!at.has("range")) return;
  const std::vector<node> range = at["range"].items();
  if (range.size() != 2 || range[0].number() > range[1].number())
    at["range"].fail("expected [low, high]");
}

example_value read_tensor(const node& at, const op_field& f) {
  example_value out;
  out.field = f.name;
  out.dtype = f.dtypes.empty() ? "f32" : f.dtypes[0];
  if (!at.is_object()) {
    read_nested(at, 0, out);
    return out;
  }
  if (at.has("values"))
    at.only({"dtype", "values"});
  else
    at.only({"dtype", "shape", "range"});
  if (at.has("dtype")) {
    out.dtype = at.text("dtype");
    check_word(at["dtype"], out.dtype,
               {"f32", "bf16", "f64", "f16", "i32", "i64", "i8", "u8", "u64"});
    if (f.read && std::count(f.dtypes.begin(), f.dtypes.end(), out.dtype) == 0)
      at["dtype"].fail("the field takes none of that dtype");
  }
  if (at.has("values"))
    read_nested(at["values"], 0, out);
  else
    read_drawn(at, out.dtype[0] == 'i' || out.dtype[0] == 'u', out);
  return out;
}

example_value read_attribute(const node& at, const family& home, const op_field& f) {
  example_value out;
  out.field = f.name;
  if (f.type == kind::ints) {
    for (const node& item : at.items()) out.list.push_back(item.integer());
  } else if (f.type == kind::f64) {
    out.literal = real(at.number());
  } else if (f.type == kind::text) {
    out.literal = quote(at.text());
  } else if (f.type == kind::i64 || f.type == kind::boolean) {
    out.literal = std::to_string(at.integer());
  } else if (f.type == kind::enumeration) {
    const std::string word = at.text();
    for (const enumeration& e : home.enums) {
      for (const enumerator& v : e.values) {
        if (e.name == f.enumeration && v.name == word) out.literal = enumerator_name(e.name, word);
      }
    }
    if (out.literal.empty()) at.fail("\"" + f.enumeration + "\" has no \"" + word + "\"");
  } else {
    at.fail("an example gives no handle and no list of tensors");
  }
  return out;
}

void check_keys(const node& at, const op& o) {
  for (const std::string& key : at.keys()) {
    if (std::none_of(o.fields.begin(), o.fields.end(),
                     [&](const op_field& f) { return f.name == key; }))
      at[key.c_str()].fail("no field of this operator");
  }
}

example read_one(const node& at, const family& home, const op& o) {
  at.only({"in", "out"});
  example e;
  check_keys(at["in"], o);
  if (at.has("out")) check_keys(at["out"], o);
  for (const op_field& f : o.fields) {
    const bool tensor = f.type == kind::tensor;
    if (at["in"].has(f.name.c_str())) {
      const node value = at["in"][f.name.c_str()];
      e.in.push_back(tensor ? read_tensor(value, f) : read_attribute(value, home, f));
      if (at.has("out") && tensor && e.in.back().values.empty())
        value.fail("what has a known result is not drawn");
    } else if (tensor && f.read && !f.output && !f.optional) {
      at["in"].fail("the operator needs \"" + f.name + "\"");
    }
    if (!at.has("out")) continue;
    if (at["out"].has(f.name.c_str())) {
      const node value = at["out"][f.name.c_str()];
      if (!f.output) value.fail("no output of this operator");
      e.out.push_back(read_tensor(value, f));
      if (e.out.back().values.empty()) value.fail("a known result has \"values\"");
    } else if (f.output && !f.optional) {
      at["out"].fail("the operator writes \"" + f.name + "\" too");
    }
  }
  return e;
}

}  // namespace

void read_examples(const node& at, const family& home, op& o) {
  bool beyond = false, known = false;
  for (const op_field& f : o.fields) beyond = beyond || (is_beyond(f.type) && !f.optional);
  for (const node& item : at.items("examples")) {
    o.examples.push_back(read_one(item, home, o));
    known = known || !o.examples.back().out.empty();
  }
  if (!known && !beyond) at.fail("\"examples\" has none with a known result (\"out\")");
}

}  // namespace velo::gen
