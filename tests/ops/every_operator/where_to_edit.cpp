// Searches the operator's source in its family's folder, of ops/ or of sched/: a file may hold
// several operators.
#include "tests/ops/every_operator/where_to_edit.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace velo::testing {

std::string source_of(const ops::op_spec& spec) {
  static std::map<std::string, std::string> known;
  std::string& found = known[spec.name];
  if (!found.empty()) return found;
  std::string folder = std::string("ops/") + spec.family;
  if (!std::filesystem::exists(std::string(VELO_SOURCE_DIR "/") + folder))
    folder = std::string("sched/") + spec.family;
  const std::filesystem::path root = VELO_SOURCE_DIR;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.find(std::string(" ") + spec.name + "_operator") != std::string::npos)
      found = entry.path().lexically_relative(root).string();
  }
  return found;
}

std::string where_to_edit(const ops::op_spec& spec) {
  return std::string(spec.name) + ": edit " + source_of(spec) +
         " or what it includes; what it promises is in abi/spec/ops/" + spec.family + ".json";
}

std::string where_to_edit(const std::string& op) {
  ops::op_id id;
  return ops::find_op(op.c_str(), id) ? where_to_edit(ops::spec_of(id)) : op;
}

}  // namespace velo::testing
