// velo_gen: reads abi/spec and writes every generated file, or compares them with what is there.
//
//   velo_gen --spec abi/spec --root .          writes the files that changed; new functions
//                                              go to the end of slots.json
//   velo_gen --spec abi/spec --root . --check  names the files that differ, with exit code 1
//   velo_gen --spec abi/spec --gates FOLDER    writes what the ABI gates need into a build's folder
//   velo_gen --spec abi/spec --pages FOLDER    writes the reference's pages, which Sphinx reads
//
// Exit code 2 for a wrong spec or wrong arguments.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "abi/gen/emit/emit.hpp"
#include "abi/gen/read/json.hpp"
#include "abi/gen/read/read.hpp"

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

int write_all(const files& wanted, const std::string& folder) {
  for (const auto& [path, text] : wanted) write(folder + "/" + path, text);
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
  std::map<std::string, std::string> given;
  bool check = false, known = true;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool folder =
        word == "--spec" || word == "--root" || word == "--gates" || word == "--pages";
    if (word == "--check") {
      check = true;
    } else if (folder && i + 1 < count) {
      given[word] = words[++i];
    } else {
      known = false;
    }
  }
  if (!known || given.size() != 2 || given.count("--spec") == 0) {
    std::fprintf(stderr,
                 "usage: velo_gen --spec FOLDER (--root FOLDER [--check] | --gates FOLDER | "
                 "--pages FOLDER)\n");
    return 2;
  }
  using namespace velo::gen;
  const std::string& spec_folder = given["--spec"];
  try {
    if (given.count("--gates") != 0)
      return write_all(emit_for_gates(read_spec(spec_folder)), given["--gates"]);
    if (given.count("--pages") != 0)
      return write_all(emit_pages(read_spec(spec_folder)), given["--pages"]);
    return run(spec_folder, given["--root"], check);
  } catch (const spec_error& error) {
    std::fprintf(stderr, "%s\n", error.text.c_str());
    return 2;
  }
}
