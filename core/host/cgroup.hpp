// Limits of control groups on this process: the processors of a quota, and the memory below a
// limit.
//
// The limits of a group and of every group above it apply. Versions 1 and 2 of Linux's control
// groups have different files. Nothing is cached, since groups change. Cost: a few file reads, 50
// us.
#pragma once

#include <cstdint>

namespace velo::core {

// The files in which Linux describes groups; tests use their own.
struct cgroup_files {
  const char* list = "/proc/self/cgroup";
  const char* root = "/sys/fs/cgroup";
};

// The tightest quota in whole processors, rounded up; 0: none.
int cgroup_processors(const cgroup_files& files = {});

// Bytes that the process may still allocate below the tightest limit; INT64_MAX: no limit. The page
// cache counts as free, and an eighth of the limit is reserved. Returns 0 if there is too little
// memory to read the files.
std::int64_t cgroup_memory(const cgroup_files& files = {}) noexcept;

}  // namespace velo::core
