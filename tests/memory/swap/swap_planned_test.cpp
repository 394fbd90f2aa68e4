// Planned swaps carried out: recorded steps of any shape, in an arena of the planned size, with
// contents looked at in every use, on every tier, by hosts that wait and hosts that run ahead.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "memory/plan/solver/random.hpp"
#include "tests/memory/swap/disk_system.hpp"
#include "tests/memory/swap/planned.hpp"
#include "tests/memory/swap/swaps.hpp"

using namespace velo::testing;
using velo::memory::plan_random;

namespace {

// A step as hosts have them: what a layer keeps is used again on the way back, some of it in
// between and some written, with scratch everywhere.
void record_step(const planned& to, std::uint64_t seed, int layers) {
  plan_random random(seed);
  struct block {
    char* memory;
    std::uint64_t bytes;
  };
  const auto use = [&](const block& b) {
    const velo_access access = random.below(3) == 0 ? VELO_ACCESS_WRITE : VELO_ACCESS_READ;
    REQUIRE(velo_plan_use(to.plan, b.memory, access) == VELO_OK);
  };
  const auto take = [&] {
    const std::uint64_t bytes = 64 + random.below(1 << (8 + random.below(8)));
    return block{to.allocate(bytes), bytes};
  };
  std::vector<std::vector<block>> kept(static_cast<std::size_t>(layers));
  const auto compute = [&] {
    const block scratch = take();
    REQUIRE(velo_plan_work(to.plan, 0.5 + random.unit()) == VELO_OK);
    to.free(scratch.memory, scratch.bytes);
  };
  for (std::size_t layer = 0; layer < kept.size(); ++layer) {
    for (std::uint64_t x = 1 + random.below(3); x > 0; --x) kept[layer].push_back(take());
    if (layer > 0 && random.below(3) == 0) use(kept[random.below(layer)].front());
    compute();
  }
  for (std::size_t layer = kept.size(); layer-- > 0;) {
    for (const block& each : kept[layer]) use(each);
    compute();
    for (const block& each : kept[layer]) to.free(each.memory, each.bytes);
  }
}

struct recorded {
  planned of;
  velo_plan_swap_stats stats = VELO_PLAN_SWAP_STATS_INIT;
  std::vector<velo_plan_buffer> buffers;
  std::vector<velo_plan_use_info> uses;

