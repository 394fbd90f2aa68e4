// Memory running out in every function of the API: the n-th allocation of a call fails, by itself,
// with all that follow or with each n-th, for n = 1, 2, .. until a call asks for fewer. Each time
// the status is VELO_ERR_MEMORY, the same call then succeeds as if nothing had been, and nothing is
// lost.
//
// tests/faults/failing_memory.cpp stands in for malloc.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/calls/rows.hpp"
#include "tests/faults/failing_memory.hpp"

namespace {

using namespace velo::testing;

std::int64_t host_bytes = 0;

const velo_allocator host = {
    sizeof(velo_allocator), 0, nullptr,
    [](void*, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
      void* block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      if (block != nullptr) host_bytes += static_cast<std::int64_t>(bytes);
      return block;
    },
    [](void*, void* block, std::uint64_t bytes, const velo_device*, void*) {
      host_bytes -= static_cast<std::int64_t>(bytes);
      std::free(block);
    }};

struct outcome {
  velo_status status;  // of the call whose n-th allocation failed
  velo_status again;   // of the same call after it
  bool failed;         // an allocation did
  char text[400];      // of the thread's record
};

// One round of a row. The text of a loader's failure belongs to the thread: it is taken away.
outcome round_of(const call_row& row, failure_shape how, int n) {
  world w(&host);
  row.begin(w);
  begin_failing(how, n);
  outcome seen{row.call(w), VELO_OK, false, ""};
  seen.failed = end_failing();
  velo_error_text(seen.text, sizeof seen.text, nullptr);
  if (seen.status != VELO_OK) seen.again = row.call(w);
  row.end(w);
  while (dlerror() != nullptr) {
  }
  return seen;
}

// Whether the spec lists MEMORY among the errors of a row's function or operator.
bool lists_memory(const call_row& row) {
  static const std::string all = [] {
    std::uint64_t size = 0;
    velo_describe(nullptr, 0, &size);
    std::string made(size, ' ');
    REQUIRE(velo_describe(made.data(), size, nullptr) == VELO_OK);
    return made;
  }();
  const std::string name = row.name.substr(0, row.name.find(' '));
  std::size_t at = all.find("{\"name\":\"" + name + "\",\"header\"");
  if (at == std::string::npos) return true;  // each operator may give it
  const std::size_t begin = all.find("\"errors\":[", at), end = all.find(']', begin);
  // What destroys gives no status; its row has that of the call that makes another.
  if (all.substr(at, begin - at).find("\"result\":\"void\"") != std::string::npos) return true;
  return all.substr(begin, end - begin).find("\"MEMORY\"") != std::string::npos;
}

}  // namespace

TEST_CASE("every function of the spec has a row") {
  const std::vector<std::string> missing = functions_without_a_row();
  INFO("no row in tests/calls/*_rows.cpp: "
       << Catch::StringMaker<std::vector<std::string>>::convert(missing));
  CHECK(missing.empty());
}

TEST_CASE("the stand-in for malloc fails the calls that a test asks for") {
  const std::int64_t before = live_blocks();
  begin_failing(failure_shape::once, 2);
  void* volatile first = std::malloc(8);
  void* volatile second = std::malloc(8);
  void* volatile third = std::malloc(8);
  CHECK(end_failing());
  CHECK(live_blocks() == before + 2);
  CHECK(first != nullptr);
  CHECK(second == nullptr);
  CHECK(third != nullptr);
  std::free(first);
  std::free(third);
}

// The answer is remembered for the life of the process, so this test comes before all that ask.
TEST_CASE("whether closures can be made is not remembered from a moment without memory") {
  for (const failure_shape how : {failure_shape::from_then_on, failure_shape::once}) {
    bool failed = true;
    for (int n = 1; failed; ++n) {
      std::int32_t available = 0;
      begin_failing(how, n);
      const velo_status status = velo_capability_query(VELO_CAP_CLOSURES, &available);
      failed = end_failing();
      INFO("allocation " << n << ", status " << status);
      CHECK((status == VELO_OK ? available == 1 : status == VELO_ERR_MEMORY));
      REQUIRE(n < 100);
    }
  }
}

// With VELO_ALLOCATIONS each allocation fails in each shape, else those of slow rows in one.
TEST_CASE("an allocation that fails is a status in every function, changes and loses nothing") {
  int failures = 0;
  for (const call_row& row : every_call_row()) {
    for (int warm = 0; warm < 3; ++warm) {  // slabs, interned signatures, stacks of threads
      const outcome first = round_of(row, failure_shape::never, 0);
      INFO(row.name);
      REQUIRE(first.status == VELO_OK);
    }
    const bool samples = row.is_slow && std::getenv("VELO_ALLOCATIONS") == nullptr;
    int first = 1;
    for (const failure_shape how :
         {failure_shape::once, failure_shape::from_then_on, failure_shape::each}) {
      bool more = true;
      for (int n = samples ? first++ : 1; more; n += samples ? 3 : 1) {
        INFO(row.name << ", allocation " << n
                      << (how == failure_shape::once   ? ""
                          : how == failure_shape::each ? " and each as many later"
                                                       : " and all later"));
        const std::int64_t before = live_blocks(), bytes = host_bytes;
        const outcome seen = round_of(row, how, n);
        const std::int64_t lost = live_blocks() - before;
        INFO("status " << seen.status << ", then " << seen.again << ": " << seen.text);
        more = seen.failed;
        failures += seen.status != VELO_OK;
        CHECK((seen.status == VELO_OK || (seen.failed && seen.status == VELO_ERR_MEMORY)));
        CHECK((seen.status == VELO_OK || lists_memory(row)));
        CHECK(seen.again == VELO_OK);
        CHECK(lost == 0);
        CHECK(host_bytes == bytes);
        REQUIRE(n < 1000);
      }
    }
  }
  CHECK(failures > 900);
}

TEST_CASE("regions are released and end where there is no memory") {
  const auto restore = [](void*, const velo_recompute_call*) -> velo_status { return VELO_OK; };
  velo_recompute all = nullptr;
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  desc.allocator = &host;
  REQUIRE(velo_recompute_create(&desc, &all) == VELO_OK);
  const std::int64_t before = host_bytes;
  const std::uint64_t bytes = 64;
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "region";
  region.restore = restore;
  region.output_bytes = &bytes;
  region.output_count = 1;
  for (int i = 0; i < 40; ++i) {  // each inside the one before, and so in region 0
    region.parent = i - 1;
    std::int64_t index = -1;
    REQUIRE(velo_recompute_add(all, &region, nullptr, &index) == VELO_OK);
    REQUIRE(index == i);
  }
  begin_failing_here(failure_shape::from_then_on, 1);
  const velo_status released = velo_recompute_release(all, 20, nullptr);
  const std::int64_t held = host_bytes - before;
  const velo_status ended = velo_recompute_end(all, 0, nullptr);
  end_failing();
  CHECK(released == VELO_OK);
  CHECK(held == 20 * 64);
  CHECK(ended == VELO_OK);
  CHECK(host_bytes == before);
  velo_recompute_destroy(all);
}
