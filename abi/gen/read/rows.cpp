// The key "rows" of an operator (read_rows.hpp): which axes of its tensors are independent.
//
// Rules {"axes": {tensor: "r... N", ..}, "where": {attribute: [value, ..]}}, of which the first
// that fits a call holds. A tensor's axes are names in order, with ... for any number of axes, with
// ? where the size may be 1 and then stands for all. A name in lower case is independent: an entry
// of the outputs along it needs no other entry of the inputs along it, and an output without it
// holds the sum over its entries. A name in upper case is taken whole. A rule fits calls without
// the tensors that it leaves out, and with one of the values that `where` lists for an attribute.
#include "abi/gen/read/rows.hpp"

#include <algorithm>
#include <set>

#include "abi/gen/read/rules.hpp"

namespace velo::gen {
namespace {

const op_field* find(const op& o, const std::string& name) {
  const auto found = std::find_if(o.fields.begin(), o.fields.end(),
                                  [&](const op_field& f) { return f.name == name; });
  return found == o.fields.end() ? nullptr : &*found;
}

// One axis: letters of one case, then "..." or "?".
void check_axis(const node& at, const std::string& axis, std::set<std::string>& names) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto end = std::find_if_not(axis.begin(), axis.end(), is_letter);
  const std::string name(axis.begin(), end), rest(end, axis.end());
  const auto upper = std::count_if(name.begin(), name.end(), is_upper);
  if (name.empty() || (upper != 0 && upper != static_cast<std::ptrdiff_t>(name.size())) ||
      (!rest.empty() && rest != "..." && (rest != "?" || upper != 0)))
    at.fail("\"" + axis + "\" is no axis: expected r, r..., r? (independent), N or N... (whole)");
  check_new(at, names, name);
}

void check_axes(const node& at, const op& o) {
  for (const std::string& name : at.keys()) {
    const op_field* f = find(o, name);
    if (f == nullptr || f->type != kind::tensor)
      at[name.c_str()].fail("\"" + name + "\" is no tensor of this operator");
    std::set<std::string> names;
    const std::string axes = at.text(name.c_str());
    for (std::size_t first = 0; first < axes.size();) {
      const std::size_t end = std::min(axes.find(' ', first), axes.size());
      check_axis(at[name.c_str()], axes.substr(first, end - first), names);
      first = end + 1;
    }
  }
  for (const op_field& f : o.fields) {
    if (f.type == kind::tensor && !f.optional && !at.has(f.name.c_str()))
      at.fail("the tensor " + f.name + " has no axes");
  }
}

void check_value(const node& at, const family& home, const op_field& f) {
  if (f.type == kind::f64) {
    at.number();
    return;
  }
  if (f.type != kind::enumeration) {
    if (f.type == kind::boolean) check_word(at, std::to_string(at.integer()), {"0", "1"});
    at.integer();
    return;
  }
  for (const enumeration& e : home.enums) {
    if (e.name != f.enumeration) continue;
    for (const enumerator& v : e.values)
      if (v.name == at.text()) return;
  }
  at.fail("the enumeration \"" + f.enumeration + "\" has no \"" + at.text() + "\"");
}

void check_rule(const node& rule, const family& home, const op& o) {
  rule.only({"axes", "where"});
  check_axes(rule["axes"], o);
  if (!rule.has("where")) return;
  const node where = rule["where"];
  for (const std::string& name : where.keys()) {
    const op_field* f = find(o, name);
    const node values = where[name.c_str()];
    if (f == nullptr || (f->type != kind::i64 && f->type != kind::f64 && f->type != kind::boolean &&
                         f->type != kind::enumeration))
      values.fail("\"" + name + "\" is no number or enumeration of this operator");
    for (const node& value : values.items()) check_value(value, home, *f);
  }
}

}  // namespace

void check_rows(const node& at, const family& home, const op& o) {
  for (const node& rule : at.items("rows")) check_rule(rule, home, o);
}

}  // namespace velo::gen
