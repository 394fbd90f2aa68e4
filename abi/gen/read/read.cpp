// The list of spec files, and what holds across them (read.hpp).
#include "abi/gen/read/read.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "abi/gen/read/parts.hpp"

namespace velo::gen {
namespace {

// Puts the functions in the order of slots.json, which only grows at its end: an operator may join
// its family anywhere, a function its header, and no slot moves. Functions that the list lacks come
// last.
void order_slots(const std::string& file, spec& out, missing_slots missing) {
  const document list(file);
  const node root(list);
  root.only({"module", "functions"});
  std::vector<function> ordered;
  for (const node& at : root["functions"].items()) {
    const std::string name = at.text();
    const auto found = std::find_if(out.functions.begin(), out.functions.end(),
                                    [&](const function& f) { return f.name == name; });
    if (found == out.functions.end()) at.fail("no function of that name, or its second slot");
    if (!ordered.empty() && found->since < ordered.back().since)
      at.fail("a slot of an older release behind one of a newer");
    ordered.push_back(std::move(*found));
    out.functions.erase(found);
  }
  if (!out.functions.empty() && missing == missing_slots::refuse) {
    root["functions"].fail("\"" + out.functions.front().name +
                           "\" has no slot yet: build the target `generate`");
  }
  std::move(out.functions.begin(), out.functions.end(), std::back_inserter(ordered));
  out.functions = std::move(ordered);
}

// Every module that has a file, core first: the others stand on it, and may name each other's
// types.
std::vector<std::string> modules_in(const std::string& folder) {
  std::set<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") others.insert(entry.path().stem().string());
  }
  for (const char* known : {"core", "ops", "slots"}) others.erase(known);
  std::vector<std::string> all = {"core"};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

void read_modules(const std::string& folder, spec& out, std::set<std::string>& names) {
  std::vector<std::unique_ptr<document>> files;
  for (const std::string& name : modules_in(folder)) {
    files.push_back(std::make_unique<document>(folder + "/" + name + ".json"));
    read_module(node(*files.back()), name, out, names);
  }
  for (const auto& file : files) check_module(node(*file), out, names);
}

}  // namespace

spec read_spec(const std::string& folder, missing_slots missing) {
  spec out;
  std::set<std::string> names;
  read_modules(folder, out, names);
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
  order_slots(folder + "/slots.json", out, missing);
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/ops")) {
    const std::string file = entry.path().filename().string();
    if (names.count("family " + entry.path().stem().string()) == 0) {
      root["families"].fail("ops/" + file + " is not listed");
    }
  }
  return out;
}

std::string slots_text(const spec& s) {
  std::string out = "{\n  \"module\": \"slots\",\n  \"functions\": [\n";
  for (const function& f : s.functions)
    out += "    \"" + f.name + (&f == &s.functions.back() ? "\"\n" : "\",\n");
  return out + "  ]\n}\n";
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
  return out;
}

}  // namespace velo::gen