  recorded(std::uint64_t seed, int layers, double part, velo_swap_policy policy) {
    of.record([&] { record_step(of, seed, layers); });
    const velo_plan_stats found = of.stats();
    for (std::uint64_t i = 0; i < found.buffers; ++i) {
      buffers.push_back(VELO_PLAN_BUFFER_INIT);
      REQUIRE(velo_plan_get_buffer(of.plan, static_cast<std::int64_t>(i), &buffers.back()) ==
              VELO_OK);
    }
    for (std::uint64_t i = 0; i < found.uses; ++i) {
      uses.push_back(VELO_PLAN_USE_INFO_INIT);
      REQUIRE(velo_plan_get_use(of.plan, static_cast<std::int64_t>(i), &uses.back()) == VELO_OK);
    }
    velo_swap_options o = VELO_SWAP_OPTIONS_INIT;
    o.policy = policy;
    o.least_bytes = 0;
    o.out_bytes_per_second = 1e5, o.in_bytes_per_second = 8e4;
    o.budget = static_cast<std::uint64_t>(part * static_cast<double>(found.lower_bound));
    while (velo_plan_solve_swaps(of.plan, &o) == VELO_ERR_ARGUMENT) o.budget += o.budget / 16;
    velo_plan_options how = VELO_PLAN_OPTIONS_INIT;
    how.seconds = 0.2;
    REQUIRE(velo_plan_place_swaps(of.plan, &how) == VELO_OK);
    REQUIRE(velo_plan_get_swap_stats(of.plan, &stats) == VELO_OK);
    CHECK((stats.placed == 1 && stats.bytes_peak <= o.budget));
  }
};

// One stage of the host's: who is used in it, and whether that is looked at or written.
struct stage_work {
  std::int64_t end;
  std::vector<std::int64_t> looked, written;
};

std::vector<stage_work> work_of(const recorded& r, const std::vector<std::int64_t>& ends) {
  std::vector<stage_work> all;
  for (const std::int64_t end : ends) all.push_back({end, {}, {}});
  const auto at = [&](std::int64_t time) -> stage_work& {
    const auto found = std::lower_bound(ends.begin(), ends.end(), time);
    REQUIRE(found != ends.end());
    return all[static_cast<std::size_t>(found - ends.begin())];
  };
  std::vector<bool> used(r.buffers.size());
  for (std::size_t i = 0; i < r.buffers.size(); ++i)
    at(r.buffers[i].lower).written.push_back(static_cast<std::int64_t>(i));
  for (const velo_plan_use_info& u : r.uses) {
    used[static_cast<std::size_t>(u.buffer)] = true;
    at(u.time).looked.push_back(u.buffer);
    if (u.access == VELO_ACCESS_WRITE) at(u.time).written.push_back(u.buffer);
  }
  for (std::size_t i = 0; i < r.buffers.size(); ++i)
    if (!used[i]) at(r.buffers[i].upper - 1).looked.push_back(static_cast<std::int64_t>(i));
  return all;
}

// Fills a buffer with bytes that no other buffer or earlier version has.
void write(char* to, std::uint64_t bytes, std::int64_t buffer, int version) {
  const std::uint64_t word =
      static_cast<std::uint64_t>(buffer) << 32 | static_cast<std::uint64_t>(version) << 16 | 0x55;
  for (std::uint64_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t value = word + (i << 20);
    std::memcpy(to + i, &value, 8);
  }
}
bool holds(const char* from, std::uint64_t bytes, std::int64_t buffer, int version) {
  std::vector<char> expected(bytes);
  write(expected.data(), bytes, buffer, version);
  return std::memcmp(from, expected.data(), bytes / 8 * 8) == 0;
}

// The ends of stages as a step tells them.
std::vector<std::int64_t> stage_ends(const swap_world& w, const recorded& r, char* arena) {
  std::vector<std::int64_t> ends(r.stats.stages);
  REQUIRE(velo_swap_begin_step(w.swap, r.of.plan, arena, w.stream) == VELO_OK);
  for (std::int64_t& end : ends) REQUIRE(velo_swap_begin_stage(w.swap, &end) == VELO_OK);
  CHECK(velo_swap_begin_stage(w.swap, nullptr) == VELO_ERR_STATE);
  REQUIRE(velo_swap_end_step(w.swap) == VELO_OK);
  return ends;
}

// A step's work, here or on a queue, and how many of its uses found something else than was there.
struct host_step {
  const recorded& r;
  const std::vector<stage_work>& stages;
  std::vector<int> version = std::vector<int>(r.buffers.size());
  int wrong = 0;

