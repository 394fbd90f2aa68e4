// The memory that a pool, or this process, really has, as Linux counts it.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/handle/handle.hpp"
#include "memory/pool/pool.hpp"

namespace velo::testing {

inline std::uint64_t page_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Resident bytes of the process: its code, its heap and the tables of its pools, too.
inline std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * page_bytes();
}

// The end of the last accessible mapping that begins within [begin, end); begin: there is none.
inline std::uintptr_t accessible_end(std::uintptr_t begin, std::uintptr_t end) {
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t last = begin;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t from = 0, to = 0;
    char dash = 0;
    std::string access;
    words >> std::hex >> from >> dash >> to >> access;
    if (from < end && to > begin && access[0] == 'r') last = std::max(last, std::min(to, end));
  }
  return last;
}

// Resident bytes of the addresses for blocks of a pool, exactly.
inline std::uint64_t resident_bytes(velo_pool handle) {
  const memory::pool& pool = core::resolve<memory::pool>(handle, "pool");
  std::uint64_t bytes = 0;
  for (const int lifetime : {VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG}) {
    const memory::address_range& range = pool.range(lifetime);
    if (range.file() >= 0) {
      struct stat file {};
      REQUIRE(::fstat(range.file(), &file) == 0);
      bytes += static_cast<std::uint64_t>(file.st_blocks) * 512;
      continue;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin());
    const std::uintptr_t length = accessible_end(begin, begin + range.size()) - begin;
    std::vector<unsigned char> pages(length / page_bytes());
    REQUIRE(::mincore(range.begin(), length, pages.data()) == 0);
    const auto there = std::count_if(pages.begin(), pages.end(),
                                     [](unsigned char page) { return (page & 1) != 0; });
    bytes += static_cast<std::uint64_t>(there) * page_bytes();
  }
  return bytes;
}

// Keeps Linux from putting huge pages where small ones are, which it does behind a program's back:
// a huge page backs its holes, too.
class small_pages_alone {
 public:
  small_pages_alone() { REQUIRE(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); }
  ~small_pages_alone() { ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); }
  small_pages_alone(const small_pages_alone&) = delete;
  small_pages_alone& operator=(const small_pages_alone&) = delete;
};

}  // namespace velo::testing
