// The source of memory: counted, aligned, from the host's allocator when there is one.
#include "core/host/memory.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/core/fails.hpp"

using namespace velo::core;
using velo::testing::failure_of;

namespace {

struct host_memory {
  std::int64_t live = 0;
  int calls = 0;
  bool fail = false, misaligned = false, throws_on_free = false;

  velo_allocator as_allocator() {
    return {
        sizeof(velo_allocator), 0, this,
        [](void* user, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
          auto& self = *static_cast<host_memory*>(user);
          ++self.calls;
          if (self.fail) return static_cast<void*>(nullptr);
          const std::uint64_t rounded = (bytes + 64 + alignment) / alignment * alignment;
          self.live += static_cast<std::int64_t>(bytes);
          char* memory = static_cast<char*>(std::aligned_alloc(alignment, rounded));
          return static_cast<void*>(self.misaligned ? memory + 8 : memory);
        },
        [](void* user, void* memory, std::uint64_t bytes, const velo_device*, void*) {
          auto& self = *static_cast<host_memory*>(user);
          self.live -= static_cast<std::int64_t>(bytes);
          std::free(self.misaligned ? static_cast<char*>(memory) - 8 : memory);
          if (self.throws_on_free) throw 1;
        }};
  }
};

}  // namespace

TEST_CASE("small and huge blocks are aligned, writable and counted") {
  memory_source* memory = memory_source::create(nullptr);
  const std::uint64_t base = memory->live();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, (std::size_t{2} << 20) - 1,
                                  std::size_t{2} << 20, (std::size_t{5} << 20) + 17}) {
    char* block = static_cast<char*>(memory->take(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    if (bytes >= std::size_t{2} << 20)
      CHECK(reinterpret_cast<std::uintptr_t>(block) % (2 << 20) == 0);
    std::memset(block, 1, bytes);
    CHECK(memory->live() == base + bytes);
    memory->give(block, bytes);
    CHECK(memory->live() == base);
  }
  CHECK(memory->peak() == base + (std::size_t{5} << 20) + 17);
  CHECK(memory->allocations() == 6);
  memory->give(nullptr, 0);
  memory->release();
}

TEST_CASE("a host's allocator sees every byte, the source's own included") {
  host_memory host;
  const velo_allocator allocator = host.as_allocator();
  memory_source* memory = memory_source::create(&allocator);
  CHECK(host.live == static_cast<std::int64_t>(memory->live()));
  void* block = memory->take(3 << 20);
  CHECK(host.live == static_cast<std::int64_t>(memory->live()));
  memory->retain();
  memory->release();
  memory->give(block, 3 << 20);
  memory->release();
  CHECK(host.live == 0);
}

TEST_CASE("a failing or misaligning allocator is a status and loses nothing") {
  host_memory host;
  const velo_allocator allocator = host.as_allocator();
  memory_source* memory = memory_source::create(&allocator);
  const std::int64_t live = host.live;
  host.fail = true;
  const auto none = failure_of([&] { memory->take(1000); });
  CHECK(none.code == VELO_ERR_MEMORY);
  CHECK(none.expected == "1000 bytes");
  host.fail = false;
  host.misaligned = true;
  CHECK(failure_of([&] { memory->take(1000); }).code == VELO_ERR_FOREIGN);
  host.misaligned = false;
  CHECK(host.live == live);
  CHECK(static_cast<std::int64_t>(memory->live()) == live);
  host.throws_on_free = true;
  memory->give(memory->take(10), 10);  // an exception of the host ends here
  memory->release();
  CHECK(host.live == 0);
}
