// The proof of a plan: ranks hold each row once, tasks cover the visible cells of every row once,
// and a walk through the steps finds each row where a task or a message takes it from, and each
// result at the row's owner in the end. In an adaptive plan no rank has more than one task a step,
// nor more units of messages than the limit. Cost: rows and messages times tasks times heads.
#include <algorithm>
#include <map>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

using core::concat;
using core::fail;

namespace {

[[noreturn]] void refuse(const core::text& expected, const core::text& got) {
  fail(VELO_ERR_INTERNAL, "plan", expected, got);
}

// Cells of queries and keys in the lower triangle.
std::int64_t causal_cells(span queries, span keys) {
  // Query q sees keys up to q: none before keys.begin, all from keys.end - 1 on.
  const std::int64_t begin = std::max(queries.begin, keys.begin),
                     full = std::clamp(keys.end - 1, begin, std::max(begin, queries.end));
  std::int64_t sum = 0;
  if (full > begin) {  // q - keys.begin + 1 for q of [begin, full)
    const std::int64_t first = begin - keys.begin + 1, last = full - keys.begin;
    sum += (first + last) * (last - first + 1) / 2;
  }
  if (queries.end > full && full >= keys.end - 1) sum += (queries.end - full) * keys.size();
  return sum;
}

std::int64_t masked_cells(const sequence_shape& of, span queries, span keys) {
  std::int64_t sum = 0;
  for (std::int64_t q = queries.begin; q < queries.end; ++q)
    for (std::int64_t k = keys.begin; k < keys.end; ++k)
      sum += of.mask[q * of.sequence() + k] == 0 ? 1 : 0;
  return sum;
}

// The keys that tasks compute with each query, by the range of heads.
struct coverage {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::vector<span>>> by_heads;
};

void add_coverage(const attention_task& task, const sequence_shape& of, coverage& to) {
  auto& all = to.by_heads[{task.heads.begin, task.heads.end}];
  all.resize(core::at(of.sequence()));
  for (const span& queries : task.queries)
    for (std::int64_t q = queries.begin; q < queries.end; ++q)
      for (span keys : task.keys) {
        if (task.visible == cells::causal) keys.end = std::min(keys.end, q + 1);
        if (!keys.empty()) all[core::at(q)].push_back(keys);
      }
}

// Whether a query sees one of some keys of its document.
bool has_visible(const sequence_shape& of, std::int64_t q, span keys) {
  if (keys.empty()) return false;
  if (of.visible() != cells::masked) return true;
  for (std::int64_t k = keys.begin; k < keys.end; ++k)
    if (of.mask[q * of.sequence() + k] == 0) return true;
  return false;
}

void prove_row(const sequence_shape& of, std::int64_t q, span visible, std::vector<span>& keys) {
  std::sort(keys.begin(), keys.end(),
            [](const span& a, const span& b) { return a.begin < b.begin; });
  std::int64_t next = visible.begin;
  for (const span& s : keys) {
    if (s.begin < next || s.end > visible.end)
      refuse(concat("key ", s.begin, " of query ", q, " once, and of its document"),
             concat("keys ", s.begin, " to ", s.end - 1));
    if (has_visible(of, q, {next, s.begin}))
      refuse(concat("a task for query ", q, " and key ", next), core::concat("none"));
    next = s.end;
  }
  if (has_visible(of, q, {next, visible.end}))
    refuse(concat("a task for query ", q, " and key ", next), core::concat("none"));
}

// A task without a mask computes no cell that the mask hides.
void prove_formula(const attention_task& task, const sequence_shape& of) {
  if (of.visible() != cells::masked || task.visible == cells::masked) return;
  const std::int64_t computed = cells_of(task, of);
  std::int64_t seen = 0;
  for (const span& queries : task.queries)
    for (std::int64_t q = queries.begin; q < queries.end; ++q)
      for (span keys : task.keys) {
        if (task.visible == cells::causal) keys.end = std::min(keys.end, q + 1);
        seen += masked_cells(of, {q, q + 1}, keys);
      }
  if (seen != computed)
    refuse(concat("a task of ", seen, " visible cells from query ", task.queries.front().begin),
           concat(computed, " cells"));
}

void prove_cells(const attention_pass& pass, const sequence_shape& of) {
  coverage all;
  for (const auto& rank : pass.tasks)
    for (const attention_task& task : rank) {
      prove_formula(task, of);
      add_coverage(task, of, all);
    }
  if (all.by_heads.empty()) all.by_heads[{0, of.heads.queries}].resize(core::at(of.sequence()));
  std::int64_t head = 0;
  for (auto& [heads, by_row] : all.by_heads) {
    if (heads.first != head) refuse(concat("tasks for head ", head), concat("head ", heads.first));
    head = heads.second;
    std::int64_t document = 0;
    for (std::int64_t q = 0; q < of.sequence(); ++q) {
      while (of.all.at(document).end <= q) ++document;
      span visible = of.visible() == cells::masked ? span{0, of.sequence()} : of.all.at(document);
      if (of.visible() == cells::causal) visible.end = q + 1;
      prove_row(of, q, visible, by_row[core::at(q)]);
    }
  }
  if (of.sequence() > 0 && head != of.heads.queries)
    refuse(concat("tasks for ", of.heads.queries, " heads"), core::number(head));
}

// Rows that a rank has of one content and head.
class holdings {
 public:
  explicit holdings(std::int64_t ranks) : by_rank_(core::at(ranks)) {}
  void add(std::int64_t rank, content what, const rows& of, span heads) {
    for (std::int64_t h = heads.begin; h < heads.end; ++h) {
      rows& has = by_rank_[core::at(rank)][{what, h}];
      has.insert(has.end(), of.begin(), of.end());
    }
  }
  // Takes rows away, whether they are there or not; returns those that were.
  rows take(std::int64_t rank, content what, const rows& of, std::int64_t head) {
    rows& has = by_rank_[core::at(rank)][{what, head}];
    rows taken, left;
    for (span s : has) {
      for (const span& wanted : of) {
        const span both{std::max(s.begin, wanted.begin), std::min(s.end, wanted.end)};
        if (both.empty()) continue;
        taken.push_back(both);
        append(left, {s.begin, both.begin});
        s.begin = both.end;
      }
      append(left, s);
    }
    has = std::move(left);
    return taken;
  }
  const rows& all(std::int64_t rank, content what, std::int64_t head) {
    return by_rank_[core::at(rank)][{what, head}];
  }
  bool has(std::int64_t rank, content what, const rows& of, span heads) {
    if (of.empty()) return true;
    for (std::int64_t h = heads.begin; h < heads.end; ++h) {
      const auto found = by_rank_[core::at(rank)].find({what, h});
      if (found == by_rank_[core::at(rank)].end()) return false;
      for (const span& s : of)
        if (!covers(found->second, s)) return false;
    }
    return true;
  }

