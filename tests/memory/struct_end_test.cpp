// Structs of the pools' entries that end with their page: nothing behind a struct's end is read,
// whatever size it names.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "memory/pools.hpp"

using namespace velo::test;

TEST_CASE("a struct that ends with its page is not read behind its end") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* mapped =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  char* end = static_cast<char*>(mapped) + page;
  REQUIRE(mprotect(end, page, PROT_NONE) == 0);
  const live_pool pool;
  for (std::uint32_t size = 4; size <= 248; size += 4) {
    INFO("struct_size " << size);
    char* at = end - size;
    const auto clear = [&] {
      std::memset(at, 0, size);
      std::memcpy(at, &size, sizeof size);
    };
    clear();
    void* memory = nullptr;
    const velo_status took =
        velo_pool_allocate(pool, reinterpret_cast<const velo_pool_request*>(at), &memory);
    CHECK((took == VELO_OK || took == VELO_ERR_STRUCT));
    CHECK((took == VELO_OK) == (size >= sizeof(velo_pool_request)));
    if (took == VELO_OK) CHECK(velo_pool_free(pool, memory, 0, nullptr) == VELO_OK);
    velo_pool made = nullptr;
    const velo_status created =
        velo_pool_create(reinterpret_cast<const velo_pool_desc*>(at), &made);
    CHECK((created == VELO_OK) == (size >= sizeof(velo_pool_desc)));
    velo_pool_destroy(made);
    CHECK((velo_pool_get_stats(pool, reinterpret_cast<velo_pool_stats*>(at)) == VELO_OK) ==
          (size >= sizeof(velo_pool_stats)));
    clear();
    CHECK((velo_pool_allocator(pool, reinterpret_cast<velo_allocator*>(at)) == VELO_OK) ==
          (size >= 32));
    clear();
    velo_adaptor over = nullptr;
    CHECK(velo_adaptor_create(reinterpret_cast<const velo_adaptor_desc*>(at), &over) != VELO_OK);
    clear();
    velo_plan plan = nullptr;
    velo_plan_create(reinterpret_cast<const velo_plan_desc*>(at), &plan);
    velo_plan_destroy(plan);
  }
  munmap(mapped, 2 * page);
}
