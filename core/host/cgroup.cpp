// Reading the files of control groups, folder by folder up to the root.
#include "core/host/cgroup.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "core/round_up.hpp"

namespace velo::core {
namespace {

struct closes {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, closes>;  // closed also if memory runs out

// Reads up to two numbers at the start of a file; returns how many it read.
int read_numbers(const std::string& path, long long& first, long long& second) {
  const open_file file(std::fopen(path.c_str(), "re"));
  return file == nullptr ? 0 : std::fscanf(file.get(), "%lld %lld", &first, &second);
}
bool read_number(const std::string& path, long long& number) {
  long long unused = 0;
  return read_numbers(path, number, unused) >= 1;
}

// Finds the number of a name in a file whose lines are a name and a number.
long long number_named(const std::string& path, const char* name) {
  const open_file file(std::fopen(path.c_str(), "re"));
  char word[64] = "";
  long long number = 0;
  while (file != nullptr && std::fscanf(file.get(), "%63s %lld", word, &number) == 2)
    if (std::strcmp(word, name) == 0) return number;
  return 0;
}

// Calls visit with the folder of every group of a controller that limits this process. A line of
// the list is number:controllers:path; version 2 names no controllers.
template <typename Visit>
void each_group(const cgroup_files& files, const char* controller, Visit visit) {
  const open_file file(std::fopen(files.list, "re"));
  char line[4096] = "";
  while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    const char* controllers = std::strchr(line, ':');
    const char* path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (path == nullptr) continue;
    const std::string names = "," + std::string(controllers + 1, path) + ",";
    std::string root = files.root;
    if (names.find(std::string(",") + controller + ",") != std::string::npos)
      root += std::string("/") + controller;
    else if (names != ",,")
      continue;
    for (std::string group = path + 1;; group.resize(group.rfind('/'))) {
      visit(root + group);
      if (group.find('/') == std::string::npos) break;
    }
  }
}

// Returns 0 if the group sets no quota. Version 2 has one file ("max 100000" without a quota),
// version 1 has two (quota -1).
int processors_of(const std::string& group) {
  long long quota = 0, period = 0;
  const bool known = read_numbers(group + "/cpu.max", quota, period) == 2 ||
                     (read_number(group + "/cpu.cfs_quota_us", quota) &&
                      read_number(group + "/cpu.cfs_period_us", period));
  if (!known || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<long long>(ceil_div(quota, period), 1 << 20));
}

// "max" in version 2, and the largest number in whole pages in version 1, mean no limit.
std::int64_t memory_of(const std::string& group) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  long long limit = 0, used = 0;
  const bool newer = read_number(group + "/memory.max", limit);
  if (!newer && !read_number(group + "/memory.limit_in_bytes", limit)) return none;
  if (limit > none / 2) return none;
  if (!read_number(group + (newer ? "/memory.current" : "/memory.usage_in_bytes"), used))
    return none;
  used -= number_named(group + "/memory.stat", newer ? "inactive_file" : "total_inactive_file");
  return std::max<std::int64_t>(limit - limit / 8 - std::max<long long>(used, 0), 0);
}

}  // namespace

int cgroup_processors(const cgroup_files& files) {
  int least = 0;
  each_group(files, "cpu", [&](const std::string& group) {
    const int here = processors_of(group);
    if (here > 0) least = least == 0 ? here : std::min(least, here);
  });
  return least;
}

std::int64_t cgroup_memory(const cgroup_files& files) noexcept {
  try {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each_group(files, "memory",
               [&](const std::string& group) { least = std::min(least, memory_of(group)); });
    return least;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace velo::core
