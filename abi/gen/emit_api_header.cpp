// capi/include/velo/api.h: the function table, one slot per function, in bands by release; and
// inclusion of all operators.
#include <algorithm>

#include "abi/gen/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

std::string slot_declaration(const function& f) {
  const std::string head = "  " + f.result + " (*" + f.slot() + ")(";
  if (f.parameters.empty()) return head + "void);\n";
  std::vector<std::string> parts;
  for (const parameter& p : f.parameters) parts.push_back(declare(p.type, p.name));
  const std::string flat = head + join(parts, ", ") + ");";
  if (flat.size() <= columns) return flat + "\n";
  const std::string indent(head.size(), ' ');
  std::string body = fill(parts, indent).substr(indent.size());
  bool long_line = false;  // a parameter list that does not fit beside the name goes below it
  std::size_t start = 0;
  for (const std::string all = head + body + ");"; start < all.size();) {
    const std::size_t end = std::min(all.find('\n', start), all.size());
    long_line = long_line || end - start > columns;
    start = end + 1;
  }
  if (long_line) return head + "\n" + fill(parts, "      ") + ");\n";
  return head + body + ");\n";
}

}  // namespace

std::string emit_api_header(const spec& s) {
  std::vector<std::string> text = {
      "All functions of velo as one table: what a program uses that opens the library itself.", "",
      "velo_get_api gives the table. It begins with its size; slots are never removed or "
      "reordered, each release appends a band. "
      "A function withdrawn from a later release keeps its slot and answers VELO_ERR_UNSUPPORTED; "
      "no slot within struct_size is "
      "NULL. The functions are the exported ones; a slot is named as its function without velo_.",
      "", "Generated from abi/spec: change that and build the target `generate`."};
  std::string out = comment(text) + "#ifndef VELO_API_H\n#define VELO_API_H\n\n";
  std::vector<std::string> headers = {"context", "introspect", "pack",   "plugin",
                                      "status",  "stream",     "tensor", "types"};
  for (const family& f : s.families) headers.push_back("ops_" + f.name);
  std::sort(headers.begin(), headers.end());
  for (const std::string& h : headers) out += "#include \"velo/" + h + ".h\"\n";
  out += "\nVELO_BEGIN_C\n\nstruct velo_api {\n";
  out += "  uint32_t struct_size; /* bytes of the table this library fills */\n";
  out += "  uint32_t abi;         /* newest ABI of this library, major * 100 + minor */\n";
  unsigned state = 100, band = 0;
  std::string header;
  for (const function* f : s.slots()) {
    if (f->since != band) {
      out += guard(state, f->since) + "\n  /* ==== ABI " + release(f->since) + " ==== */\n";
      band = f->since;
      header.clear();
    }
    if (f->header != header) {
      header = f->header;
      out += "\n  /* velo/" + header + " */\n";
    }
    out += slot_declaration(*f);
  }
  out += guard(state, 100);
  return out + "};\n\nVELO_END_C\n\n#endif\n";
}

}  // namespace velo::gen
