// The update in slices: an optimizer whose states are out gives the same bits as one whose states
// are resident, and a failure says how far it came.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/memory/swap/swaps.hpp"
#include "tests/tensors.hpp"
#include "velo/ops_optimizer.h"

using namespace velo::testing;

namespace {

// A step of velo's own AdamW over a range of parameters: bfloat16 in memory, float32 and moments as
// states. The gradient is a function of the parameter's number and the step.
struct adam {
  adam(velo_stream stream, std::uint64_t count) : stream(stream), param(count), gradient(count) {}

  velo_status operator()(std::uint64_t first, std::uint64_t count, void* master, void* mean,
                         void* variance) {
    for (std::uint64_t i = 0; i < count; ++i)
      gradient[first + i] = static_cast<float>(
          std::sin(static_cast<double>((first + i) * static_cast<std::uint64_t>(step))));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    const velo_tensor g = view_of(gradient.data() + first, f32, shape);
    const velo_tensor p = view_of(param.data() + first, bf16, shape);
    const velo_tensor w = view_of(master, f32, shape);
    const velo_tensor m = view_of(mean, f32, shape);
    const velo_tensor v = view_of(variance, f32, shape);
    velo_apply_fused_adamw_args args = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
    args.grad = &g;
    args.param = &p;
    args.master = &w;
    args.m = &m;
    args.v = &v;
    args.step = step;
    args.lr = 0.01;
    args.weight_decay = 0.1;
    return velo_apply_fused_adamw(stream, &args);
  }

  velo_stream stream;
  std::vector<std::uint16_t> param;
  std::vector<float> gradient;
  std::int64_t step = 1;
};

std::int32_t update_slice(void* user, std::uint64_t offset, std::uint64_t bytes,
                          void* const* slices) {
  return (*static_cast<adam*>(user))(offset / 4, bytes / 4, slices[0], slices[1], slices[2]);
}

// Three states of an optimizer: out, and beside them resident ones.
struct states {
  std::vector<float> swapped[3], resident[3];
  std::uint64_t ids[3];

  states(const swap_world& w, std::uint64_t count, velo_swap_use use) {
    for (int i = 0; i < 3; ++i) {
      swapped[i].assign(count, 0.01f * static_cast<float>(i));
      resident[i] = swapped[i];
      ids[i] = w.add(swapped[i].data(), 4 * count, use);
      w.out(ids[i]);
      std::fill(swapped[i].begin(), swapped[i].end(), -1.0f);
    }
  }
  bool agree(const swap_world& w) {
    for (int i = 0; i < 3; ++i) {
      w.in(ids[i]);
      if (std::memcmp(swapped[i].data(), resident[i].data(), 4 * swapped[i].size()) != 0)
        return false;
    }
    return true;
  }
};

struct recorder {
  std::vector<std::uint64_t> offsets, sizes;
  int answer_at = -1, answer = 0;
  bool throws = false;
};

std::int32_t see_slice(void* user, std::uint64_t offset, std::uint64_t bytes, void* const* slices) {
  auto& seen = *static_cast<recorder*>(user);
  const int call = static_cast<int>(seen.offsets.size());
  seen.offsets.push_back(offset);
  seen.sizes.push_back(bytes);
  if (reinterpret_cast<std::uintptr_t>(slices[0]) % 64 != 0) return 99;
  std::memset(slices[0], 7, bytes);
  if (call != seen.answer_at) return 0;
  if (seen.throws) throw 1;
  return seen.answer;
}

}  // namespace

TEST_CASE("an optimizer with states in a tier gives the same bits as one in memory") {
  for (const tier_case& t : tier_cases()) {
    for (const velo_swap_use use : {VELO_SWAP_WARM, VELO_SWAP_COLD}) {
      const swap_world w(t.desc);
      for (const std::uint64_t count : {1ull, 16384ull, 50001ull}) {
        for (const std::int64_t slices : {1, 3, 1000}) {
          INFO(t.name << ", use " << use << ", " << count << " elements, " << slices << " slices");
          states s(w, count, use);
          adam swapped(w.stream, count), resident(w.stream, count);
          for (int step = 1; step <= 3; ++step) {
            swapped.step = resident.step = step;
            REQUIRE(velo_swap_update(w.swap, s.ids, 3, slices, &update_slice, &swapped) == VELO_OK);
            REQUIRE(resident(0, count, s.resident[0].data(), s.resident[1].data(),
                             s.resident[2].data()) == VELO_OK);
          }
          CHECK(swapped.param == resident.param);
          CHECK(s.agree(w));
        }
      }
    }
  }
}

TEST_CASE("slices come in order, once each, and cover the object") {
  for (const tier_case& t : tier_cases()) {
    const swap_world w(t.desc);
    const std::uint64_t bytes = 1000003;
    std::vector<unsigned char> memory(bytes, 1);
    const std::uint64_t id = w.add(memory.data(), bytes);
    w.out(id);
    recorder seen;
    REQUIRE(velo_swap_update(w.swap, &id, 1, 5, &see_slice, &seen) == VELO_OK);
    CHECK(seen.offsets.size() <= 5);
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < seen.offsets.size(); ++i) {
      CHECK(seen.offsets[i] == next);
      next += seen.sizes[i];
    }
    CHECK(next == bytes);
    CHECK(w.state(id) == VELO_SWAP_OUT);
    CHECK(w.stats().bytes_in == bytes);
    CHECK(w.stats().bytes_out == 2 * bytes);
    w.in(id);
    CHECK(memory == std::vector<unsigned char>(bytes, 7));
  }
}

