// Steps of plans: what is recorded, what a replay answers, and what it does with all that differs.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "memory/plan/solver/placement.hpp"
#include "memory/plan/solver/random.hpp"
#include "tests/context.hpp"
#include "tests/memory/swap/planned.hpp"
#include "tests/structs.hpp"

using velo::memory::lifetime;
using velo::memory::plan_random;
using velo::testing::planned;
using velo::testing::request_of;

namespace {

// A step of buffers by their lifetimes; each is filled with its own pattern, which must be whole
// when it is freed.
class script {
 public:
  explicit script(std::vector<lifetime> buffers) : buffers_(std::move(buffers)) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      events_.emplace_back(buffers_[i].lower, true, i);
      events_.emplace_back(buffers_[i].upper, false, i);
    }
    std::sort(events_.begin(), events_.end());
  }

  const std::vector<lifetime>& buffers() const { return buffers_; }

  void run(const planned& on) {
    std::vector<char*> at(buffers_.size());
    live = peak = reserved = 0;
    for (const auto& [time, begins, i] : events_) {
      const auto bytes = static_cast<std::uint64_t>(buffers_[i].size);
      if (begins) {
        at[i] = on.allocate(bytes);
        mark(at[i], bytes, i);
        live += (bytes + 511) / 512 * 512;
        peak = std::max(peak, live);
        reserved = std::max(reserved, on.pool.stats().bytes_reserved);
      } else {
        whole = whole && is_marked(at[i], bytes, i);
        on.free(at[i], bytes);
        live -= (bytes + 511) / 512 * 512;
      }
    }
  }

  std::uint64_t live = 0, peak = 0, reserved = 0;
  bool whole = true;

 private:
  // First, last and some bytes between: enough to see an overlap of any two blocks.
  static void mark(char* memory, std::uint64_t bytes, std::size_t i) {
    for (std::uint64_t x = 0; x < bytes; x += 16381) memory[x] = static_cast<char>(i * 7 + x);
    memory[bytes - 1] = static_cast<char>(i);
  }
  static bool is_marked(const char* memory, std::uint64_t bytes, std::size_t i) {
    for (std::uint64_t x = 0; x + 1 < bytes; x += 16381)
      if (memory[x] != static_cast<char>(i * 7 + x)) return false;
    return memory[bytes - 1] == static_cast<char>(i);
  }

  std::vector<lifetime> buffers_;
  std::vector<std::tuple<std::int64_t, bool, std::size_t>> events_;
};

// Layers forward and back: each keeps some buffers for its way back and uses others in between.
std::vector<lifetime> training_step(std::uint64_t seed, int layers) {
  plan_random random(seed);
  const auto bytes = [&](std::uint64_t most) {
    return static_cast<std::int64_t>((1 + random.below(most)) * 512);
  };
  std::vector<lifetime> made;
  const std::int64_t turn = 20 * layers;
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t there = 20 * l, back = 2 * turn - 20 * (l + 1);
    for (std::int64_t x = 0; x < 6; ++x)
      made.push_back(
          {there + x, back + 18 - static_cast<std::int64_t>(random.below(6)), bytes(2000)});
    for (const std::int64_t phase : {there, back})
      for (std::int64_t x = 0; x < 6; ++x)
        made.push_back({phase + 6 + x, phase + 8 + x + static_cast<std::int64_t>(random.below(6)),
                        bytes(600)});
  }
  return made;
}

// Some buffers of other sizes, and some new ones.
std::vector<lifetime> changed(std::vector<lifetime> buffers, std::uint64_t seed) {
  plan_random random(seed);
  std::int64_t end = 0;
  for (const lifetime& b : buffers) end = std::max(end, b.upper);
  const std::size_t count = buffers.size();
  for (std::size_t x = 0; x < count / 20; ++x) {
    lifetime& b = buffers[random.below(count)];
    b.size = std::max<std::int64_t>(
        64, static_cast<std::int64_t>(static_cast<double>(b.size) * (0.5 + random.unit())));
  }
  for (std::size_t x = 0; x < count / 100; ++x) {
    const lifetime& like = buffers[random.below(count)];
    const auto begin = static_cast<std::int64_t>(random.below(end));
    buffers.push_back({begin, std::min(end, begin + like.upper - like.lower), like.size});
  }
  return buffers;
}

}  // namespace

