// A pool's history holds every event in its order, the last ones where there are too many, from all
// threads, and nothing when it is off.
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "memory/history/history.hpp"
#include "tests/memory/held_stream.hpp"
#include "tests/memory/history/snapshots.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;
using strings = std::vector<std::string>;

namespace {

void keep_events(velo_pool pool, std::uint64_t events) {
  REQUIRE(velo_pool_record(pool, events) == VELO_OK);
}
void note(velo_pool pool, const char* text, const void* memory = nullptr) {
  if (velo_pool_note(pool, memory, text) != VELO_OK) FAIL(last_record().expected);
}

// Checks a trace by itself: each address is allocated once before it is freed, times rise.
void check_order(const std::vector<const json_t*>& trace) {
  std::map<std::uint64_t, std::string> state;
  std::uint64_t before = 0;
  for (const json_t* entry : trace) {
    CHECK(number(entry, "time_us") >= before);
    before = number(entry, "time_us");
    const std::string action = string(entry, "action");
    std::string& now = state[number(entry, "addr")];
    if (action == "alloc") {
      CHECK((now.empty() || now == "free_completed"));
    } else if (action == "free_requested") {
      CHECK((now.empty() || now == "alloc"));
    } else if (action == "free_completed") {
      CHECK(now == "free_requested");
    } else {
      continue;
    }
    now = action;
  }
}

std::size_t count_of(const parsed& all, const char* action) {
  std::size_t count = 0;
  for (const std::string& a : all.actions()) count += a == action ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a pool that is not recorded has no events and takes no notes") {
  const live_pool pool;
  pool.give(pool.take(1000), 1000);
  CHECK(parsed(pool).actions().empty());
  CHECK(velo_pool_note(pool, nullptr, "step 1") == VELO_ERR_STATE);
}

TEST_CASE("an allocation and its free are events with address, size, purpose and note") {
  const live_pool pool;
  keep_events(pool, 100);
  note(pool, "step 1");
  velo_pool_request request = request_of(1000);
  request.purpose = VELO_PURPOSE_GRADIENT;
  request.lifetime = VELO_LIFETIME_LONG;
  void* memory = pool.take(request);
  note(pool, "the \"first\" <gradient>", memory);
  pool.give(memory, 1000);
  const parsed all(pool);
  REQUIRE(all.actions() == strings{"annotate", "segment_map", "alloc", "annotate", "free_requested",
                                   "free_completed"});
  const auto trace = all.trace();
  CHECK(string(trace[0], "user_metadata") == "step 1");
  CHECK(number(trace[0], "addr") == 0);
  const json_t* alloc = trace[2];
  CHECK(number(alloc, "addr") == reinterpret_cast<std::uintptr_t>(memory));
  CHECK(number(alloc, "size") == 1000);
  CHECK(number(alloc, "stream") == 0);
  CHECK(string(alloc, "category") == "gradient");
  CHECK(string(alloc, "user_metadata") == "step 1");
  const json_t* frame = json_array_get(json_object_get(alloc, "frames"), 0);
  CHECK(string(frame, "filename") == "gradient");
  CHECK(string(frame, "name") == "step 1");
  CHECK(json_integer_value(json_array_get(json_object_get(alloc, "pool_id"), 1)) ==
        VELO_LIFETIME_LONG);
  CHECK(string(trace[3], "user_metadata") == "the \"first\" <gradient>");
  CHECK(number(trace[3], "addr") == number(alloc, "addr"));
  CHECK(number(trace[1], "addr") <= number(alloc, "addr"));
}

TEST_CASE("a block in use has its own note, or the last one before it was allocated") {
  const live_pool pool;
  keep_events(pool, 100);
  note(pool, "forward");
  char* named = pool.take(1000);
  char* plain = pool.take(2000);
  note(pool, "weights of layer 3", named);
  note(pool, "backward");
  std::set<std::string> names;
  const parsed all(pool);
  for (const json_t* segment : all.list("segments"))
    for (const json_t* block : items(json_object_get(segment, "blocks")))
      for (const json_t* frame : items(json_object_get(block, "frames")))
        names.insert(string(frame, "name"));
  CHECK(names == std::set<std::string>{"forward", "weights of layer 3"});
  pool.give(named, 1000);
  pool.give(plain, 2000);
}

TEST_CASE(
    "a block freed on a stream completes when the stream has come so far, or takes it again") {
  const live_pool pool;
  held_stream busy;
  keep_events(pool, 100);
  char* block = pool.take(mib, busy.handle);
  pool.give(block, mib, busy.handle);
  CHECK(parsed(pool).actions() == strings{"segment_map", "alloc", "free_requested"});
  char* again = pool.take(mib, busy.handle);
  REQUIRE(again == block);
  CHECK(parsed(pool).actions() ==
        strings{"segment_map", "alloc", "free_requested", "free_completed", "alloc"});
  const parsed live(pool);
  CHECK(number(live.trace()[1], "stream") == reinterpret_cast<std::uintptr_t>(busy.handle));
  pool.give(again, mib, busy.handle);
  busy.release();
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  const parsed all(pool);
  CHECK(count_of(all, "alloc") == 2);
  CHECK(count_of(all, "free_completed") == 2);
  CHECK(all.actions().back() == "segment_unmap");
  check_order(all.trace());
}

TEST_CASE("a free that the stream's queue refuses is no event") {
  const live_pool pool;
  keep_events(pool, 10);
  char* block = pool.take(64);
  const std::size_t before = parsed(pool).trace().size();
  const live_context context;
  const velo_stream gone = context.new_stream();
  velo_stream_destroy(gone);
  CHECK(velo_pool_free(pool, block, 64, gone) == VELO_ERR_HANDLE);
  CHECK(velo_pool_free(pool, block + 1, 64, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(parsed(pool).trace().size() == before);
  pool.give(block, 64);
}

TEST_CASE("a request that is refused says how much there was, and in one piece") {
  // A checked pool returns a freed block to the heap, not to a thread's cache.
  const live_pool pool(pool_desc(VELO_POOL_ORDINARY, 4 * mib, true));
  std::vector<char*> row;
  for (int i = 0; i < 6; ++i) row.push_back(pool.take(512 * kib));
  pool.give(row[1], 512 * kib);
  pool.give(row[3], 512 * kib);
  keep_events(pool, 100);
  void* memory = nullptr;
  CHECK(pool.allocate(5 * mib, &memory) == VELO_ERR_MEMORY);
  const parsed all(pool);
  REQUIRE(count_of(all, "oom") == 1);
  for (const json_t* entry : all.trace()) {
    if (string(entry, "action") != "oom") continue;
    CHECK(number(entry, "size") == 5 * mib);
    CHECK(number(entry, "largest_hole") == pool.stats().bytes_largest_hole);
    CHECK(number(entry, "device_free") == pool.stats().bytes_cached);
    CHECK(number(entry, "largest_hole") < number(entry, "device_free"));
  }
  for (const int i : {0, 2, 4, 5}) pool.give(row[static_cast<std::size_t>(i)], 512 * kib);
}

TEST_CASE("the last events are kept, and how many went before them is known") {
  for (const std::uint64_t bound : {1, 2, 7, 341, 342, 1000}) {
    CAPTURE(bound);
    const live_pool pool;
    char* kept = pool.take(100);
    keep_events(pool, bound);
    for (int i = 0; i < 3000; ++i) pool.give(pool.take(64 + 64 * (i % 50)), 64 + 64 * (i % 50));
    const parsed all(pool);
    std::size_t events = 0;  // a free is one event and two entries
    for (const std::string& a : all.actions()) events += a == "free_completed" ? 0 : 1;
    CHECK(events == bound);
    CHECK(number(json_object_get(all.all, "velo"), "events_dropped") + bound >= 6000);
    check_order(all.trace());
    const auto trace = all.trace();
    CHECK(string(trace.back(), "action") == "free_completed");
    CHECK(number(trace.back(), "size") == 64 + 64 * (2999 % 50));
    pool.give(kept, 100);
  }
}

TEST_CASE("the note before the first event kept is known still") {
  const live_pool pool;
  keep_events(pool, 4);
  note(pool, "step 1");
  for (int i = 0; i < 2000; ++i) pool.give(pool.take(64), 64);
  const parsed all(pool);
  for (const json_t* entry : all.trace())
    if (string(entry, "action") != "free_completed")
      CHECK(string(entry, "user_metadata") == "step 1");
}

TEST_CASE("a recording starts afresh, and stops without forgetting") {
  const live_pool pool;
  keep_events(pool, 50);
  char* first = pool.take(64);
  keep_events(pool, 2000);
  CHECK(parsed(pool).actions().empty());
  char* second = pool.take(64);
  CHECK(parsed(pool).actions() == strings{"alloc"});
  keep_events(pool, 0);
  pool.give(first, 64);
  CHECK(parsed(pool).actions() == strings{"alloc"});
  CHECK(velo_pool_note(pool, nullptr, "late") == VELO_ERR_STATE);
  keep_events(pool, 10);
  pool.give(second, 64);
  CHECK(parsed(pool).actions() == strings{"free_requested", "free_completed"});
}

TEST_CASE("texts are of UTF-8 and not too long, and of blocks in use") {
  const live_pool pool;
  keep_events(pool, 1000);
  const std::string longest(255, 'x'), longer(256, 'x');
  for (int i = 0; i < 300; ++i) note(pool, longest.c_str());  // over many pages
  CHECK(velo_pool_note(pool, nullptr, longer.c_str()) == VELO_ERR_ARGUMENT);
  CHECK(velo_pool_note(pool, nullptr, "\xff") == VELO_ERR_ARGUMENT);
  CHECK(velo_pool_note(pool, nullptr, nullptr) == VELO_ERR_NULL);
  note(pool, "\xc3\xa4\n");
  char* block = pool.take(64);
  CHECK(velo_pool_note(pool, block + 1, "inside") == VELO_ERR_ARGUMENT);
  pool.give(block, 64);
  CHECK(velo_pool_note(pool, block, "gone") == VELO_ERR_ARGUMENT);
  CHECK(velo_pool_record(pool, (std::uint64_t{1} << 24) + 1) == VELO_ERR_ARGUMENT);
  const parsed all(pool);
  const auto trace = all.trace();
  REQUIRE(trace.size() == 300 + 1 + 1 + 1 + 2);  // and the memory for the first block
  CHECK(string(trace[299], "user_metadata") == longest);
  CHECK(string(trace[300], "user_metadata") == "\xc3\xa4\n");
}

TEST_CASE("the history of many threads is one, in order, and complete from its first event on") {
  const live_pool pool;
  keep_events(pool, 200000);
  std::vector<std::thread> threads;
  std::atomic<char*> handed{nullptr};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<char*> mine;
      for (int i = 0; i < 3000; ++i) {
        mine.push_back(pool.take(64u << (i % 8)));
        if (i % 3 == t % 3) {  // what another thread took
          char* other = handed.exchange(mine.back());
          mine.pop_back();
          if (other != nullptr) pool.give(other, 0);
        }
        if (mine.size() > 20) {
          pool.give(mine.front(), 0);
          mine.erase(mine.begin());
        }
        if (i % 500 == 0) note(pool, "among others");
      }
      for (char* m : mine) pool.give(m, 0);
    });
  }
  for (int i = 0; i < 5; ++i) snapshot_of(pool, VELO_SNAPSHOT_TIMELINE);  // meanwhile
  for (std::thread& t : threads) t.join();
  if (char* last = handed) pool.give(last, 0);
  const parsed all(pool);
  CHECK(number(json_object_get(all.all, "velo"), "events_dropped") == 0);
  CHECK(count_of(all, "alloc") == pool.stats().allocations);
  CHECK(count_of(all, "free_completed") == pool.stats().frees);
  CHECK(count_of(all, "annotate") == 4 * 6);
  check_order(all.trace());
}

TEST_CASE("levels are those of the pool, however many events were dropped") {
  velo::memory::history h;
  velo::memory::memory_levels start;
  start.live[2] = 1000;
  start.reserved = 4096;
  h.start(50, start);
  velo::memory::event e{};
  e.purpose = 2;
  velo::memory::memory_levels now = start;
  for (int i = 0; i < 5000; ++i) {
    e.kind = i % 3 == 2   ? velo::memory::event_kind::freed
             : i % 5 == 0 ? velo::memory::event_kind::mapped
                          : velo::memory::event_kind::allocated;
    e.size = static_cast<std::uint64_t>(i);
    now.follow(e);
    REQUIRE(h.add(e));
  }
  const velo::memory::past all = h.copy();
  REQUIRE(all.order.size() == 50);
  CHECK(all.dropped == 4950);
  velo::memory::memory_levels then = all.before;
  for (std::size_t i = 0; i < all.order.size(); ++i) then.follow(all.at(i));
  CHECK(then.live[2] == now.live[2]);
  CHECK(then.reserved == now.reserved);
}
