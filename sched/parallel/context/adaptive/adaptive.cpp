// Adaptive attention under any mask, and its hybrid.
//
// Each ring rank has a block of rows (row_order.hpp). Blocks that see each other are tasks in
// rounds (rounds.hpp). Rows in a zigzag, as a causal ring has them, are taken instead where they
// need no more rounds and leave the slowest ranks of all rounds an eighth fewer cells. A task whose
// visible cells are all, or all up to the query, needs no mask. What a round needs is sent while
// the round before computes; a result returns while the next one does. So the first round waits for
// nothing only if no rank computes for another in it. The gradient computes the same tasks in the
// same rounds; nothing but what neighbors exchanged is kept for it. Rows travel only where they
// have a visible cell. Cost: the reads of the mask (visibility.hpp) and the tries of rounds.
#include <algorithm>

#include "sched/parallel/context/adaptive/rounds.hpp"
#include "sched/parallel/context/adaptive/row_order.hpp"
#include "sched/parallel/context/heads/head_exchange.hpp"

namespace velo::sched {
namespace {

// Blocks, and the rounds of their tasks.
struct block_rounds {
  seen_blocks seen;
  task_rounds rounds;

  block_rounds(const sequence_shape& of, std::vector<rows> blocks)
      : seen(of, std::move(blocks)), rounds(rounds_of(seen.pairs())) {}

  // The cells of the largest task of each round.
  std::int64_t slowest_cells() const {
    std::int64_t sum = 0;
    for (const std::vector<round_task>& round : rounds) {
      std::int64_t most = 0;
      for (const round_task& one : round) most = std::max(most, seen.visible(one.row, one.column));
      sum += most;
    }
    return sum;
  }
};

block_rounds chosen_blocks(const sequence_shape& of, std::int64_t ring) {
  block_rounds chosen(of, adaptive_blocks(of, ring));
  if (ring == 1) return chosen;
  std::vector<rows> zigzag;
  for (std::int64_t i = 0; i < ring; ++i) zigzag.push_back(zigzag_rows(of.all, ring, i));
  block_rounds balanced(of, std::move(zigzag));
  const bool is_faster = balanced.rounds.size() <= chosen.rounds.size() &&
                         8 * balanced.slowest_cells() <= 7 * chosen.slowest_cells();
  if (is_faster && !chosen.rounds.empty()) return balanced;
  return chosen;
}

class adaptive_plan {
 public:
  adaptive_plan(const sequence_shape& of, const exchange_shape& how)
      : of_(of),
        blocks_(chosen_blocks(of, of.ranks / how.neighbors)),
        seen_(blocks_.seen),
        rounds_(blocks_.rounds),
        neighbors_(of, how, seen_.blocks()) {}

  sequence_plan make() const {
    sequence_plan plan;
    plan.held = neighbors_.all_held();
    plan.adaptive = round_counts{static_cast<std::int64_t>(rounds_.size()),
                                 rounds_of_rule(seen_.pairs()), neighbors_.neighbors()};
    fill(plan.forward, false);
    fill(plan.gradient, true);
    return plan;
  }

 private:
  // Rows and contents that go to the rank of a task before it and come back after it.
  struct moved {
    std::vector<content> there, back;
  };
  static moved moved_by(const round_task& one, bool gradient) {
    if (one.moves_keys()) {
      if (gradient) return {{content::k, content::v}, {content::dk, content::dv}};
      return {{content::k, content::v}, {}};
    }
    if (one.moves_queries()) {
      if (gradient) return {{content::q, content::dout}, {content::dq}};
      return {{content::q}, {content::out}};
    }
    return {{}, {}};
  }

  void fill(attention_pass& pass, bool gradient) const {
    pass.tasks.resize(core::at(of_.ranks));
    const std::int64_t lead = !rounds_.empty() && moves(rounds_.front(), gradient, true) ? 1 : 0,
                       tail = !rounds_.empty() && moves(rounds_.back(), gradient, false) ? 1 : 0,
                       first = neighbors_.steps() + lead,
                       last = first + static_cast<std::int64_t>(rounds_.size()) + tail;
    pass.steps = last + neighbors_.steps();
    gradient ? neighbors_.send_heads(pass, 0, {content::dout}, false)
             : neighbors_.send_heads(pass, 0, {content::q, content::k, content::v}, true);
    for (std::size_t o = 0; o < rounds_.size(); ++o)
      for (const round_task& one : rounds_[o])
        add_task(pass, one, first + static_cast<std::int64_t>(o), gradient);
    gradient ? neighbors_.send_back(pass, last, {content::dq, content::dk, content::dv})
             : neighbors_.send_back(pass, last, {content::out});
    pass.sort_messages();
  }
  static bool moves(const std::vector<round_task>& round, bool gradient, bool there) {
    for (const round_task& one : round) {
      const moved all = moved_by(one, gradient);
      if (!(there ? all.there : all.back).empty()) return true;
    }
    return false;
  }

  // The same on each neighbor, of its heads.
  void add_task(attention_pass& pass, const round_task& one, std::int64_t step,
                bool gradient) const {
    const rows queries = seen_.queries(one.row, one.column), keys = seen_.keys(one.row, one.column);
    const cells visible = seen_.cells_of(one.row, one.column);
    const std::int64_t u = neighbors_.neighbors(),
                       other = one.rank == one.row ? one.column : one.row;
    const moved all = moved_by(one, gradient);
    for (std::int64_t member = 0; member < u; ++member) {
      const span heads = neighbors_.heads_of(member), key_heads = neighbors_.key_heads_of(member);
      const std::int64_t here = one.rank * u + member, there = other * u + member;
      pass.tasks[core::at(here)].push_back({step, queries, keys, heads, visible});
      const auto send = [&](std::int64_t at, std::int64_t from, std::int64_t to, content what) {
        const bool of_keys = is_of_keys(what);
        pass.messages.push_back({at, at + 1, from, to, what, of_keys ? keys : queries,
                                 of_keys ? key_heads : heads, false,
                                 what == content::out || what == content::dq, statistics_with(what),
                                 what == content::q || what == content::dout});
      };
      for (const content what : all.there) send(step - 1, there, here, what);
      for (const content what : all.back) send(step + 1, here, there, what);
    }
  }
  // Maximum and sum of a part of the result; with its gradient those of the whole, and the product
  // of result and gradient.
  static std::int64_t statistics_with(content what) {
    return what == content::out ? 2 : what == content::dout ? 3 : 0;
  }

  const sequence_shape& of_;
  const block_rounds blocks_;  // by ring rank
  const seen_blocks& seen_;
  const task_rounds& rounds_;
  const head_exchange neighbors_;
};

}  // namespace

sequence_plan plan_adaptive(const sequence_shape& of, const exchange_shape& how) {
  return adaptive_plan(of, how).make();
}

}  // namespace velo::sched
