// Tables that the C boundary compiles in: signatures of all functions, the filled function table,
// the error catalogue.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/text.hpp"

namespace velo::gen {
namespace {

const char* const note =
    "// Generated from abi/spec: change that and build the target `generate`.\n";

// The enumerator of core::value_type for a C type.
std::string value_type(const spec& s, const std::string& type) {
  const std::map<std::string, std::string> plain = {
      {"void", "nothing"},         {"velo_status", "i32"},    {"int32_t", "i32"},
      {"uint32_t", "u32"},         {"int64_t", "i64"},        {"uint64_t", "u64"},
      {"double", "f64"},           {"const char*", "string"}, {"const velo_tensor*", "tensor"},
      {"const velo_ints*", "ints"}};
  const auto found = plain.find(type);
  if (found != plain.end()) return found->second;
  const auto named = [&](const auto& e) { return e.name == type; };
  if (std::any_of(s.handles.begin(), s.handles.end(), named)) return "handle";
  if (std::any_of(s.enums.begin(), s.enums.end(), named)) return "i32";
  return "pointer";
}

std::string thread_name(std::string thread) {
  std::replace(thread.begin(), thread.end(), '-', '_');
  return thread;
}

}  // namespace

std::string emit_functions(const spec& s) {
  std::string out =
      "// Signatures of all exported functions, in the order of struct velo_api; for the inside of "
      "a namespace that\n"
      "// sees core/signature.hpp and velo/api.h, after <cstddef>.\n";
  out += note;
  for (const function* f : s.slots()) {
    if (f->parameters.empty()) continue;
    out += "constexpr parameter_info " + f->slot() + "_parameters[] = {\n";
    for (const parameter& p : f->parameters) {
      out += "    {" + quote(p.name) + ", " + quote(p.type) +
             ", value_type::" + value_type(s, p.type) + ", direction::" + p.direction + ", " +
             (p.nullable ? "true" : "false") + ", " + quote(p.ownership) + "},\n";
    }
    out += "};\n";
  }
  out += "\nconstexpr function_info functions[] = {\n";
  for (const function* f : s.slots()) {
    const std::string list = f->parameters.empty() ? "nullptr" : f->slot() + "_parameters";
    out += "    {" + quote(f->name) + ", value_type::" + value_type(s, f->result) + ", " + list +
           ", " + std::to_string(f->parameters.size()) +
           ", thread_class::" + thread_name(f->thread) + ",\n     " +
           (f->blocking ? "true" : "false") + ", " + std::to_string(f->since) +
           ", offsetof(velo_api, " + f->slot() + ")},\n";
  }
  return out + "};\n";
}

std::string emit_handles(const spec& s) {
  std::string out =
      "// Every kind of handle as VELO_HANDLE(name, text for messages, order in which a context\n"
      "// destroys what it owns; 0: not owned by a context), for a macro of the includer's.\n";
  out += note;
  for (const handle& h : s.handles)
    out += "VELO_HANDLE(" + h.short_name() + ", " + quote(h.article) + ", " +
           std::to_string(h.order) + ")\n";
  return out;
}

std::string emit_api_table(const spec& s) {
  std::string out =
      "// The members of struct velo_api after struct_size: the newest ABI, then the slots in "
      "order.\n";
  out += note;
  out += std::to_string(s.release) + ",\n";
  for (const function* f : s.slots()) out += f->name + ",\n";
  return out;
}

std::string emit_errors(const spec& s) {
  std::string out =
      "// The error catalogue as {code, name, meaning}, for the inside of an initializer after "
      "velo/status.h.\n";
  out += note;
  out += "{VELO_OK, \"VELO_OK\", \"success\"},\n";
  for (const error_code& e : s.errors)
    out += "{" + e.name + ", " + quote(e.name) + ", " + quote(e.doc) + "},\n";
  return out;
}

std::string emit_schedule_kinds(const spec& s) {
  std::string out =
      "// Names of kinds of schedules by their numbers, for the inside of an initializer: "
      "constants\n"
      "// without VELO_SCHEDULE_, in small letters, with hyphens.\n";
  out += note;
  for (const enumeration& e : s.enums) {
    if (e.name != "velo_schedule_kind") continue;
    for (const enumerator& v : e.values) {
      std::string name;
      for (const char c : v.name.substr(std::strlen("VELO_SCHEDULE_")))
        name += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      out += quote(name) + ",\n";
    }
  }
  return out;
}

}  // namespace velo::gen