TEST_CASE("a replay puts what was recorded at fixed addresses, as low as the plan") {
  const planned p;
  script step(training_step(1, 10));
  p.record([&] { step.run(p); });
  CHECK(p.stats().buffers == step.buffers().size());
  std::vector<std::vector<char*>> seen(2);
  for (std::vector<char*>& addresses : seen) {
    const velo_plan_step after = p.replay([&] {
      step.run(p);
      char* first = p.allocate(999);
      addresses.push_back(first);
      p.free(first, 999);
    });
    CHECK(after.matched == step.buffers().size());
    CHECK(after.unexpected == 1);
    CHECK(after.displaced + after.resized + after.outliving + after.missing == 0);
    CHECK(after.bytes_planned == p.stats().height);
    CHECK(after.bytes_reserved <= (p.stats().height + 4095) / 4096 * 4096);
    CHECK(after.bytes_live == 0);
  }
  CHECK(step.whole);
  // Memory that the recording left in the pool was trimmed for the planned addresses.
  CHECK(step.reserved <= step.peak * 102 / 100);
}

TEST_CASE("the same request has the same address in every step") {
  const planned p;
  std::vector<std::vector<char*>> seen;
  const auto step = [&] {
    std::vector<char*> at = {p.allocate(70000), p.allocate(100, 4096), p.allocate(64)};
    p.free(at[1], 100);
    at.push_back(p.allocate(100));
    for (std::size_t i : {0, 2, 3}) p.free(at[i], i == 0 ? 70000 : i == 2 ? 64 : 100);
    seen.push_back(at);
  };
  p.record(step);
  for (int i = 0; i < 3; ++i) CHECK(p.replay(step).matched == 4);
  CHECK(seen[1] == seen[2]);
  CHECK(seen[2] == seen[3]);
  CHECK(reinterpret_cast<std::uintptr_t>(seen[1][1]) % 4096 == 0);
}

TEST_CASE("a step whose tensors change lives on, in hardly more memory than it uses") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    INFO("seed " << seed);
    const planned p;
    script recorded(training_step(seed, 30));
    p.record([&] { recorded.run(p); });
    for (std::uint64_t round = 0; round < 5; ++round) {
      script step(changed(recorded.buffers(), 100 * seed + round));
      const velo_plan_step after = p.replay([&] { step.run(p); });
      CHECK(step.whole);
      CHECK(step.reserved <= step.peak * 102 / 100);
      CHECK(after.matched > step.buffers().size() * 80 / 100);
      CHECK(after.resized + after.unexpected + after.displaced > 0);
      CHECK(after.matched + after.resized + after.displaced + after.unexpected ==
            after.allocations);
    }
    CHECK(p.replay([&] { recorded.run(p); }).matched == recorded.buffers().size());
  }
}

TEST_CASE("uses and computing are recorded with the buffers they are of") {
  const planned p;
  char* kept = nullptr;
  p.record([&] {
    kept = p.allocate(640);
    char* a = p.allocate(100);
    REQUIRE(velo_plan_use(p.plan, a, VELO_ACCESS_WRITE) == VELO_OK);
    REQUIRE(velo_plan_work(p.plan, 0.5) == VELO_OK);
    char* b = p.allocate(200);
    REQUIRE(velo_plan_use(p.plan, a, VELO_ACCESS_READ) == VELO_OK);
    REQUIRE(velo_plan_use(p.plan, b, VELO_ACCESS_WRITE) == VELO_OK);
    REQUIRE(velo_plan_use(p.plan, kept, VELO_ACCESS_READ) == VELO_OK);
    p.free(a, 100);
    p.free(b, 200);
  });
  p.free(kept, 640);
  // A buffer that outlives the step is not the plan's, nor is its use.
  REQUIRE(p.stats().buffers == 2);
  REQUIRE(p.stats().uses == 3);
  const std::int64_t buffers[] = {0, 0, 1};
  const velo_access accesses[] = {VELO_ACCESS_WRITE, VELO_ACCESS_READ, VELO_ACCESS_WRITE};
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < 3; ++i) {
    velo_plan_use_info use = VELO_PLAN_USE_INFO_INIT;
    velo_plan_buffer of = VELO_PLAN_BUFFER_INIT;
    REQUIRE(velo_plan_get_use(p.plan, i, &use) == VELO_OK);
    REQUIRE(velo_plan_get_buffer(p.plan, use.buffer, &of) == VELO_OK);
    CHECK(use.buffer == buffers[i]);
    CHECK(use.access == accesses[i]);
    CHECK(use.time > before);
    CHECK((of.lower <= use.time && use.time < of.upper));
    before = use.time;
  }
}

