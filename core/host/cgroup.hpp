// Limits that control groups put on this process: processors of a quota, memory below a limit.
//
// A group's own bounds hold, and those of every group above it. Versions 1 and 2 of Linux' groups
// have other files. Nothing is remembered, since groups change. Cost: a few files read, 50 us.
#pragma once

#include <cstdint>

namespace velo::core {

// The files in which Linux describes groups; a test has files of its own.
struct cgroup_files {
  const char* list = "/proc/self/cgroup";
  const char* root = "/sys/fs/cgroup";
};

// The tightest quota in whole processors, rounded up; 0: none.
int cgroup_processors(const cgroup_files& files = {});

// Bytes that may stay in memory beside what is there, below the tightest limit; INT64_MAX: none.
// The system's copies of files give way, and an eighth of a limit is left to all else. 0 where
// memory is too short to find out.
std::int64_t cgroup_memory(const cgroup_files& files = {}) noexcept;

}  // namespace velo::core
