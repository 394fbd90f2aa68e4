// The tuner's price of context parallelism is that of velo's sequence plans, step by step.
#include "sched/tune/context_cost.hpp"

#include <catch2/catch.hpp>

#include "sched/parallel/context/planned_sequence.hpp"

using namespace velo;
using namespace velo::sched::tune;

namespace {

constexpr std::int64_t head_dim = 16, element = 2;

context_shape shape_of(velo_sequence_kind kind, std::int64_t cp, std::int64_t ulysses,
                       std::int64_t rows_of_rank, std::int64_t heads, std::int64_t kv_heads) {
  return {kind, cp, ulysses, cp * rows_of_rank, heads, kv_heads, head_dim, head_dim, element};
}

sched::planned_sequence plan_of(const context_shape& of) {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = of.kind;
  desc.cp = of.cp;
  desc.ulysses = of.kind == VELO_SEQUENCE_HYBRID ? of.ulysses : 1;
  desc.sequence = of.sequence;
  desc.heads = of.heads;
  desc.kv_heads = of.kv_heads;
  desc.head_dim = head_dim;
  desc.element_bytes = element;
  return sched::planned_sequence(desc);
}

// Phases with equal steps written out.
std::vector<context_phase> steps_of(const std::vector<context_phase>& pass) {
  std::vector<context_phase> all;
  for (const context_phase& one : pass)
    for (int i = 0; i < static_cast<int>(one.steps); ++i) all.push_back(one);
  return all;
}

void check_pass(const sched::planned_sequence& plan, velo_sequence_pass which,
                const std::vector<context_phase>& priced) {
  const std::vector<context_phase> steps = steps_of(priced);
  REQUIRE(static_cast<std::int64_t>(steps.size()) == plan.pass(which).steps);
  for (std::int64_t s = 0; s < plan.pass(which).steps; ++s) {
    std::int64_t cells = 0, bytes = 0;
    for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
      velo_sequence_step now{}, next{};
      plan.price(which, rank, s, now);
      plan.price(which, rank, s + 1, next);
      cells = std::max(cells, now.cells);
      bytes = std::max({bytes, now.bytes_sent, next.bytes_received});
    }
    INFO("pass " << which << ", step " << s);
    CHECK(steps[static_cast<std::size_t>(s)].cells == static_cast<double>(cells));
    CHECK(steps[static_cast<std::size_t>(s)].bytes == static_cast<double>(bytes));
  }
}

void check_price(const context_shape& of) {
  INFO("kind " << of.kind << ", cp " << of.cp << ", ulysses " << of.ulysses << ", sequence "
               << of.sequence << ", heads " << of.heads << " and " << of.kv_heads);
  const sched::planned_sequence plan = plan_of(of);
  const context_cost priced = context_cost_of(of);
  check_pass(plan, VELO_SEQUENCE_FORWARD, priced.forward);
  check_pass(plan, VELO_SEQUENCE_GRADIENT, priced.gradient);
  std::int64_t kept = 0;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    velo_sequence_step first{};
    plan.price(VELO_SEQUENCE_GRADIENT, rank, 0, first);
    kept = std::max(kept, first.bytes_kept);
  }
  CHECK(priced.kept == static_cast<double>(kept));
}

}  // namespace

TEST_CASE("cells and bytes of every step are those of the plan's slowest rank") {
  const struct { std::int64_t queries, keys; } heads[] = {{8, 8}, {8, 2}, {12, 3}, {28, 7}, {9, 1}};
  for (const auto& [queries, keys] : heads)
    for (const std::int64_t rows : {1, 2, 5, 8})  // of a rank: even and odd
      for (const std::int64_t cp : {2, 3, 4, 6, 8}) {
        check_price(shape_of(VELO_SEQUENCE_RING, cp, 1, rows, queries, keys));
        check_price(shape_of(VELO_SEQUENCE_ALL_GATHER, cp, 1, rows, queries, keys));
        check_price(shape_of(VELO_SEQUENCE_ULYSSES, cp, cp, rows, queries, keys));
        for (std::int64_t u = 2; u < cp; ++u)
          if (cp % u == 0) check_price(shape_of(VELO_SEQUENCE_HYBRID, cp, u, rows, queries, keys));
      }
}

TEST_CASE("a sequence that ranks do not divide costs no more than the next that they divide") {
  const auto most = [](const sched::planned_sequence& plan, velo_sequence_pass which) {
    std::int64_t cells = 0, bytes = 0;
    for (std::int64_t rank = 0; rank < plan.ranks(); ++rank)
      for (std::int64_t s = 0; s <= plan.pass(which).steps; ++s) {
        velo_sequence_step now{};
        plan.price(which, rank, s, now);
        cells = std::max(cells, now.cells);
        bytes = std::max({bytes, now.bytes_sent, now.bytes_received});
      }
    return std::pair{static_cast<double>(cells), static_cast<double>(bytes)};
  };
  const auto largest = [](const std::vector<context_phase>& pass) {
    double cells = 0, bytes = 0;
    for (const context_phase& one : pass) {
      cells = std::max(cells, one.cells);
      bytes = std::max(bytes, one.bytes);
    }
    return std::pair{cells, bytes};
  };
  for (const velo_sequence_kind kind :
       {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER})
    for (const std::int64_t cp : {3, 4, 8})
      for (std::int64_t more = 1; more < cp; ++more) {
        const std::int64_t neighbors = kind == VELO_SEQUENCE_ULYSSES ? cp : 1;
        context_shape of = shape_of(kind, cp, neighbors, 16, 9, 3);
        const auto below = largest(context_cost_of(of).forward);
        of.sequence += more;
        INFO("kind " << kind << ", cp " << cp << ", sequence " << of.sequence);
        const auto plan = most(plan_of(of), VELO_SEQUENCE_FORWARD);
        const auto priced = largest(context_cost_of(of).forward);
        CHECK(priced.first >= plan.first);
        CHECK(priced.second >= plan.second);
        CHECK(plan.first > below.first);
        CHECK(plan.second >= below.second);
        of.sequence += cp - more;
        CHECK(priced == largest(context_cost_of(of).forward));
      }
}

TEST_CASE("prices are the published ones of a known case") {
  // S 32768, c 8, 32 heads of queries, 8 of keys, 128 wide: 58.7 M elements against 36.7 M.
  context_shape of = {VELO_SEQUENCE_RING, 8, 1, 32768, 32, 8, 128, 128, 2};
  CHECK(bytes_of(context_cost_of(of).forward) / 2 == 58720256.0);
  CHECK(cells_of(context_cost_of(of).forward) == 32.0 * 32768 * 32769 / (2 * 8));
  of.kind = VELO_SEQUENCE_ULYSSES;
  of.ulysses = 8;
  CHECK(bytes_of(context_cost_of(of).forward) / 2 == 36700160.0);
}
