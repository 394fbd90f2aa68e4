// Sequence plans: rows, visits and prices of known cases; random plans proven, and carried out to
// the result of whole attention; wrong plans found out.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include "core/failure.hpp"
#include "tests/random.hpp"
#include "tests/sched/parallel/context/carried_out.hpp"

using namespace velo::testing;
using velo::sched::attention_pass;
using velo::sched::attention_task;
using velo::sched::rows;

namespace {

sequence_shape shape_of(std::int64_t ranks, std::vector<std::int64_t> ends, std::int64_t heads = 1,
                        std::int64_t keys = 1, bool causal = true) {
  return {{std::move(ends)}, causal, nullptr, {heads, keys}, ranks};
}

std::vector<std::int64_t> listed(const rows& of) {
  std::vector<std::int64_t> all;
  for (const auto& s : of)
    for (std::int64_t row = s.begin; row < s.end; ++row) all.push_back(row);
  return all;
}

// The first rows of the blocks that a rank's tasks meet, step by step.
std::vector<std::int64_t> visits(const sequence_plan& plan, std::size_t rank,
                                 const attention_pass& pass) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(pass.steps), -1);
  for (const attention_task& task : pass.tasks[rank])
    for (std::size_t owner = 0; owner < plan.held.size(); ++owner)
      if (!task.keys.empty() && plan.held[owner].front().begin == task.keys.front().begin)
        all[static_cast<std::size_t>(task.step)] = static_cast<std::int64_t>(owner);
  return all;
}

std::int64_t cells_in(const sequence_plan& plan, const sequence_shape& of, std::size_t rank,
                      std::int64_t step) {
  std::int64_t sum = 0;
  for (const attention_task& task : plan.forward.tasks[rank])
    if (task.step == step) sum += velo::sched::cells_of(task, of);
  return sum;
}

// Elements that a rank receives in the forward, of heads of d.
std::int64_t received(const sequence_plan& plan, std::int64_t rank, std::int64_t d) {
  std::int64_t sum = 0;
  for (const velo::sched::block_message& m : plan.forward.messages)
    if (m.to == rank) sum += velo::sched::size_of(m.of) * m.heads.size() * d;
  return sum;
}

using list = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("rows of a causal ring lie in a zigzag, and all ranks see as many cells") {
  const sequence_shape of = shape_of(4, {16});
  const sequence_plan plan = velo::sched::plan_rings(of, {1, 1});
  CHECK(listed(plan.held[0]) == list{0, 1, 14, 15});
  CHECK(listed(plan.held[3]) == list{6, 7, 8, 9});
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(cells_in(plan, of, r, 0) == 10);
    for (std::int64_t step = 1; step < 4; ++step) CHECK(cells_in(plan, of, r, step) == 8);
  }
  const sequence_shape large = shape_of(8, {4096});
  const sequence_plan ring = velo::sched::plan_rings(large, {1, 1});
  for (std::size_t r = 0; r < 8; ++r) {
    std::int64_t cells = 0;
    for (std::int64_t step = 0; step < 8; ++step) cells += cells_in(ring, large, r, step);
    CHECK(cells == 1048832);
  }
}

TEST_CASE("a triangle as a mask leaves rows contiguous, and the last rank sees most cells") {
  const std::int64_t sequence = 4096;
  std::vector<std::uint8_t> triangle(static_cast<std::size_t>(sequence * sequence));
  for (std::int64_t q = 0; q < sequence; ++q)
    std::fill(triangle.begin() + q * sequence + q + 1, triangle.begin() + (q + 1) * sequence,
              std::uint8_t{1});
  sequence_shape of = shape_of(8, {sequence});
  of.mask = triangle.data();
  const sequence_plan plan = velo::sched::plan_rings(of, {1, 1});
  const auto seen = [&](std::size_t rank) {
    std::int64_t cells = 0;
    for (std::int64_t step = 0; step < 8; ++step) cells += cells_in(plan, of, rank, step);
    return cells;
  };
  CHECK(plan.held[7].front() == velo::sched::span{3584, 4096});
  CHECK(seen(0) == 131328);
  CHECK(seen(7) == 1966336);
}