TEST_CASE("what outlives its step is the pool's in every step") {
  const planned p;
  char* kept = nullptr;
  const auto step = [&] {
    char* a = p.allocate(5000);
    if (kept != nullptr) p.free(kept, 300);
    kept = p.allocate(300);
    p.free(a, 5000);
  };
  p.record(step);
  CHECK(p.stats().buffers == 1);
  for (int i = 0; i < 3; ++i) {
    const velo_plan_step after = p.replay(step);
    CHECK(after.matched == 1);
    CHECK(after.outliving == 1);
  }
  p.free(kept, 300);
  CHECK(p.pool.stats().bytes_live == 0);
}

TEST_CASE("a block that is freed late keeps its place, and what was to lie there comes elsewhere") {
  const planned p;
  bool late = false;
  char* held = nullptr;
  const auto step = [&] {
    char* a = p.allocate(1 << 20);
    std::memset(a, 1, 1 << 20);
    if (!late) p.free(a, 1 << 20);
    char* b = p.allocate(1 << 20);
    std::memset(b, 2, 1 << 20);
    p.free(b, 1 << 20);
    held = late ? a : nullptr;
  };
  p.record(step);
  CHECK(p.stats().height == 1 << 20);
  late = true;
  velo_plan_step after = p.replay(step);
  CHECK(after.matched == 1);
  CHECK(after.displaced == 1);
  CHECK(after.bytes_live == 1 << 20);
  CHECK((held[0] == 1 && held[(1 << 20) - 1] == 1));
  char* straggler = held;
  late = false;
  after = p.replay(step);  // it lies there still
  CHECK(after.displaced == 2);
  p.free(straggler, 1 << 20);
  CHECK(p.replay(step).matched == 2);
}

TEST_CASE("tensors that shrink, grow, come and go are counted as what they are") {
  const planned p;
  std::vector<std::uint64_t> sizes = {1000, 20000, 3000, 40000, 5000};
  const auto step = [&] {
    std::vector<char*> at;
    for (const std::uint64_t bytes : sizes) at.push_back(p.allocate(bytes));
    for (std::size_t i = 0; i < at.size(); ++i) p.free(at[i], sizes[i]);
  };
  p.record(step);
  using numbers = std::vector<std::uint64_t>;
  const auto counts = [&](numbers now) {
    sizes = std::move(now);
    const velo_plan_step s = p.replay(step);
    CHECK(s.allocations == sizes.size());
    CHECK(s.displaced == 0);
    return numbers{s.matched, s.resized, s.unexpected, s.missing};
  };
  CHECK(counts({1000, 20000, 3000, 40000, 5000}) == numbers{5, 0, 0, 0});
  CHECK(counts({1000, 15000, 3000, 40000, 5000}) == numbers{4, 1, 0, 0});      // shrunk
  CHECK(counts({1000, 25000, 3000, 40000, 5000}) == numbers{4, 0, 1, 1});      // grown
  CHECK(counts({1000, 77, 20000, 3000, 40000, 5000}) == numbers{5, 0, 1, 0});  // new
  CHECK(counts({1000, 3000, 40000, 5000}) == numbers{4, 0, 0, 1});             // gone
  CHECK(counts({9, 9, 9, 9, 9, 9, 9, 9, 1000, 20000, 3000}) == numbers{3, 0, 8, 2});
}

TEST_CASE("a run of new tensors, however long, does not lose the rest of the step") {
  const planned p;
  int extra = 0;
  const auto step = [&] {
    for (std::uint64_t i = 0; i < 300; ++i) {
      if (i == 20) {
        for (int x = 0; x < extra; ++x) p.free(p.allocate(7), 7);
      }
      p.free(p.allocate(1000 + i), 1000 + i);
    }
  };
  p.record(step);
  extra = 1000;
  const velo_plan_step after = p.replay(step);
  CHECK(after.matched == 300);
  CHECK(after.unexpected == 1000);
}

