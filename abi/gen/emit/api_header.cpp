// capi/include/velo/api.h: the function table, one slot per function, in bands by release; and
// inclusion of all operators.
#include <algorithm>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

std::string slot_declaration(const function& f) {
  return arrange("  " + f.result + " (*" + f.slot() + ")(", parameter_list(f), ");") + "\n";
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
  std::vector<std::string> headers = s.headers;
  for (const family& f : s.families) headers.push_back("ops_" + f.name + ".h");
  std::sort(headers.begin(), headers.end());
  for (const std::string& h : headers) out += "#include \"velo/" + h + "\"\n";
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