  void run(const swap_world& w, char* arena, const held_queue* on = nullptr) {
    const velo_stream stream = on != nullptr ? static_cast<velo_stream>(*on) : w.stream;
    REQUIRE(velo_swap_begin_step(w.swap, r.of.plan, arena, stream) == VELO_OK);
    for (const stage_work& s : stages) {
      std::int64_t end = 0;
      REQUIRE(velo_swap_begin_stage(w.swap, &end) == VELO_OK);
      CHECK(end == s.end);
      std::map<std::int64_t, char*> at;
      for (const auto* list : {&s.looked, &s.written})
        for (const std::int64_t buffer : *list) {
          void* memory = nullptr;
          REQUIRE(velo_swap_get_buffer(w.swap, buffer, &memory) == VELO_OK);
          at[buffer] = static_cast<char*>(memory);
        }
      const auto now = [this, &s, at = std::move(at)] { work(s, at); };
      on != nullptr ? on->then(now) : now();
    }
    REQUIRE(velo_swap_end_step(w.swap) == VELO_OK);
  }
  void work(const stage_work& s, const std::map<std::int64_t, char*>& at) {
    for (const std::int64_t i : s.looked) {
      const auto x = static_cast<std::size_t>(i);
      if (version[x] > 0 && !holds(at.at(i), r.buffers[x].bytes, i, version[x])) ++wrong;
    }
    for (const std::int64_t i : s.written) {
      const auto x = static_cast<std::size_t>(i);
      write(at.at(i), r.buffers[x].bytes, i, ++version[x]);
    }
  }
};

void check_stays(const recorded& r) {
  std::vector<velo_plan_stay> all(r.stats.stays, VELO_PLAN_STAY_INIT);
  for (std::size_t i = 0; i < all.size(); ++i)
    REQUIRE(velo_plan_get_stay(r.of.plan, static_cast<std::int64_t>(i), &all[i]) == VELO_OK);
  std::uint64_t most = 0;
  for (const velo_plan_stay& a : all) {
    std::uint64_t live = 0;
    CHECK((a.offset >= 0 && a.begin < a.end));
    CHECK(static_cast<std::uint64_t>(a.offset) + a.bytes <= r.stats.bytes_planned);
    for (const velo_plan_stay& b : all) {
      if (b.begin <= a.begin && a.begin < b.end) live += b.bytes;
      if (&a == &b || a.end <= b.begin || b.end <= a.begin) continue;
      const bool apart = a.offset + static_cast<std::int64_t>(a.bytes) <= b.offset ||
                         b.offset + static_cast<std::int64_t>(b.bytes) <= a.offset;
      if (!apart || a.buffer == b.buffer) FAIL("two stays share an address");
    }
    most = std::max(most, live);
  }
  CHECK(most == r.stats.bytes_peak);
}

// The bytes that a pool counts for an arena of the planned size.
std::uint64_t arena_bytes(const recorded& r) {
  const live_pool pool;
  void* memory = pool.take(r.stats.bytes_planned);
  const std::uint64_t bytes = pool.stats().bytes_live;
  pool.give(memory, r.stats.bytes_planned);
  return bytes;
}

constexpr velo_swap_policy policies[] = {VELO_SWAP_FURTHEST, VELO_SWAP_SMART};

}  // namespace

TEST_CASE("stays that share moments lie apart, and need what the swaps have at their peak") {
  double over = 0;
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    INFO("seed " << seed);
    const recorded r(seed, 4 + static_cast<int>(seed % 12), 0.5, policies[seed % 2]);
    check_stays(r);
    over += static_cast<double>(r.stats.bytes_planned) / static_cast<double>(r.stats.bytes_peak);
    ++plans;
  }
  CHECK(over / plans < 1.02);
}

TEST_CASE("a step finds in each buffer what it left there, in an arena of the planned size") {
  constexpr std::size_t guard = 4096;
  std::uint64_t moved = 0;
  int at_once = 0;
  for (const tier_case& tier : tier_cases()) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      INFO(tier.name << ", seed " << seed);
      const recorded r(seed, 4 + static_cast<int>(seed), seed % 2 == 0 ? 0.45 : 0.7,
                       policies[seed / 2 % 2]);
      std::vector<char> arena(r.stats.bytes_planned + guard, 'g');
      const swap_world w(tier.desc);
      const std::vector<stage_work> stages = work_of(r, stage_ends(w, r, arena.data()));
      const velo_swap_stats before = w.stats();
      host_step step{r, stages};
      step.run(w, arena.data());
      CHECK(step.wrong == 0);
      const velo_swap_stats after = w.stats();
      CHECK(after.bytes_out - before.bytes_out == r.stats.bytes_out);
      CHECK(after.bytes_in - before.bytes_in == r.stats.bytes_in);
      CHECK((after.objects == 0 && after.bytes_held == 0 && after.failures == 0));
      CHECK(std::count(arena.end() - guard, arena.end(), 'g') == guard);
      moved += r.stats.bytes_in;
      at_once += r.stats.stall_seconds < r.stats.compute_seconds;
    }
  }
  CHECK(moved > mib);
  CHECK(at_once > 0);
}