TEST_CASE("threads follow the threads of the recording") {
  const planned p;
  std::atomic<int> bad{0};  // asserted on this thread alone
  const auto take = [&](std::uint64_t bytes) {
    const velo_pool_request request = request_of(bytes);
    void* memory = nullptr;
    bad += velo_plan_allocate(p.plan, &request, &memory) != VELO_OK;
    return static_cast<char*>(memory);
  };
  const auto give = [&](char* memory, std::uint64_t bytes) {
    bad += velo_plan_free(p.plan, memory, bytes, nullptr) != VELO_OK;
  };
  const auto work = [&](std::uint64_t bytes) {
    for (int i = 0; i < 200 && bad == 0; ++i) {
      char* a = take(bytes);
      char* b = take(2 * bytes);
      if (bad != 0) return;
      std::memset(a, static_cast<int>(bytes), bytes);
      std::memset(b, 3, 2 * bytes);
      give(b, 2 * bytes);
      for (std::uint64_t x = 0; x < bytes; x += 63) bad += a[x] != static_cast<char>(bytes);
      give(a, bytes);
    }
  };
  const auto step = [&] {
    std::thread one(work, 3000), two(work, 5000);
    work(700);
    one.join();
    two.join();
  };
  p.record(step);
  CHECK(p.stats().buffers == 1200);
  for (int i = 0; i < 5; ++i) {
    const velo_plan_step after = p.replay(step);
    CHECK(after.matched + after.displaced == 1200);
    CHECK(after.unexpected + after.missing + after.resized == 0);
    CHECK(after.bytes_live == 0);
  }
  // One after the other: requests are as recorded still.
  const velo_plan_step after = p.replay([&] {
    work(700);
    std::thread(work, 5000).join();
    std::thread(work, 3000).join();
  });
  CHECK(after.matched + after.displaced == 1200);
  CHECK(bad == 0);
}

TEST_CASE("a place freed on a stream is free when the stream has come so far") {
  const velo::testing::live_context context;
  const velo_stream stream = context.new_stream();
  const planned p;
  const auto step = [&](velo_stream on) {
    char* a = p.allocate(1 << 16);
    REQUIRE(velo_plan_free(p.plan, a, 1 << 16, on) == VELO_OK);
    CHECK(velo_plan_free(p.plan, a, 1 << 16, on) == VELO_ERR_ARGUMENT);
    CHECK((on == nullptr || velo_stream_synchronize(on) == VELO_OK));
    char* b = p.allocate(1 << 16);
    p.free(b, 1 << 16);
  };
  p.record([&] { step(nullptr); });
  CHECK(p.replay([&] { step(stream); }).matched == 2);
  CHECK(p.step().bytes_live == 0);
}

TEST_CASE("a context's scratch can be part of steps") {
  const planned p;
  velo_allocator through = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_plan_allocator(p.plan, &through) == VELO_OK);
  const auto step = [&] {
    void* memory = through.allocate(through.user, 4096, 64, nullptr, nullptr);
    REQUIRE(memory != nullptr);
    through.deallocate(through.user, memory, 4096, nullptr, nullptr);
  };
  p.record(step);
  CHECK(p.replay(step).matched == 1);
}

TEST_CASE("the pool's limit holds for addresses, and what lies idle there makes room") {
  const planned p(velo::testing::limited_pool(24 << 20));
  std::uint64_t second = 16 << 20;
  const auto step = [&] {
    char* a = p.allocate(16 << 20);
    p.free(a, 16 << 20);
    char* b = p.allocate(second);
    p.free(b, second);
  };
  p.record(step);
  CHECK(p.replay(step).matched == 2);
  second = 20 << 20;  // fits only where the 16 MiB at addresses go
  CHECK(p.replay(step).matched == 1);
  CHECK(p.step().bytes_let_go >= 12 << 20);
  CHECK(p.pool.stats().bytes_reserved_peak <= 24 << 20);
  second = 16 << 20;
  CHECK(p.replay(step).matched == 2);
}

TEST_CASE("a plan that ends with blocks in use leaves them mapped") {
  char* a = nullptr;
  {
    const planned p;
    p.record([&] {
      a = p.allocate(10000);
      p.free(a, 10000);
    });
    p.replay([&] { a = p.allocate(10000); });
  }
  std::memset(a, 5, 10000);
  CHECK(a[9999] == 5);
}
