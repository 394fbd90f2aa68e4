// Natural alignment, field after field (layout.hpp).
#include "abi/gen/layout.hpp"

#include <algorithm>
#include <map>

#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

extent extent_of_type(const spec& s, const std::string& type) {
  static const std::map<std::string, std::int64_t> plain = {
      {"char", 1},    {"uint8_t", 1},  {"int8_t", 1},   {"uint16_t", 2},
      {"int16_t", 2}, {"int32_t", 4},  {"uint32_t", 4}, {"float", 4},
      {"int64_t", 8}, {"uint64_t", 8}, {"double", 8},   {"velo_status", 4}};
  if (type.find('*') != std::string::npos) return {8, 8};
  const auto found = plain.find(type);
  if (found != plain.end()) return {found->second, found->second};
  const auto named = [&](const auto& entry) { return entry.name == type; };
  if (std::any_of(s.handles.begin(), s.handles.end(), named)) return {8, 8};
  if (std::any_of(s.callbacks.begin(), s.callbacks.end(), named)) return {8, 8};
  if (std::any_of(s.enums.begin(), s.enums.end(), named)) return {4, 4};
  const auto structure = std::find_if(s.structs.begin(), s.structs.end(), named);
  return structure == s.structs.end() ? extent{} : layout_of(s, structure->fields).whole;
}

}  // namespace

extent extent_of(const spec& s, const member& m) {
  extent one;
  if (m.members.empty()) {
    one = extent_of_type(s, m.type);
  } else {
    for (const member& inner : m.members) {
      const extent e = extent_of(s, inner);
      if (e.size == 0) return {};
      one = {std::max(one.size, e.size), std::max(one.alignment, e.alignment)};
    }
  }
  return {one.size * std::max<std::int64_t>(m.count, 1), one.alignment};
}

layout layout_of(const spec& s, const std::vector<member>& fields) {
  layout out;
  const auto up = [](std::int64_t at, std::int64_t to) { return (at + to - 1) / to * to; };
  std::int64_t at = 0;
  for (const member& m : fields) {
    const extent e = extent_of(s, m);
    if (e.size == 0) return {};
    at = up(at, e.alignment);
    out.offsets.push_back(at);
    at += e.size;
    out.whole.alignment = std::max(out.whole.alignment, e.alignment);
  }
  out.whole.size = up(at, out.whole.alignment);
  return out;
}

structure args_of(const op& o) {
  structure t;
  t.name = "velo_" + o.name + "_args";
  t.sized = true;
  t.fields.resize(2);
  t.fields[0].name = "struct_size", t.fields[0].type = "uint32_t";
  t.fields[1].name = "reserved", t.fields[1].type = "uint32_t";
  for (const op_field& f : o.fields) {
    member& m = t.fields.emplace_back();
    m.name = f.name, m.type = field_type(f);
  }
  return t;
}

}  // namespace velo::gen