TEST_CASE("a host that queues whole steps ahead gets the same") {
  for (const tier_case& tier : tier_cases()) {
    for (std::uint64_t seed = 100; seed < 104; ++seed) {
      INFO(tier.name << ", seed " << seed);
      const recorded r(seed, 8, 0.5, policies[seed % 2]);
      const live_pool pool;
      velo_swap_desc desc = tier.desc;
      desc.memory = pool;
      const swap_world w(desc);
      const std::vector<stage_work> stages = work_of(r, stage_ends(w, r, nullptr));
      host_step first{r, stages}, second{r, stages};
      held_queue queue(w.context);
      first.run(w, nullptr, &queue);
      second.run(w, nullptr, &queue);
      queue.open();
      REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
      CHECK((first.wrong == 0 && second.wrong == 0));
      CHECK(pool.stats().bytes_peak == arena_bytes(r));
      CHECK(w.stats().bytes_held == 0);
    }
  }
}

TEST_CASE("a transfer that fails names its buffer, ends the step alone, and is forgotten with it") {
  const swap_folder folder;
  const recorded r(7, 8, 0.45, VELO_SWAP_FURTHEST);
  REQUIRE(r.stats.transfers > 8);
  for (const bool writes : {true, false}) {
    for (const bool queued : {false, true}) {
      for (int good = 0; good < 6; good += 2) {
        INFO((writes ? "write " : "read ") << good << (queued ? ", queued" : ""));
        const live_pool pool;
        velo_swap_desc desc = disk_desc(folder.path(), VELO_SWAP_ENGINE_THREADS);
        desc.memory = pool;
        const swap_world w(desc);
        const std::vector<stage_work> stages = work_of(r, stage_ends(w, r, nullptr));
        const velo_stream queue = queued ? w.context.new_stream() : w.stream;
        disk() = {disk_calls::fault::error, writes, good};
        disk().all_later = true;
        disk().number = EIO;
        disk().slow = writes && queued;
        REQUIRE(velo_swap_begin_step(w.swap, r.of.plan, nullptr, queue) == VELO_OK);
        velo_status status = VELO_OK;
        for (std::size_t s = 0; s < stages.size() && status == VELO_OK; ++s)
          status = velo_swap_begin_stage(w.swap, nullptr);
        if (status == VELO_OK) status = velo_stream_synchronize(queue);
        CHECK(status == VELO_ERR_IO);
        CHECK(last_record().argument.rfind("buffer ", 0) == 0);
        REQUIRE(velo_swap_end_step(w.swap) == VELO_OK);
        CHECK(writes_under_way() == 0);
        end_faults();
        velo_stream_clear(queue);
        host_step again{r, stages};
        again.run(w, nullptr);
        CHECK(again.wrong == 0);
        CHECK(w.stats().bytes_held == 0);
        if (queued) velo_stream_destroy(queue);
      }
    }
  }
}

TEST_CASE("a step may end early, and a swap may end in a step") {
  const recorded r(3, 8, 0.45, VELO_SWAP_SMART);
  for (std::size_t until = 0; until < r.stats.stages; ++until) {
    const live_pool pool;
    {
      const swap_world w(host_desc(pool));
      for (int round = 0; round < 3; ++round) {
        REQUIRE(velo_swap_begin_step(w.swap, r.of.plan, nullptr, w.stream) == VELO_OK);
        for (std::size_t s = 0; s < until; ++s)
          REQUIRE(velo_swap_begin_stage(w.swap, nullptr) == VELO_OK);
        if (round < 2) REQUIRE(velo_swap_end_step(w.swap) == VELO_OK);
        if (round < 2) CHECK((w.stats().objects == 0 && w.stats().bytes_held == 0));
      }
    }
    CHECK(pool.stats().bytes_live == 0);
    CHECK(pool.stats().bytes_peak == arena_bytes(r));
  }
}

TEST_CASE("a plan may change or end while a step of it runs") {
  auto r = std::make_unique<recorded>(5, 6, 0.5, VELO_SWAP_FURTHEST);
  const live_pool pool;
  const swap_world w(host_desc(pool));
  const std::uint64_t stages = r->stats.stages;
  REQUIRE(velo_swap_begin_step(w.swap, r->of.plan, nullptr, w.stream) == VELO_OK);
  r.reset();
  for (std::uint64_t s = 0; s < stages; ++s)
    REQUIRE(velo_swap_begin_stage(w.swap, nullptr) == VELO_OK);
  CHECK(velo_swap_end_step(w.swap) == VELO_OK);
}