 private:
  static bool covers(const rows& all, span wanted) {
    for (bool moved = true; moved && !wanted.empty();) {
      moved = false;
      for (const span& s : all)
        if (s.begin <= wanted.begin && wanted.begin < s.end) {
          wanted.begin = std::min(s.end, wanted.end);
          moved = true;
        }
    }
    return wanted.empty();
  }
  std::vector<std::map<std::pair<content, std::int64_t>, rows>> by_rank_;
};

bool is_input(content what) {
  return what == content::q || what == content::k || what == content::v || what == content::dout;
}

void prove_ways(const sequence_plan& plan, const attention_pass& pass, const sequence_shape& of,
                bool gradient) {
  const span queries{0, of.heads.queries}, keys{0, of.heads.keys};
  holdings all(of.ranks);
  for (std::int64_t r = 0; r < of.ranks; ++r) {
    const rows& own = plan.held[core::at(r)];
    for (const content what : {content::q, content::dout}) all.add(r, what, own, queries);
    for (const content what : {content::k, content::v}) all.add(r, what, own, keys);
  }
  for (const block_message& m : plan.forward.messages)
    if (gradient && m.kept) all.add(m.to, m.what, m.of, m.heads);
  for (const block_message& m : plan.given)
    if (is_of_keys(m.what)) all.add(m.to, m.what, m.of, m.heads);
  std::vector<std::size_t> at(core::at(of.ranks), 0);
  for (std::int64_t step = 0; step < pass.steps; ++step) {
    for (const block_message& m : pass.messages)
      if (m.needed == step && is_input(m.what)) all.add(m.to, m.what, m.of, m.heads);
    for (const block_message& m : pass.messages)
      if (m.step == step && is_input(m.what) && !all.has(m.from, m.what, m.of, m.heads))
        refuse(concat("rank ", m.from, " to have what it sends in step ", step),
               concat("rows from ", m.of.front().begin, " on that it has not"));
    for (std::int64_t r = 0; r < of.ranks; ++r) {
      const auto& tasks = pass.tasks[core::at(r)];
      for (std::size_t& i = at[core::at(r)]; i < tasks.size() && tasks[i].step == step; ++i) {
        const attention_task& t = tasks[i];
        const span heads = of.heads.keys_of(t.heads);
        if (!all.has(r, content::q, t.queries, t.heads) || !all.has(r, content::k, t.keys, heads) ||
            !all.has(r, content::v, t.keys, heads) ||
            (gradient && !all.has(r, content::dout, t.queries, t.heads)))
          refuse(concat("rank ", r, " to have what it computes with in step ", step),
                 concat("queries from ", t.queries.front().begin, ", keys from ",
                        t.keys.front().begin));
      }
    }
  }
}

// Rows of a list that see a key.
rows rows_that_see(const rows& list, const sequence_shape& of) {
  if (of.visible() != cells::masked) return list;
  rows seeing;
  for (const span& s : list)
    for (std::int64_t q = s.begin; q < s.end; ++q)
      if (has_visible(of, q, {0, of.sequence()})) append(seeing, {q, q + 1});
  return seeing;
}

// Results: a row and head of out and dq is whole at the rank that computes it, or comes in parts;
// parts of dk and dv are summed on their way. All end at the row's owner.
void prove_results(const sequence_plan& plan, const attention_pass& pass, const sequence_shape& of,
                   const std::vector<content>& results) {
  holdings all(of.ranks);
  std::vector<std::vector<rows>> under_way(pass.messages.size());  // by head
  for (std::int64_t step = 0; step <= pass.steps; ++step) {
    for (std::size_t i = 0; i < pass.messages.size(); ++i) {
      const block_message& m = pass.messages[i];
      for (std::size_t h = 0; m.needed == step && h < under_way[i].size(); ++h)
        all.add(m.to, m.what, under_way[i][h],
                {m.heads.begin + static_cast<std::int64_t>(h),
                 m.heads.begin + static_cast<std::int64_t>(h) + 1});
    }
    for (std::size_t i = 0; i < pass.messages.size(); ++i) {
      const block_message& m = pass.messages[i];
      if (m.step != step || is_input(m.what)) continue;
      for (std::int64_t h = m.heads.begin; h < m.heads.end; ++h)
        under_way[i].push_back(all.take(m.from, m.what, m.of, h));
    }
    for (std::int64_t r = 0; r < of.ranks; ++r)
      for (const attention_task& t : pass.tasks[core::at(r)])
        for (const content what : results) {
          if (t.step != step) continue;
          const bool keys = is_of_keys(what);
          all.add(r, what, keys ? t.keys : t.queries, keys ? of.heads.keys_of(t.heads) : t.heads);
        }
  }
  for (std::int64_t r = 0; r < of.ranks; ++r) {
    const rows seeing = rows_that_see(plan.held[core::at(r)], of);
    for (const content what : results) {
      const bool keys = is_of_keys(what);
      const std::int64_t heads = keys ? of.heads.keys : of.heads.queries;
      for (std::int64_t h = 0; h < heads; ++h) {
        if (!keys && !all.has(r, what, seeing, {h, h + 1}))
          refuse(concat("results of head ", h, " for each row of rank ", r, " that sees a key"),
                 concat("rows without one"));
        all.take(r, what, plan.held[core::at(r)], h);
        if (!all.all(r, what, h).empty())
          refuse(
              concat("results at the ranks that have the rows"),
              concat("row ", all.all(r, what, h).front().begin, ", head ", h, " left at rank ", r));
      }
    }
  }
}

// An adaptive plan: one task for each rank and step, and units of messages that leave in a step
// within the limit, at sender and receiver.
void prove_units(const sequence_plan& plan, const attention_pass& pass, std::int64_t most) {
  for (const auto& rank : pass.tasks)
    for (std::size_t i = 1; i < rank.size(); ++i)
      if (rank[i].step == rank[i - 1].step)
        refuse(concat("one task a step"), concat("more in step ", rank[i].step));
  std::vector<std::int64_t> units(plan.held.size());
  std::int64_t step = 0;
  for (const block_message& m : pass.messages) {
    if (m.step != step) std::fill(units.begin(), units.end(), 0), step = m.step;
    if (m.from / plan.adaptive->neighbors == m.to / plan.adaptive->neighbors) continue;
    for (const std::int64_t end : {m.from, m.to})
      if (++units[core::at(end)] > most)
        refuse(concat("at most ", most, " units of rank ", end, " in step ", step), concat("more"));
  }
}

void prove_order(const attention_pass& pass, const sequence_shape& of) {
  const auto is_rank = [&](std::int64_t rank) { return rank >= 0 && rank < of.ranks; };
  for (const block_message& m : pass.messages)
    if (m.step < 0 || m.step >= m.needed || m.needed > pass.steps || !is_rank(m.from) ||
        !is_rank(m.to))
      refuse(concat("a message between ranks, needed behind its step, in ", pass.steps, " steps"),
             concat("step ", m.step, ", needed ", m.needed, ", from ", m.from, " to ", m.to));
  for (const auto& rank : pass.tasks) {
    std::int64_t before = 0;
    for (const attention_task& t : rank) {
      if (t.step < before || t.step >= pass.steps)
        refuse(concat("tasks in the order of ", pass.steps, " steps"), concat("step ", t.step));
      before = t.step;
    }
  }
}

// Rows of tasks and messages ascend, each once.
void prove_lists(const attention_pass& pass) {
  const auto require = [](const rows& of, const char* owner) {
    if (!is_ascending(of))
      refuse(concat("ascending rows of a ", owner), concat("rows from ", of.front().begin));
  };
  for (const block_message& m : pass.messages) require(m.of, "message");
  for (const auto& rank : pass.tasks)
    for (const attention_task& t : rank) require(t.queries, "task"), require(t.keys, "task");
}

void prove_rows(const sequence_plan& plan, std::int64_t sequence) {
  rows all;
  for (const rows& own : plan.held) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end(), [](const span& a, const span& b) { return a.begin < b.begin; });
  std::int64_t next = 0;
  for (const span& s : all) {
    if (s.begin != next) refuse(concat("row ", next, " at one rank"), concat("row ", s.begin));
    next = s.end;
  }
  if (next != sequence) refuse(concat("rows up to ", sequence), core::number(next));
}

}  // namespace

std::int64_t cells_of(const attention_task& task, const sequence_shape& of) {
  std::int64_t sum = 0;
  for (const span& queries : task.queries)
    for (const span& keys : task.keys)
      sum += task.visible == cells::all      ? queries.size() * keys.size()
             : task.visible == cells::causal ? causal_cells(queries, keys)
                                             : masked_cells(of, queries, keys);
  return sum;
}

void prove(const sequence_plan& plan, const sequence_shape& of) {
  for (const attention_pass* pass : {&plan.forward, &plan.gradient}) {
    prove_order(*pass, of);
    prove_lists(*pass);
  }
  prove_rows(plan, of.sequence());
  prove_cells(plan.forward, of);
  prove_cells(plan.gradient, of);
  prove_ways(plan, plan.forward, of, false);
  prove_ways(plan, plan.gradient, of, true);
  prove_results(plan, plan.forward, of, {content::out});
  prove_results(plan, plan.gradient, of, {content::dq, content::dk, content::dv});
  if (!plan.adaptive) return;
  prove_units(plan, plan.forward, most_units_forward);
  prove_units(plan, plan.gradient, most_units_gradient);
}

}  // namespace velo::sched
