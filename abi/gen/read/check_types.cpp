// Types are checked by their base name: const, struct and stars removed (check_types.hpp). Function
// pointer types are left to the compilers, which see them in the layout lock.
#include "abi/gen/read/check_types.hpp"

#include <algorithm>
#include <set>

#include "abi/gen/layout.hpp"

namespace velo::gen {
namespace {

std::set<std::string> known_types(const spec& s) {
  std::set<std::string> known = {"void",     "char",        "double",   "int32_t",
                                 "uint8_t",  "uint16_t",    "uint32_t", "int64_t",
                                 "uint64_t", "velo_status", "velo_api"};
  for (const auto& entry : s.handles) known.insert(entry.name);
  for (const auto& entry : s.callbacks) known.insert(entry.name);
  for (const auto& entry : s.structs) known.insert(entry.name);
  for (const auto& entry : s.enums) {
    if (entry.typed) known.insert(entry.name);
  }
  return known;
}

void check_type(const node& at, const std::set<std::string>& known) {
  std::string base = at.text();
  if (base.find("(*)") != std::string::npos) return;
  for (const char* prefix : {"const ", "struct "}) {
    if (base.rfind(prefix, 0) == 0) base = base.substr(std::string(prefix).size());
  }
  base = base.substr(0, base.find('*'));
  if (known.count(base) == 0) at.fail("unknown type \"" + base + "\"");
}

void check_members(const node& list, const std::set<std::string>& known) {
  for (const node& field : list.items()) {
    if (field.has("members")) {
      check_members(field["members"], known);
    } else {
      check_type(field["type"], known);
    }
  }
}

}  // namespace

void check_types(const node& root, const spec& s) {
  const std::set<std::string> known = known_types(s);
  for (const node& at : root.items("structs")) {
    check_members(at["fields"], known);
    const std::string name = at.text("name");
    const auto described = std::find_if(s.structs.begin(), s.structs.end(),
                                        [&](const structure& t) { return t.name == name; });
    if (layout_of(s, described->fields).whole.size == 0)
      at["fields"].fail("a field has a type without a size");
  }
  for (const node& f : root.items("functions")) {
    for (const node& p : f["params"].items()) check_type(p["type"], known);
  }
}

}  // namespace velo::gen