TEST_CASE("rows of documents and of hybrids follow one rule") {
  const sequence_plan packed = velo::sched::plan_rings(shape_of(2, {8, 12, 24}), {1, 1});
  CHECK(listed(packed.held[0]) == list{0, 1, 6, 7, 8, 11, 12, 13, 14, 21, 22, 23});
  const sequence_plan hybrid = velo::sched::plan_rings(shape_of(8, {32}, 2), {2, 1});
  const list first[] = {{0, 1, 2, 3},   {28, 29, 30, 31}, {4, 5, 6, 7},     {24, 25, 26, 27},
                        {8, 9, 10, 11}, {20, 21, 22, 23}, {12, 13, 14, 15}, {16, 17, 18, 19}};
  for (std::size_t r = 0; r < 8; ++r) CHECK(listed(hybrid.held[r]) == first[r]);
}

TEST_CASE("rows that ranks do not divide are one more on the first ranks") {
  const auto sizes = [](std::int64_t sequence, std::int64_t ranks) {
    list all;
    for (const rows& held :
         velo::sched::plan_rings(shape_of(ranks, {sequence}, ranks), {ranks, 1}).held)
      all.push_back(velo::sched::size_of(held));
    return all;
  };
  CHECK(sizes(1026, 4) == list{257, 257, 256, 256});
  CHECK(sizes(3, 5) == list{1, 1, 1, 0, 0});
  CHECK(sizes(8190, 8) == list{1024, 1024, 1024, 1024, 1024, 1024, 1023, 1023});
}

TEST_CASE("a list of documents may end with an empty one") {
  // The ends of two rows of 8: the first has ends at 3 and 6, the second only its own.
  for (const std::int64_t ranks : {1, 2, 4}) {
    const sequence_shape of = shape_of(ranks, {3, 6, 8, 16, 16});
    const sequence_plan plan = velo::sched::plan_rings(of, {1, 1}),
                        without = velo::sched::plan_rings(shape_of(ranks, {3, 6, 8, 16}), {1, 1});
    velo::sched::prove(plan, of);
    std::int64_t cells = 0;
    for (std::size_t r = 0; r < plan.held.size(); ++r) {
      CHECK(listed(plan.held[r]) == listed(without.held[r]));
      for (std::int64_t step = 0; step < ranks; ++step) cells += cells_in(plan, of, r, step);
    }
    CHECK(cells == 6 + 6 + 3 + 36);
  }
}

TEST_CASE("rings meet blocks in the order of their windows, and back") {
  const auto met = [](std::int64_t window, std::size_t rank) {
    const sequence_plan plan = velo::sched::plan_rings(shape_of(8, {16}, 1, 1, false), {1, window});
    list forward = visits(plan, rank, plan.forward), back = visits(plan, rank, plan.gradient);
    std::reverse(back.begin(), back.end());
    CHECK(forward == back);
    return forward;
  };
  CHECK(met(1, 2) == list{2, 1, 0, 7, 6, 5, 4, 3});
  CHECK(met(2, 2) == list{2, 3, 0, 1, 6, 7, 4, 5});
  CHECK(met(2, 3) == list{3, 2, 1, 0, 7, 6, 5, 4});
  CHECK(met(4, 5) == list{5, 4, 7, 6, 1, 0, 3, 2});
}

