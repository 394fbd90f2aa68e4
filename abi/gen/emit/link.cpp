// Input of the linker: the version script, and a library of the same names with empty bodies.
#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {

std::string emit_map(const spec& s) {
  std::string out =
      "# The exported names, one node per release; a released node never changes.\n"
      "# Generated from abi/spec: change that and build the target `generate`.\n";
  std::string before;
  const std::vector<const function*> slots = s.slots();
  for (std::size_t i = 0; i < slots.size();) {
    const unsigned since = slots[i]->since;
    const std::string node = "VELO_" + release(since);
    out += node + " {\n  global:\n";
    std::string header;
    for (; i < slots.size() && slots[i]->since == since; ++i) {
      if (slots[i]->header != header) out += "    # velo/" + slots[i]->header + "\n";
      header = slots[i]->header;
      out += "    " + slots[i]->name + ";\n";
    }
    if (before.empty()) out += "  local:\n    *;\n";
    out += "}" + before + ";\n";
    before = " " + node;
  }
  return out;
}

std::string emit_stub(const spec& s) {
  std::string out =
      comment({"A library with the exported names of this release and nothing behind them: link "
               "tests use it as "
               "the old or the new side.",
               "", "Generated from abi/spec: change that and build the target `generate`."});
  unsigned band = 0;
  for (const function* f : s.slots()) {
    if (f->since != band) out += "\n/* ABI " + release(f->since) + " */\n";
    band = f->since;
    out += f->result == "void" ? "void " + f->name + "(void) {}\n"
                               : "int " + f->name + "(void) { return 0; }\n";
  }
  return out;
}

}  // namespace velo::gen
