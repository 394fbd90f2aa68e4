// The scratch arena: alignment, growth, and silence in the steady state.
#include "core/host/arena.hpp"

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
