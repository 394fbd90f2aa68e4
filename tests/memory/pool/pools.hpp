// Shared by the tests of pools: a pool that cleans up, and requests in one line.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "tests/record.hpp"
#include "tests/structs.hpp"
#include "velo/velo.h"

namespace velo::testing {

constexpr std::uint64_t kib = 1024, mib = kib * kib;

constexpr velo_pool_kind every_pool_kind[] = {VELO_POOL_ORDINARY, VELO_POOL_HUGE, VELO_POOL_SHARED,
                                              VELO_POOL_LOCKED};

inline velo_pool_desc pool_desc(velo_pool_kind kind, std::uint64_t limit = 0,
                                bool checked = false) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = kind;
  desc.limit = limit;
  desc.checked = checked ? 1 : 0;
  return desc;
}
inline velo_pool_desc limited_pool(std::uint64_t limit) {
  return pool_desc(VELO_POOL_ORDINARY, limit);
}
inline velo_pool_desc checked_pool() {
  return pool_desc(VELO_POOL_ORDINARY, 0, true);
}

inline velo_allocator allocator_of(velo_pool pool) {
  velo_allocator made = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_pool_allocator(pool, &made) == VELO_OK);
  return made;
}

struct live_pool {
  velo_pool handle = nullptr;

  live_pool() : live_pool(VELO_POOL_DESC_INIT) {}
  explicit live_pool(const velo_pool_desc& desc) {
    REQUIRE(velo_pool_create(&desc, &handle) == VELO_OK);
  }
  ~live_pool() { velo_pool_destroy(handle); }
  live_pool(const live_pool&) = delete;
  live_pool& operator=(const live_pool&) = delete;
  operator velo_pool() const { return handle; }

  velo_status allocate(std::uint64_t bytes, void** memory, velo_stream stream = nullptr,
                       velo_lifetime lifetime = VELO_LIFETIME_DEFAULT) const {
    velo_pool_request request = request_of(bytes);
    request.stream = stream;
    request.lifetime = lifetime;
    return velo_pool_allocate(handle, &request, memory);
  }
  // take and give are for several threads at once, and Catch's assertions are not: only a failure
  // meets them.
  char* take(std::uint64_t bytes, velo_stream stream = nullptr,
             velo_lifetime lifetime = VELO_LIFETIME_DEFAULT) const {
    void* memory = nullptr;
    if (allocate(bytes, &memory, stream, lifetime) != VELO_OK)
      FAIL("no memory: " << last_record().expected);
    return static_cast<char*>(memory);
  }
  char* take(const velo_pool_request& request) const {
    void* memory = nullptr;
    if (velo_pool_allocate(handle, &request, &memory) != VELO_OK)
      FAIL("no memory: " << last_record().expected);
    return static_cast<char*>(memory);
  }
  void give(void* memory, std::uint64_t bytes, velo_stream stream = nullptr) const {
    if (velo_pool_free(handle, memory, bytes, stream) != VELO_OK)
      FAIL("not freed: " << last_record().expected);
  }
  velo_pool_stats stats() const {
    velo_pool_stats now = VELO_POOL_STATS_INIT;
    REQUIRE(velo_pool_get_stats(handle, &now) == VELO_OK);
    return now;
  }
};

}  // namespace velo::testing
