// velo_gen: reads abi/spec and writes every generated file, or compares them with what is there.
//
//   velo_gen --spec abi/spec --root .          writes the files that changed, and adds new functions
//   to the end of slots.json
//   velo_gen --spec abi/spec --root . --check  names the files that differ; exit code 1 when there
//   are any
//   velo_gen --spec abi/spec --gates FOLDER    writes what the ABI gates need into a build's folder
//
// Exit code 2 for a wrong spec or wrong arguments.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "abi/gen/emit.hpp"
#include "abi/gen/json.hpp"
#include "abi/gen/read.hpp"

namespace velo::gen {
namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Says where two texts part: the first line that differs.
void report(const std::string& path, const std::string& have, const std::string& want) {
  std::istringstream a(have), b(want);
  std::string left, right;
  int line = 0;
  do {
    ++line;
    left.clear();
    right.clear();
    std::getline(a, left);
    std::getline(b, right);
  } while (left == right && (a.good() || b.good()));
  std::fprintf(stderr, "%s:%d differs from the spec\n  file: %s\n  spec: %s\n", path.c_str(), line,
               left.c_str(), right.c_str());
}

void write(const std::string& file, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw spec_error{file + ": cannot be written"};
}

// Files that an earlier spec produced and this one does not: headers of families, anything
// generated.
std::vector<std::string> leftovers(const std::string& root, const files& wanted) {
  std::vector<std::string> out;
  for (const std::string folder :
       {"abi/generated/", "capi/include/velo/", "capi/adapters/generated/"}) {
    if (!std::filesystem::is_directory(root + "/" + folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root + "/" + folder)) {
      const std::string name = entry.path().filename().string();
      const bool ours = folder != "capi/include/velo/" || name.rfind("ops_", 0) == 0;
      if (ours && wanted.count(folder + name) == 0) out.push_back(folder + name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

int write_for_gates(const std::string& spec_folder, const std::string& folder) {
  for (const auto& [path, text] : emit_for_gates(read_spec(spec_folder)))
    write(folder + "/" + path, text);
  return 0;
}

int run(const std::string& spec_folder, const std::string& root, bool check) {
  const spec read = read_spec(spec_folder, check ? missing_slots::refuse : missing_slots::append);
  const std::string slots = spec_folder + "/slots.json";
  if (!check && contents(slots) != slots_text(read)) {
    write(slots, slots_text(read));
    std::printf("%s\n", slots.c_str());
  }
  const files wanted = emit_all(read);
  int differing = 0;
  for (const auto& [path, want] : wanted) {
    const std::string have = contents(root + "/" + path);
    if (have == want) continue;
    ++differing;
    if (check) {
      report(path, have, want);
    } else {
      write(root + "/" + path, want);
      std::printf("%s\n", path.c_str());
    }
  }
  for (const std::string& path : leftovers(root, wanted)) {
    ++differing;
    if (check) {
      std::fprintf(stderr, "%s: nothing in the spec produces this file\n", path.c_str());
    } else {
      std::filesystem::remove(root + "/" + path);
      std::printf("%s (removed)\n", path.c_str());
    }
  }
  if (!check || differing == 0) return 0;
  std::fprintf(stderr, "Build the target `generate` and commit what it writes.\n");
  return 1;
}

}  // namespace
}  // namespace velo::gen

int main(int count, char** words) {
  std::string spec_folder, root, gates;
  bool check = false;
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(words[i], "--spec") == 0 && more) {
      spec_folder = words[++i];
    } else if (std::strcmp(words[i], "--root") == 0 && more) {
      root = words[++i];
    } else if (std::strcmp(words[i], "--gates") == 0 && more) {
      gates = words[++i];
    } else if (std::strcmp(words[i], "--check") == 0) {
      check = true;
    } else {
      spec_folder.clear();
      break;
    }
  }
  if (spec_folder.empty() || root.empty() == gates.empty()) {
    std::fprintf(stderr,
                 "usage: velo_gen --spec FOLDER (--root FOLDER [--check] | --gates FOLDER)\n");
    return 2;
  }
  try {
    return gates.empty() ? velo::gen::run(spec_folder, root, check)
                         : velo::gen::write_for_gates(spec_folder, gates);
  } catch (const velo::gen::spec_error& error) {
    std::fprintf(stderr, "%s\n", error.text.c_str());
    return 2;
  }
}
