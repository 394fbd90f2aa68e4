// Adaptive attention under any mask, and its hybrid.
//
// Each ring rank has a block of rows (row_order.hpp). Blocks that see each other are tasks in
// rounds (rounds.hpp). What a round needs is sent while the round before computes; a result
// returns while the next one does. So the first round waits for nothing only if no rank computes
// for another in it. The gradient computes the same tasks in the same rounds; nothing but what
// neighbors exchanged is kept for it. Rows travel only where they have a visible cell. Cost: the
// reads of the mask (visibility.hpp) and the tries of rounds.
#include "sched/parallel/context/adaptive/rounds.hpp"
#include "sched/parallel/context/adaptive/row_order.hpp"
#include "sched/parallel/context/heads/head_exchange.hpp"

namespace velo::sched {
namespace {

class adaptive_plan {
 public:
  adaptive_plan(const sequence_shape& of, const exchange_shape& how)
      : of_(of),
        blocks_(adaptive_blocks(of, of.ranks / how.neighbors)),
        seen_(of, blocks_),
        neighbors_(of, how, blocks_),
        rounds_(rounds_of(seen_.pairs())) {}

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
    const std::int64_t u = neighbors_.neighbors(),
                       other = one.rank == one.row ? one.column : one.row;
    const moved all = moved_by(one, gradient);
    for (std::int64_t member = 0; member < u; ++member) {
      const span heads = neighbors_.heads_of(member), key_heads = neighbors_.key_heads_of(member);
      const std::int64_t here = one.rank * u + member, there = other * u + member;
      pass.tasks[core::at(here)].push_back({step, queries, keys, heads, cells::masked});
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
  const std::vector<rows> blocks_;  // by ring rank
  const seen_blocks seen_;
  const head_exchange neighbors_;
  const task_rounds rounds_;
};

}  // namespace

sequence_plan plan_adaptive(const sequence_shape& of, const exchange_shape& how) {
  return adaptive_plan(of, how).make();
}

}  // namespace velo::sched