TEST_CASE("an update that the function ends leaves every object out and the rest untouched") {
  for (const bool throws : {false, true}) {
    const swap_world w(host_desc());
    const std::uint64_t bytes = 16 * 4096;
    std::vector<unsigned char> memory(bytes, 1);
    const std::uint64_t id = w.add(memory.data(), bytes);
    w.out(id);
    recorder seen;
    seen.answer_at = 8;
    seen.answer = 5;
    seen.throws = throws;
    CHECK_REFUSED(velo_swap_update(w.swap, &id, 1, 16, &see_slice, &seen), VELO_ERR_FOREIGN,
                  "update");
    CHECK(seen.offsets.size() == 9);
    CHECK(w.state(id) == VELO_SWAP_OUT);
    w.in(id);
    CHECK(std::count(memory.begin(), memory.end(), 7) == 8 * 4096);
    CHECK(std::count(memory.begin() + 9 * 4096, memory.end(), 1) == 7 * 4096);
  }
}

TEST_CASE("objects in an update can be neither moved nor dropped") {
  const swap_world w(host_desc());
  struct seen {
    const swap_world& w;
    std::uint64_t id;
    velo_status out, in, drop, update;
    velo_swap_state state;
  };
  std::vector<unsigned char> memory(1000, 1);
  const std::uint64_t id = w.add(memory.data(), 1000);
  w.out(id);
  seen s{w, id, VELO_OK, VELO_OK, VELO_OK, VELO_OK, VELO_SWAP_OUT};
  const auto tries = [](void* user, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t {
    auto& to = *static_cast<seen*>(user);
    to.out = velo_swap_out(to.w.swap, to.id, to.w.stream, nullptr);
    to.in = velo_swap_in(to.w.swap, to.id, nullptr, to.w.stream, nullptr);
    to.drop = velo_swap_drop(to.w.swap, to.id, nullptr);
    to.update = velo_swap_update(to.w.swap, &to.id, 1, 1, &see_slice, nullptr);
    to.state = to.w.state(to.id);
    return 0;
  };
  REQUIRE(velo_swap_update(w.swap, &id, 1, 1, tries, &s) == VELO_OK);
  CHECK(s.out == VELO_ERR_STATE);
  CHECK(s.in == VELO_ERR_STATE);
  CHECK(s.drop == VELO_ERR_STATE);
  CHECK(s.update == VELO_ERR_STATE);
  CHECK(s.state == VELO_SWAP_UPDATING);
  CHECK(w.state(id) == VELO_SWAP_OUT);
}

TEST_CASE("updates that make no sense are refused before anything moves") {
  const swap_world w(host_desc());
  std::vector<unsigned char> memory(3000, 1);
  const std::uint64_t a = w.add(memory.data(), 1000), b = w.add(memory.data() + 1000, 1001);
  const std::uint64_t c = w.add(memory.data() + 2001, 500);
  w.out(a);
  w.out(b);
  recorder seen;
  const auto refused = [&](std::vector<std::uint64_t> ids, std::int64_t slices, velo_status status,
                           const char* argument) {
    CHECK_REFUSED(velo_swap_update(w.swap, ids.data(), static_cast<std::int64_t>(ids.size()),
                                   slices, &see_slice, &seen),
                  status, argument);
  };
  refused({a}, 0, VELO_ERR_ARGUMENT, "slices");
  refused({}, 1, VELO_ERR_NULL, "objects");
  refused({a, a}, 1, VELO_ERR_ARGUMENT, "objects");
  refused({a, b}, 1, VELO_ERR_ARGUMENT, "objects");
  refused({c}, 1, VELO_ERR_STATE, "objects");
  refused({99}, 1, VELO_ERR_ARGUMENT, "object");
  CHECK(velo_swap_update(w.swap, &a, 0, 1, &see_slice, &seen) == VELO_ERR_ARGUMENT);
  CHECK(velo_swap_update(w.swap, &a, 1, 1, nullptr, &seen) == VELO_ERR_NULL);
  CHECK(seen.offsets.empty());
  CHECK(w.stats().bytes_in == 0);
  CHECK(w.state(a) == VELO_SWAP_OUT);
}

TEST_CASE("an update waits for objects that are still leaving") {
  const swap_world w(host_desc());
  held_queue queue(w.context);
  std::vector<unsigned char> memory(1000, 1);
  const std::uint64_t id = w.add(memory.data(), 1000);
  REQUIRE(velo_swap_out(w.swap, id, queue, nullptr) == VELO_OK);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    queue.open();
  });
  recorder seen;
  CHECK(velo_swap_update(w.swap, &id, 1, 1, &see_slice, &seen) == VELO_OK);
  opener.join();
  w.in(id);
  CHECK(memory == std::vector<unsigned char>(1000, 7));
}

TEST_CASE("a swap is not destroyed while its update runs") {
  const swap_world w(host_desc());
  std::vector<char> memory(5000, 1);
  const std::uint64_t id = w.add(memory.data(), memory.size());
  w.out(id);
  const auto destroys = [](void* swap, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t {
    velo_swap_destroy(static_cast<velo_swap>(swap));
    return last_record().argument == "swap" ? 0 : 1;
  };
  CHECK(velo_swap_update(w.swap, &id, 1, 2, destroys, w.swap) == VELO_OK);
  w.in(id);
  CHECK(std::count(memory.begin(), memory.end(), 1) == 5000);
}
