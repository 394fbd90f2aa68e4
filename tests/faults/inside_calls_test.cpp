// Calls that a function of the host makes on the object that calls it: those that would call it
// again, or wait for the call around them, are refused with VELO_ERR_STATE, and the call around
// them goes on.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "tests/faults/inside_parts.hpp"
#include "tests/record.hpp"

using namespace velo::testing;

namespace {

// Runs a row whose function of the host calls inner(), and returns inner's status and record.
template <class Inner>
call_record within(const char* callback, const char* how, Inner&& inner) {
  for (const inside_row& row : inside_rows()) {
    if (row.callback != callback || row.how != how) continue;
    scene all;
    call_record heard;
    bool ran = false;
    meddling = [&] {
      const velo_status code = inner(all);
      heard = last_record();
      heard.code = code;
      ran = true;
    };
    CHECK(row.run(all) == row.status);
    CHECK(ran);
    return heard;
  }
  FAIL("no such row");
  return {};
}

}  // namespace

TEST_CASE("a pressure function is not called by its own requests, which may find memory") {
  const auto inner = [](std::uint64_t bytes) {
    return within("velo_pool_pressure_fn", "by a pool",
                  [bytes](scene& s) { return allocate(s.pool, bytes); });
  };
  CHECK(inner(64).code == VELO_OK);
  CHECK(inner(too_much).code == VELO_ERR_STATE);
  CHECK(inner(too_much).argument == "pool");
}

TEST_CASE("an event's function allocates from elsewhere, and may free") {
  const call_record heard =
      within("velo_memory_event_fn", "of an adaptor", [](scene& s) -> velo_status {
        const velo_allocator through = allocator_of(s.adaptor);
        const velo_device cpu = {VELO_DEVICE_CPU, 0};
        through.deallocate(through.user, std::aligned_alloc(64, 64), 64, &cpu, nullptr);
        CHECK(through.allocate(through.user, 64, 64, &cpu, nullptr) == nullptr);
        return last_record().code;
      });
  CHECK(heard.code == VELO_ERR_STATE);
}

TEST_CASE("a pool's log function makes no calls of the pool that need its lock") {
  const call_record heard =
      within("velo_log_fn", "of a pool", [](scene& s) { return velo_pool_check(s.pool); });
  CHECK(heard.code == VELO_ERR_STATE);
  CHECK(heard.argument == "pool");
}

TEST_CASE("a log function that causes a line is not called again for it") {
  const call_record heard = within("velo_log_fn", "of a context", [](scene& s) -> velo_status {
    meddling = [] { FAIL("called for its own line"); };
    velo_context_destroy(s.context);
    meddling = nullptr;
    return VELO_ERR_STATE;
  });
  CHECK(heard.argument == "context");
}

TEST_CASE("a reduction calls no collective of its group that would wait for its own") {
  for (const char* how : {"inline", "queued", "planned"}) {
    INFO(how);
    const call_record heard = within(
        "velo_reduce_fn", how, [](scene& s) { return velo_group_barrier(s.now, s.groups[0]); });
    CHECK(heard.code == VELO_ERR_STATE);
  }
}

TEST_CASE("work that has the context's turn waits for no queued work") {
  const call_record heard = within("a foreign kernel", "inline", [](scene& s) -> velo_status {
    must(call_kernel(s.queue, 1));  // waits for the turn
    must(velo_event_record(s.event, s.queue));
    CHECK(velo_event_synchronize(s.event, -1) == VELO_ERR_STATE);
    return velo_stream_synchronize(s.queue);
  });
  CHECK(heard.code == VELO_ERR_STATE);
}

TEST_CASE("an allocator's functions make no calls of the recompute that allocates") {
  static velo_recompute all = nullptr;
  static velo_status heard = VELO_OK;
  const velo_allocator asks = {
      sizeof asks, 0, nullptr,
      [](void*, std::uint64_t bytes, std::uint64_t, const velo_device*, void*) {
        velo_recompute_stats stats = VELO_RECOMPUTE_STATS_INIT;
        heard = velo_recompute_get_stats(all, &stats);
        return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      },
      [](void*, void* memory, std::uint64_t, const velo_device*, void*) { std::free(memory); }};
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  desc.allocator = &asks;
  REQUIRE(velo_recompute_create(&desc, &all) == VELO_OK);
  CHECK(add_region(all, 64) == VELO_OK);
  CHECK(heard == VELO_ERR_STATE);
  velo_recompute_destroy(all);
}
