// The list of spec files, and what holds across them (read.hpp).
#include "abi/gen/read.hpp"

#include <algorithm>
#include <filesystem>

#include "abi/gen/read_parts.hpp"

namespace velo::gen {

spec read_spec(const std::string& folder) {
  spec out;
  std::set<std::string> names;
  read_core(folder + "/core.json", out, names);
  const document list(folder + "/ops.json");
  const node root(list);
  root.only({"module", "release", "families"});
  if (parse_release(root["release"]) != out.release)
    root["release"].fail("core.json has another release");
  for (const node& at : root["families"].items()) {
    const std::string name = at.text();
    check_name(at, name);
    check_new(at, names, "family " + name);
    read_family(folder + "/ops/" + name + ".json", name, out, names);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/ops")) {
    const std::string file = entry.path().filename().string();
    if (names.count("family " + entry.path().stem().string()) == 0) {
      root["families"].fail("ops/" + file + " is not listed");
    }
  }
  return out;
}

std::vector<const op*> spec::ops() const {
  std::vector<const op*> out;
  for (const family& f : families) {
    for (const op& o : f.ops) out.push_back(&o);
  }
  return out;
}

std::vector<const function*> spec::slots() const {
  std::vector<const function*> out;
  for (const function& f : functions) out.push_back(&f);
  std::stable_sort(out.begin(), out.end(),
                   [](const function* a, const function* b) { return a->since < b->since; });
  return out;
}

}  // namespace velo::gen