TEST_CASE("rings and exchanges of heads receive what their formulas say") {
  const sequence_shape of = shape_of(8, {32768}, 32, 8);
  CHECK(received(velo::sched::plan_rings(of, {1, 1}), 3, 128) == 2 * 7 * 4096 * 8 * 128);
  CHECK(received(velo::sched::plan_all_gather(of), 3, 128) == 2 * 7 * 4096 * 8 * 128);
  CHECK(received(velo::sched::plan_rings(of, {8, 1}), 3, 128) ==
        (32 + 2 * 8 + 32) * 128 * 4096 / 8 * 7);
  // key heads of uneven query heads: 0 to 3 and 3 to 6, of 512 rows each
  const sequence_plan uneven = velo::sched::plan_rings(shape_of(2, {1024}, 28, 7), {2, 1});
  for (const velo::sched::block_message& m : uneven.forward.messages)
    if (m.what == content::k)
      CHECK(m.heads == (m.to == 0 ? velo::sched::span{0, 4} : velo::sched::span{3, 7}));
  const velo::sched::span of_four[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  const sequence_plan fewer = velo::sched::plan_rings(shape_of(4, {64}, 12, 3), {4, 1});
  for (const velo::sched::block_message& m : fewer.forward.messages)
    if (m.what == content::k) CHECK(m.heads == of_four[m.to]);
}

TEST_CASE("in every step of a ring all ranks hold different blocks, in any window") {
  for (const std::int64_t window : {1, 2, 4, 8}) {
    const sequence_plan plan = velo::sched::plan_rings(shape_of(8, {16}, 1, 1, false), {1, window});
    for (const attention_pass* pass : {&plan.forward, &plan.gradient})
      for (std::size_t step = 0; step < 8; ++step) {
        list held;
        for (std::size_t rank = 0; rank < 8; ++rank)
          held.push_back(visits(plan, rank, *pass)[step]);
        std::sort(held.begin(), held.end());
        CHECK(held == list{0, 1, 2, 3, 4, 5, 6, 7});
      }
  }
}

TEST_CASE("what is kept for the gradient does not travel again") {
  using velo::sched::kept_blocks;
  const auto sent = [](kept_blocks kept, content what) {
    const sequence_plan plan = velo::sched::plan_rings(shape_of(8, {64}), {1, 1, kept});
    return std::count_if(plan.gradient.messages.begin(), plan.gradient.messages.end(),
                         [&](const auto& m) { return m.to == 3 && m.what == what; });
  };
  // of 8 blocks the last is there, and the own one
  CHECK(sent(kept_blocks::none, content::k) == 6);
  CHECK(sent(kept_blocks::none, content::v) == 6);
  CHECK(sent(kept_blocks::keys, content::k) == 1);
  CHECK(sent(kept_blocks::keys, content::v) == 6);
  CHECK(sent(kept_blocks::both, content::k) == 1);
  CHECK(sent(kept_blocks::both, content::v) == 1);
  CHECK(sent(kept_blocks::both, content::dk) == 7);
}

TEST_CASE(
    "an owner of keys keeps each block in its cache, and a layer that takes them sends none") {
  using velo::sched::kept_blocks;
  const sequence_shape of = shape_of(8, {64});
  sequence_plan plan = velo::sched::plan_rings(of, {1, 2, kept_blocks::both, false, true});
  const auto sent = [&](const attention_pass& pass, content what) {
    return std::count_if(pass.messages.begin(), pass.messages.end(),
                         [&](const auto& m) { return m.what == what; });
  };
  CHECK(sent(plan.forward, content::k) == 8 * 7);
  CHECK(sent(plan.gradient, content::k) == 0);
  CHECK(sent(plan.gradient, content::v) == 0);
  velo::sched::give_keys(plan);
  velo::sched::prove(plan, of);
  CHECK(plan.given.size() == 2 * 8 * 7);
  CHECK(plan.forward.messages.empty());
  CHECK(sent(plan.gradient, content::dk) == 8 * 7);
  plan.given.pop_back();  // a block that is neither there nor sent
  CHECK_THROWS_AS(velo::sched::prove(plan, of), velo::core::failure);
}

TEST_CASE("exchanges of heads send keys again where a rank keeps its own") {
  using velo::sched::kept_blocks;
  for (const bool gathers : {false, true}) {
    const auto sent = [&](kept_blocks kept, content what) {
      const sequence_plan plan =
          velo::sched::plan_rings(shape_of(4, {64}, 8, 2), {4, 1, kept, gathers});
      std::int64_t again = 0;
      for (const auto& m : plan.gradient.messages)
        if (m.to == 3 && m.what == what) again += velo::sched::size_of(m.of) * m.heads.size();
      std::int64_t left = 0;
      for (const auto& m : plan.forward.messages)
        if (m.to == 3 && m.what == what && m.kept)
          left += velo::sched::size_of(m.of) * m.heads.size();
      const std::int64_t heads = gathers ? 2 : 1;
      CHECK(again + left == (velo::sched::is_of_keys(what) ? 3 * 16 * heads : 3 * 16 * 2));
      return again > 0;
    };
    CHECK_FALSE(sent(kept_blocks::none, content::k));
    CHECK_FALSE(sent(kept_blocks::none, content::v));
    CHECK(sent(kept_blocks::keys, content::k));
    CHECK_FALSE(sent(kept_blocks::keys, content::v));
    CHECK(sent(kept_blocks::both, content::k));
    CHECK(sent(kept_blocks::both, content::v));
    CHECK_FALSE(sent(kept_blocks::both, content::q));
  }
}

TEST_CASE("random plans are proven, and give the results of whole attention") {
  const char* asked = std::getenv("VELO_SEQUENCE_PLANS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 120;
  for (int round = 0; round < rounds; ++round) {
    shown_random_numbers<std::mt19937_64> random(static_cast<std::uint64_t>(round));
    INFO("round " << round);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    const std::int64_t sequence = 1 + below(20), keys = 1 + below(3);
    std::vector<std::int64_t> ends;
    while (ends.empty() || ends.back() < sequence) {
      const std::int64_t last = ends.empty() ? 0 : ends.back();
      ends.push_back(std::min(sequence, last + below(1 + static_cast<std::uint64_t>(sequence))));
    }
    if (random.one_in(4)) ends.push_back(sequence);  // an empty document
    const std::int64_t heads = keys * (1 + below(4));
    const std::int64_t u = std::min(heads, 1 + below(3)), ring = 1 + below(5);
    std::int64_t window = 1 + below(static_cast<std::uint64_t>(ring));
    while (ring % window != 0) --window;
    using velo::sched::kept_blocks;
    const kept_blocks kept[] = {kept_blocks::none, kept_blocks::keys, kept_blocks::both};
    sequence_shape of = shape_of(u * ring, ends, heads, keys, !random.one_in(3));
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(sequence * sequence));
    if (random.one_in(5)) {
      for (std::uint8_t& hidden : mask) hidden = random.one_in(2) ? 1 : 0;
      of.all.ends = {sequence}, of.mask = mask.data();
    }
    const bool gathers = random.one_in(3);
    sequence_plan plan =
        of.mask != nullptr && random.one_in(2) ? velo::sched::plan_adaptive(of, {u, gathers})
        : random.one_in(4)                     ? velo::sched::plan_all_gather(of)
                           : velo::sched::plan_rings(of, {u, window, random.pick(kept), gathers,
                                                          /*keeps_each=*/random.one_in(2)});
    if (random.one_in(3)) velo::sched::give_keys(plan);
    velo::sched::prove(plan, of);
    const rows_by_place whole = whole_attention(of);
    const rows_by_place results = carried_out_plan(plan, of).run();
    for (const auto& [at, x] : whole) {
      const row_vector got = results.count(at) == 0 ? row_vector() : results.at(at);
      for (int d = 0; d < width; ++d) {
        const double here = got.empty() ? 0 : got[static_cast<std::size_t>(d)];
        REQUIRE(std::abs(here - x[static_cast<std::size_t>(d)]) < 1e-12);
      }
    }
  }
}

TEST_CASE("a wrong plan is found out") {
  const sequence_shape of = shape_of(4, {7, 23}, 4, 2);
  const auto wrong = [&](const std::function<void(sequence_plan&)>& change) {
    sequence_plan plan = velo::sched::plan_rings(of, {2, 1});
    velo::sched::prove(plan, of);
    change(plan);
    CHECK_THROWS_AS(velo::sched::prove(plan, of), velo::core::failure);
  };
  wrong([](sequence_plan& p) { p.forward.tasks[1].pop_back(); });
  wrong([](sequence_plan& p) { p.forward.tasks[1].push_back(p.forward.tasks[1].front()); });
  wrong([](sequence_plan& p) { --p.forward.tasks[2].back().keys.back().end; });
  wrong([](sequence_plan& p) { ++p.gradient.tasks[0].front().keys.back().end; });
  wrong([](sequence_plan& p) { p.forward.messages.erase(p.forward.messages.begin()); });
  wrong([](sequence_plan& p) { p.gradient.messages.erase(p.gradient.messages.begin()); });
  wrong([](sequence_plan& p) { ++p.forward.messages.front().needed; });
  wrong([](sequence_plan& p) { ++p.forward.messages.front().step; });
  wrong([](sequence_plan& p) { ++p.gradient.messages.back().needed; });
  wrong([](sequence_plan& p) { p.gradient.messages.back().to = 4; });
  wrong([](sequence_plan& p) { p.forward.tasks[0].back().step = p.forward.steps; });
  wrong([](sequence_plan& p) { std::swap(p.forward.tasks[0].front(), p.forward.tasks[0].back()); });
  wrong([](sequence_plan& p) { p.forward.messages.pop_back(); });   // a result
  wrong([](sequence_plan& p) { p.gradient.messages.pop_back(); });  // of dv
  wrong([](sequence_plan& p) { std::swap(p.held[0], p.held[3]); });
  wrong([](sequence_plan& p) { p.held[1].pop_back(); });
  wrong([](sequence_plan& p) {  // a row twice
    rows& of = p.gradient.messages.back().of;
    of.push_back(of.front());
  });
  wrong([](sequence_plan& p) {
    for (auto& rank : p.forward.tasks)
      for (attention_task& task : rank) task.heads.end = std::min<std::int64_t>(task.heads.end, 3);
  });
}

TEST_CASE("a wrong adaptive plan is found out") {
  const std::vector<std::uint8_t> open(64, 0);
  const sequence_shape of{{{8}}, false, open.data(), {1, 1}, 4};
  const auto wrong = [&](const std::function<void(sequence_plan&)>& change) {
    sequence_plan plan = velo::sched::plan_adaptive(of, {1});
    velo::sched::prove(plan, of);
    change(plan);
    CHECK_THROWS_AS(velo::sched::prove(plan, of), velo::core::failure);
  };
  wrong([](sequence_plan& p) { p.forward.tasks[1].pop_back(); });
  wrong([](sequence_plan& p) { p.forward.tasks[1].back().step = p.forward.tasks[1][0].step; });
  wrong([](sequence_plan& p) { p.forward.messages.erase(p.forward.messages.begin()); });
  wrong([](sequence_plan& p) { p.gradient.messages.pop_back(); });
  wrong([](sequence_plan& p) {  // rows that are there, but more than the limit
    const velo::sched::block_message one = p.forward.messages.front();
    for (int i = 0; i < 7; ++i) p.forward.messages.insert(p.forward.messages.begin(), one);
  });
}

TEST_CASE("a task that computes cells which the mask hides is found out") {
  std::vector<std::uint8_t> mask(64, 0);
  mask[7] = 1;  // of query 0
  const sequence_shape of{{{8}}, false, mask.data(), {1, 1}, 4};
  for (const velo::sched::cells wrong : {velo::sched::cells::all, velo::sched::cells::causal}) {
    sequence_plan plan = velo::sched::plan_adaptive(of, {1});
    velo::sched::prove(plan, of);
    for (auto& rank : plan.gradient.tasks)
      for (velo::sched::attention_task& task : rank) task.visible = wrong;
    CHECK_THROWS_AS(velo::sched::prove(plan, of), velo::core::failure);
  }
}