TEST_CASE("what makes no sense is refused by name, and changes nothing") {
  const recorded r(2, 6, 0.5, VELO_SWAP_FURTHEST);
  const live_pool pool;
  const swap_world bare(host_desc());
  CHECK_REFUSED(velo_swap_begin_step(bare.swap, r.of.plan, nullptr, bare.stream), VELO_ERR_STATE,
                "memory");
  const swap_world w(host_desc(pool));
  void* memory = &memory;
  CHECK(velo_swap_begin_stage(w.swap, nullptr) == VELO_ERR_STATE);
  CHECK(velo_swap_end_step(w.swap) == VELO_ERR_STATE);
  CHECK(velo_swap_get_buffer(w.swap, 0, &memory) == VELO_ERR_STATE);
  CHECK(velo_swap_begin_step(w.swap, nullptr, nullptr, w.stream) == VELO_ERR_NULL);
  CHECK(velo_swap_begin_step(w.swap, r.of.plan, nullptr, nullptr) == VELO_ERR_NULL);
  velo_plan other = nullptr;
  REQUIRE(velo_plan_create(nullptr, &other) == VELO_OK);
  REQUIRE(velo_plan_add(other, 0, 9, 64, nullptr) == VELO_OK);
  CHECK(velo_plan_place_swaps(other, nullptr) == VELO_ERR_STATE);
  velo_swap_options o = VELO_SWAP_OPTIONS_INIT;
  o.budget = 64;
  REQUIRE(velo_plan_solve_swaps(other, &o) == VELO_OK);
  CHECK(velo_swap_begin_step(w.swap, other, nullptr, w.stream) == VELO_ERR_STATE);
  CHECK(last_record().got == "swaps without places");
  velo_plan_stay stay = VELO_PLAN_STAY_INIT;
  REQUIRE(velo_plan_get_stay(other, 0, &stay) == VELO_OK);
  CHECK((stay.offset == -1 && stay.bytes == 64));
  CHECK(velo_plan_get_stay(other, 1, &stay) == VELO_ERR_ARGUMENT);
  velo_plan_destroy(other);
  REQUIRE(velo_swap_begin_step(w.swap, r.of.plan, nullptr, w.stream) == VELO_OK);
  CHECK(velo_swap_begin_step(w.swap, r.of.plan, nullptr, w.stream) == VELO_ERR_STATE);
  CHECK(velo_swap_get_buffer(w.swap, 0, &memory) == VELO_ERR_STATE);
  REQUIRE(velo_swap_begin_stage(w.swap, nullptr) == VELO_OK);
  CHECK(velo_swap_get_buffer(w.swap, -1, &memory) == VELO_ERR_ARGUMENT);
  CHECK(velo_swap_get_buffer(w.swap, 1 << 20, &memory) == VELO_ERR_ARGUMENT);
  CHECK(memory == &memory);
  REQUIRE(velo_swap_get_buffer(w.swap, 0, &memory) == VELO_OK);
  CHECK(memory != &memory);
  CHECK(velo_swap_end_step(w.swap) == VELO_OK);
}

TEST_CASE("swaps that drop buffers have no places, and say which") {
  const planned of;
  velo_swap_options o = VELO_SWAP_OPTIONS_INIT;
  for (std::int64_t s = 0; s < 5; ++s)
    REQUIRE(velo_plan_add_work(of.plan, 10 * s + 9, 1) == VELO_OK);
  REQUIRE(velo_plan_add(of.plan, 2, 48, 100, nullptr) == VELO_OK);
  REQUIRE(velo_plan_add_use(of.plan, 0, 45, VELO_ACCESS_READ) == VELO_OK);
  REQUIRE(velo_plan_add(of.plan, 22, 28, 100, nullptr) == VELO_OK);
  o.policy = VELO_SWAP_JOINT;
  o.budget = 100;
  o.least_bytes = 0;
  o.out_bytes_per_second = o.in_bytes_per_second = 50;
  REQUIRE(velo_plan_solve_swaps(of.plan, &o) == VELO_OK);
  CHECK(velo_plan_place_swaps(of.plan, nullptr) == VELO_ERR_UNSUPPORTED);
  CHECK(last_record().got == "buffer 0, dropped to be made again");
}
