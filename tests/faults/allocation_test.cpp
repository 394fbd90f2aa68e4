// Memory running out in every function of the API: the n-th allocation of a call fails, by itself,
// with all that follow or with each n-th, for n = 1, 2, .. until a call asks for fewer. Each time
// the status is VELO_ERR_MEMORY, the same call then succeeds as if nothing had been, and nothing is
// lost.
//
// tests/faults/failing_memory.cpp stands in for malloc.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>

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

TEST_CASE("an allocation that fails is a status in every function, changes and loses nothing") {
  int failures = 0;
  for (const call_row& row : every_call_row()) {
    for (int warm = 0; warm < 3; ++warm) {  // slabs, interned signatures, stacks of threads
      const outcome first = round_of(row, failure_shape::never, 0);
      INFO(row.name);
      REQUIRE(first.status == VELO_OK);
    }
    for (const failure_shape how :
         {failure_shape::once, failure_shape::from_then_on, failure_shape::each}) {
      bool more = true;
      for (int n = 1; more; ++n) {
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
        CHECK(seen.again == VELO_OK);
        CHECK(lost == 0);
        CHECK(host_bytes == bytes);
        REQUIRE(n < 1000);
      }
    }
  }
  CHECK(failures > 900);
}
