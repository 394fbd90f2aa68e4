// Attention over gathered keys: each rank gets the keys and values of all others before it
// computes, and returns parts of the gradients of theirs. Rows lie in a zigzag where the sequence
// is causal, so that all ranks compute as much. Cost: keys and values of the sequence on each rank.
#include "core/index.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

namespace {

rows held_by(const sequence_shape& of, std::int64_t rank) {
  return of.visible() == cells::causal ? zigzag_rows(of.all, of.ranks, rank)
                                       : contiguous_rows(of.sequence(), of.ranks, rank);
}

std::vector<attention_task> tasks_of(const sequence_shape& of, const rows& own, std::int64_t rank) {
  std::vector<attention_task> all;
  const span heads{0, of.heads.queries};
  const auto add = [&](span queries, span keys, cells visible) {
    if (!queries.empty() && !keys.empty()) all.push_back({1, {queries}, {keys}, heads, visible});
  };
  if (of.visible() == cells::masked) {
    for (const span& s : own) add(s, {0, of.sequence()}, cells::masked);
    return all;
  }
  for (std::int64_t d = 0; d < of.all.count(); ++d) {
    const span document = of.all.at(d);
    if (of.visible() == cells::causal) {
      const zigzag_chunks chunks = zigzag(document, of.ranks, rank);
      for (const span& chunk : {chunks.first, chunks.second})
        add(chunk, {document.begin, chunk.end}, cells::causal);
    } else {
      for (const span& s : within(own, document)) add(s, document, cells::all);
    }
  }
  return all;
}

// Rows of a list that a rank's tasks have as keys.
rows multiplied(const rows& list, const std::vector<attention_task>& tasks) {
  rows keys, found;
  for (const attention_task& task : tasks)
    keys.insert(keys.end(), task.keys.begin(), task.keys.end());
  keys = united(std::move(keys));
  for (const span& own : list)
    for (const span& s : within(keys, own)) append(found, s);
  return found;
}

}  // namespace

sequence_plan plan_all_gather(const sequence_shape& of) {
  sequence_plan plan;
  const span keys{0, of.heads.keys};
  plan.forward.steps = 2, plan.gradient.steps = 3;
  for (std::int64_t r = 0; r < of.ranks; ++r) {
    plan.held.push_back(held_by(of, r));
    plan.forward.tasks.push_back(tasks_of(of, plan.held.back(), r));
  }
  plan.gradient.tasks = plan.forward.tasks;
  const auto send = [&](attention_pass& pass, std::int64_t step, std::int64_t from, std::int64_t to,
                        const rows& list, content what) {
    if (from != to && !list.empty())
      pass.messages.push_back({step, step + 1, from, to, what, list, keys});
  };
  for (std::int64_t from = 0; from < of.ranks; ++from)
    for (std::int64_t to = 0; to < of.ranks; ++to)
      for (const content what : {content::k, content::v}) {
        send(plan.forward, 0, from, to, plan.held[core::at(from)], what);
        send(plan.gradient, 0, from, to, plan.held[core::at(from)], what);
      }
  for (std::int64_t from = 0; from < of.ranks; ++from)
    for (std::int64_t to = 0; to < of.ranks; ++to)
      for (const content what : {content::dk, content::dv})
        send(plan.gradient, 2, from, to,
             multiplied(plan.held[core::at(to)], plan.gradient.tasks[core::at(from)]), what);
  return plan;
}

}  // namespace velo::sched
