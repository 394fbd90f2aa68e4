// A function of the host that runs on a thread of velo waits for no work that waits for it: calls
// that would wait are refused with VELO_ERR_STATE.
//
// Every case is a process of its own with a deadline: a call that is not refused never returns.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/child_process.hpp"
#include "tests/faults/inside_parts.hpp"
#include "tests/record.hpp"

using namespace velo::testing;

namespace {

constexpr unsigned deadline_seconds = 20;
constexpr std::uint64_t object_bytes = 4096;

// Work that waits for the function: the scene's event and `other` stand behind it.
struct waiting {
  explicit waiting(scene& all) : s(all) {
    must(velo_stream_create(s.context, &other));
    must(velo_group_create(s.context, nullptr, &alone));
    velo_swap_desc desc = VELO_SWAP_DESC_INIT;
    desc.memory = s.pool;
    must(velo_swap_create(s.context, &desc, &swap));
    must(velo_swap_add(swap, nullptr, object_bytes, VELO_SWAP_WARM, &out));
    must(velo_swap_out(swap, out, s.now, nullptr));
    must(velo_swap_wait(swap, out, s.now));
    must(velo_swap_add(swap, memory, object_bytes, VELO_SWAP_WARM, &leaving));
  }

  // Called inside the function of the host.
  void queue() {
    velo_stream_clear(s.queue);  // of the failure whose log line this is
    if (s.object != 0) must(velo_swap_wait(s.swap, s.object, s.queue));
    must(velo_event_record(s.event, s.queue));
    must(velo_stream_wait(other, s.event));
    must(velo_swap_out(swap, leaving, other, nullptr));
    must(velo_group_barrier(other, alone));
    must(call_kernel(other, 1));
  }

  scene& s;
  velo_stream other = nullptr;
  velo_group alone = nullptr;
  velo_swap swap = nullptr;
  std::uint64_t out = 0, leaving = 0;  // objects

 private:
  char memory[object_bytes] = {};
};

struct waiting_call {
  const char* name;
  velo_status (*make)(waiting&);
};

const waiting_call calls[] = {
    {"velo_event_synchronize", [](waiting& w) { return velo_event_synchronize(w.s.event, -1); }},
    {"velo_stream_synchronize", [](waiting& w) { return velo_stream_synchronize(w.other); }},
    {"velo_stream_wait", [](waiting& w) { return velo_stream_wait(w.s.now, w.s.event); }},
    {"velo_stream_destroy",
     [](waiting& w) {
       velo_stream_destroy(w.other);
       return last_record().code;
     }},
    {"velo_swap_wait", [](waiting& w) { return velo_swap_wait(w.swap, w.leaving, w.s.now); }},
    {"velo_swap_drop", [](waiting& w) { return velo_swap_drop(w.swap, w.leaving, nullptr); }},
    {"velo_swap_update",
     [](waiting& w) {
       return velo_swap_update(
           w.swap, &w.out, 1, 1,
           [](void*, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t { return 0; },
           nullptr);
     }},
    {"velo_swap_destroy",
     [](waiting& w) {
       velo_swap_destroy(w.swap);
       return last_record().code;
     }},
    {"velo_kernel_destroy",
     [](waiting& w) {
       velo_kernel_destroy(w.s.kernel);
       return last_record().code;
     }},
    {"velo_group_barrier", [](waiting& w) { return velo_group_barrier(w.s.now, w.alone); }},
    {"velo_group_create_part",
     [](waiting& w) {
       const std::int32_t me[] = {0};
       velo_group part = nullptr;
       return velo_group_create_part(w.alone, me, 1, nullptr, &part);
     }},
    {"velo_group_destroy",
     [](waiting& w) {
       velo_group_destroy(w.alone);
       return last_record().code;
     }},
    {"velo_buckets_finish", [](waiting& w) { return velo_buckets_finish(w.s.buckets, w.s.now); }},
    {"velo_executor_run", [](waiting& w) { return velo_executor_run(w.other, w.s.executor); }},
};

// The call's status in the row's function, of a process of its own.
velo_status make_inside(const inside_row& row, const waiting_call& call) {
  alarm(deadline_seconds);
  velo_status heard = VELO_OK;
  {
    scene all;
    waiting w(all);
    meddling = [&] {
      w.queue();
      heard = call.make(w);
    };
    row.run(all);
  }
  return heard;
}

}  // namespace

TEST_CASE("a function of the host on a thread of velo waits for nothing that waits for it") {
  const char* const rows[][2] = {{"velo_log_fn", "of a stream's failure"},
                                 {"velo_pool_pressure_fn", "on a swap's thread"},
                                 {"velo_reduce_fn", "queued"},
                                 {"a foreign kernel", "queued"}};
  for (const auto& [callback, how] : rows) {
    const auto is_named = [&, name = callback, kind = how](const inside_row& row) {
      return row.callback == name && row.how == kind;
    };
    const auto row = std::find_if(inside_rows().begin(), inside_rows().end(), is_named);
    REQUIRE(row != inside_rows().end());
    for (const waiting_call& call : calls) {
      INFO(callback << ", " << how << ": " << call.name);
      // -1: the deadline has ended a call that waited.
      CHECK(in_child([&] { return make_inside(*row, call); }) == VELO_ERR_STATE);
    }
  }
}
