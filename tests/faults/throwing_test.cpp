// A host's functions that throw, in every function of the API: VELO_ERR_FOREIGN with what was
// thrown, bad_alloc of an allocator VELO_ERR_MEMORY, and afterwards all is as before.
#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>
#include <string>

#include "tests/calls/rows.hpp"
#include "tests/host_memory.hpp"
#include "tests/record.hpp"

namespace {

using namespace velo::testing;

enum class thrown { nothing, number, exception, memory };
std::atomic<thrown> next{thrown::nothing};
std::atomic<int> remaining{0};  // requests until the one that throws
std::atomic<bool> threw{false};

void throw_next() {
  if (next == thrown::nothing || remaining.fetch_sub(1) != 1) return;
  threw = true;
  if (next == thrown::number) throw 7;
  if (next == thrown::exception) throw std::runtime_error("of the host");
  throw std::bad_alloc();
}

}  // namespace

TEST_CASE("an allocator that throws is the host's failure in every function") {
  struct expectation {
    thrown what;
    velo_status status;
    const char* cause;
  };
  const expectation all[] = {
      {thrown::number, VELO_ERR_FOREIGN, "an exception of unknown type"},
      {thrown::exception, VELO_ERR_FOREIGN, "of the host"},
      {thrown::memory, VELO_ERR_MEMORY, ""},
  };
  host_memory host;
  host.on_allocate = &throw_next;
  const velo_allocator allocator = host.allocator();
  int failures = 0;
  for (const call_row& row : every_call_row()) {
    const int step = row.is_slow ? 3 : 1;  // of a slow row each request throws one thing
    for (const expectation& expected : all) {
      bool more = true;
      const int first = row.is_slow ? 1 + static_cast<int>(&expected - all) : 1;
      for (int n = first; more; n += step) {
        INFO(row.name << ", request " << n << ", throws " << static_cast<int>(expected.what));
        const std::int64_t before = host.blocks;
        world w(&allocator);
        row.begin(w);
        remaining = n;
        threw = false;
        next = expected.what;
        const velo_status status = row.call(w);
        next = thrown::nothing;
        more = threw;
        failures += more;
        CHECK(status == (more ? expected.status : VELO_OK));
        if (more) CHECK(last_record().cause == expected.cause);
        if (more) CHECK(row.call(w) == VELO_OK);
        row.end(w);
        CHECK(host.blocks == before);
        REQUIRE(n < 100);
      }
    }
  }
  CHECK(failures > 200);
}

TEST_CASE("a parallel_for that throws is the host's failure, and the context goes on") {
  const velo_parallel_for loops = {
      sizeof loops, 2, nullptr,
      [](void*, std::int64_t tasks, void (*task)(void* user, std::int64_t index), void* user) {
        throw_next();
        for (std::int64_t i = 0; i < tasks; ++i) task(user, i);
      }};
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.parallel_for = &loops;
  int failures = 0;
  for (const call_row& row : every_call_row()) {
    if (row.example == nullptr) continue;
    INFO(row.name);
    world w;
    row.begin(w, desc);
    remaining = 1;
    threw = false;
    next = thrown::exception;
    const velo_status status = row.call(w);
    next = thrown::nothing;
    failures += threw;
    CHECK(status == (threw ? VELO_ERR_FOREIGN : VELO_OK));
    if (threw) CHECK(last_record().cause == "of the host");
    CHECK(row.call(w) == VELO_OK);
    w.close();
  }
  CHECK(failures > 20);
}
