// The scratch arena: alignment, growth, and silence in the steady state.
#include "core/host/arena.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

#include "tests/core/fails.hpp"

using namespace velo::core;

namespace {

struct releaser {
  void operator()(memory_source* source) const { source->release(); }
};
std::unique_ptr<memory_source, releaser> system_memory() {
  return std::unique_ptr<memory_source, releaser>(memory_source::create(nullptr));
}

}  // namespace

TEST_CASE("blocks are aligned and do not overlap") {
  const auto memory = system_memory();
  arena scratch(*memory);
  char* before = nullptr;
  for (const std::size_t bytes : {1, 64, 65, 4096, 100000, 3 << 20, 7}) {
    char* block = static_cast<char*>(scratch.take(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::memset(block, 1, bytes);
    CHECK(block != before);
    before = block;
  }
  float* numbers = scratch.take<float>(1000);
  for (int i = 0; i < 1000; ++i) numbers[i] = 1.0f;
  CHECK(scratch.take<double>(0) != nullptr);
}

TEST_CASE("a repeated operator allocates in its first two rounds and never again") {
  const auto memory = system_memory();
  arena scratch(*memory);
  const auto round = [&] {
    for (int i = 0; i < 50; ++i) std::memset(scratch.take(100000), 0, 100000);
    scratch.reset();
  };
  round();
  round();
  const std::uint64_t allocations = memory->allocations(), live = memory->live();
  for (int i = 0; i < 100; ++i) round();
  CHECK(memory->allocations() == allocations);
  CHECK(memory->live() == live);
  CHECK(live < 3 * 50 * 100000);
}

TEST_CASE("memory does not grow with the number of scopes") {
  const auto memory = system_memory();
  const auto live_after = [&](int scopes) {
    arena scratch(*memory);
    for (int round = 0; round < 2; ++round) {
      scratch.take(1000);
      for (int i = 0; i < scopes; ++i) {
        const scratch_scope outer(scratch);
        std::memset(scratch.take(70000), 1, 70000);
        const scratch_scope inner(scratch);
        std::memset(scratch.take(50000), 2, 50000);
      }
      scratch.reset();
    }
    scratch.take(1);
    return memory->live();
  };
  CHECK(live_after(1000) == live_after(1));
  CHECK(live_after(1000) - memory->live() < 2 * (1000 + 70000 + 50000));
}

TEST_CASE("scopes of rising size need few chunks, each at least as large as all before") {
  const auto memory = system_memory();
  arena scratch(*memory);
  const std::uint64_t before = memory->allocations();
  for (std::size_t i = 0; i < 1000; ++i) {
    const scratch_scope scope(scratch);
    scratch.take(70000 + 64 * i);
  }
  CHECK(memory->allocations() - before < 4);
  CHECK(memory->live() < 4 * (70000 + 64 * 1000));
}

TEST_CASE("blocks taken before a scope stay as they are, with growth inside it or without") {
  const auto memory = system_memory();
  for (const std::size_t bytes : {64, 10 << 10, 1 << 20}) {
    arena scratch(*memory);
    char* before = scratch.take<char>(5000);
    std::memset(before, 7, 5000);
    for (int i = 0; i < 3; ++i) {
      const scratch_scope scope(scratch);
      for (int k = 0; k < 4; ++k) std::memset(scratch.take(bytes << k), 1, bytes << k);
    }
    char* after = scratch.take<char>(5000);
    std::memset(after, 9, 5000);
    CHECK(std::count(before, before + 5000, 7) == 5000);
    CHECK(std::count(after, after + 5000, 9) == 5000);
  }
}

TEST_CASE("a repeated operator with scopes allocates in its first two rounds, for its peak") {
  const auto memory = system_memory();
  arena scratch(*memory);
  const auto round = [&](bool ends_in_scope) {
    scratch.take(3000);
    {
      const scratch_scope outer(scratch);
      scratch.take(200000);
      for (int i = 1; i < 20; ++i) {
        const scratch_scope inner(scratch);
        scratch.take(10000u * static_cast<unsigned>(i));
      }
      scratch.take(300000);
    }
    if (!ends_in_scope) scratch.take(100000);
    scratch.reset();
  };
  for (const bool ends_in_scope : {true, false}) {
    round(ends_in_scope), round(ends_in_scope);
    const std::uint64_t allocations = memory->allocations();
    for (int i = 0; i < 10; ++i) round(ends_in_scope);
    CHECK(memory->allocations() == allocations);
    CHECK(memory->live() < 3000 + 200000 + 300000 + 2000);
  }
}

TEST_CASE("a scope in which nothing stays leaves an arena that frees its chunks") {
  const auto memory = system_memory();
  arena scratch(*memory);
  {
    const scratch_scope scope(scratch);
    for (int i = 0; i < 10; ++i) scratch.take(100000);
  }
  const std::uint64_t grown = memory->live();
  scratch.reset();
  CHECK(memory->live() < grown);
  scratch.take(1000000);
  CHECK(memory->live() < 1100000);
}

TEST_CASE("what the arena took goes back") {
  const auto memory = system_memory();
  const std::uint64_t before = memory->live();
  {
    arena scratch(*memory);
    for (int i = 0; i < 10; ++i) scratch.take(1 << 20);
    CHECK(memory->live() > before);
  }
  CHECK(memory->live() == before);
}

TEST_CASE("impossible sizes fail and leave the arena usable") {
  const auto memory = system_memory();
  arena scratch(*memory);
  scratch.take(100);
  CHECK(velo::testing::failure_of([&] { scratch.take(~std::size_t{0} - 5); }).code ==
        VELO_ERR_MEMORY);
  CHECK(velo::testing::failure_of([&] { scratch.take<double>(std::size_t{1} << 62); }).code ==
        VELO_ERR_MEMORY);
  CHECK(velo::testing::failure_of([&] { scratch.take(std::size_t{1} << 60); }).code ==
        VELO_ERR_MEMORY);
  CHECK(scratch.take(100) != nullptr);
}
