// Cuts a task into parts, and calls the engine for each.
#include "sched/parallel/context/carried/partial_attention.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "ops/attention/engine/attention_plan.hpp"

namespace velo::sched {
namespace {

// Runs that lie side by side, though their rows may not.
std::vector<row_run> joined(const std::vector<row_run>& runs) {
  std::vector<row_run> all;
  for (const row_run& run : runs) {
    if (!all.empty() && all.back().position + all.back().count == run.position)
      all.back().count += run.count;
    else
      all.push_back(run);
  }
  return all;
}

// Keys up to the query's row. false: there are none.
bool set_causal(attention_part& part) {
  const std::int64_t ahead = part.queries.row - part.keys.row;
  if (ahead + part.queries.count <= 0) return false;
  if (ahead < part.keys.count - 1) part.window.next = ahead;
  return true;
}

// Heads of queries that share key heads evenly.
struct head_group {
  span queries, keys;
};

// A range of heads as at most three groups: a part of a key head's, whole ones, a part again.
std::vector<head_group> groups_of(span heads, std::int64_t each) {
  std::vector<head_group> all;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    if (begin < end) all.push_back({{begin, end}, {begin / each, (end - 1) / each + 1}});
  };
  const std::int64_t first = std::min(core::ceil_div(heads.begin, each) * each, heads.end);
  const std::int64_t last = std::max(heads.end / each * each, first);
  add(heads.begin, first);
  add(first, last);
  add(last, heads.end);
  return all;
}

ops::attention_problem problem_of(const attention_part& part, const head_group& heads,
                                  const attention_call& call, const row_store& q,
                                  const row_store& k, const row_store& v, const softmax_sums& sums,
                                  ops::attention_terms& terms) {
  ops::attention_problem p;
  p.type = q.type;
  p.batch = call.batch;
  p.heads = heads.queries.size();
  p.kv_heads = heads.keys.size();
  p.d = q.width;
  p.dv = v.width;
  p.sq = part.queries.count;
  p.skv = part.keys.count;
  p.window = part.window;
  p.scale = call.scale;
  p.q = q.strides, p.k = k.strides, p.v = v.strides;
  p.stats = {sums.heads.size() * sums.rows_of_it, 1, sums.rows_of_it};
  terms = call.terms;
  if (part.mask != nullptr) terms.mask = {part.mask, 0, 0, part.mask_row};
  if (terms.slopes != nullptr) terms.slopes += heads.queries.begin * terms.slopes_head;
  terms.ahead = part.queries.row - part.keys.row;
  terms.place.origin[1] += heads.queries.begin;
  terms.place.origin[2] = part.queries.row, terms.place.origin[3] = part.keys.row;
  p.terms = &terms;
  return p;
}

void forward_of(const ops::attention_problem& p, const ops::attention_tensors& t, bool plain,
                core::execution& turn) {
  if (plain) return ops::attention_forward_reference(p, t, turn.threads);
  const core::scratch_scope scope(turn.scratch);
  void* scratch =
      turn.scratch.take(ops::attention_forward_bytes(p, turn.isa, turn.threads.threads()));
  ops::attention_forward(p, t, {turn.isa, turn.threads, scratch});
}

void gradient_of(const ops::attention_problem& p, const ops::attention_gradients& t, bool plain,
                 core::execution& turn) {
  if (plain) return ops::attention_backward_reference(p, t, turn.threads);
  const core::scratch_scope scope(turn.scratch);
  void* scratch =
      turn.scratch.take(ops::attention_backward_bytes(p, turn.isa, turn.threads.threads()));
  ops::attention_backward(p, t, {turn.isa, turn.threads, scratch});
}

}  // namespace

std::vector<attention_part> parts_of(const attention_task& task, const attention_call& call,
                                     const row_places& queries, const row_places& keys,
                                     const sequence_shape& of) {
  std::vector<row_run> q = queries.runs(task.queries), k = keys.runs(task.keys);
  const bool joins = !call.has_positions();
  const bool same_rows = task.visible == cells::causal && task.queries == task.keys;
  // Some rows of a block, as adaptive plans send, lie side by side in a message and apart in the
  // memory of their owner. They are not joined, so that the bits do not depend on the carrier.
  const bool whole_blocks = task.visible == cells::all && of.visible() != cells::masked;
  if (joins && (same_rows || whole_blocks)) {
    const std::vector<row_run> all_q = joined(q), all_k = joined(k);
    if (same_rows && all_q.size() == 1 && all_k.size() == 1)
      return {{all_q[0], all_k[0], {ops::unlimited, 0, false}, nullptr, 0}};
    if (!same_rows) q = all_q, k = all_k;
  }
  std::vector<attention_part> all;
  for (const row_run& some : q)
    for (const row_run& seen : k) {
      attention_part part{some, seen, {}, nullptr, 0};
      if (task.visible == cells::causal && !set_causal(part)) continue;
      if (task.visible == cells::masked) {
        part.mask_row = of.sequence();
        part.mask = of.mask + some.row * part.mask_row + seen.row;
      }
      all.push_back(part);
    }
  return all;
}

void attend(const attention_part& part, span heads, const attention_call& call,
            const forward_stores& in, core::execution& turn) {
  for (const head_group& group : groups_of(heads, call.heads_each)) {
    ops::attention_terms terms;
    ops::attention_problem p = problem_of(part, group, call, in.q, in.k, in.v, in.sums, terms);
    p.out = in.out.strides, p.before = in.before.strides;
    p.float_results = in.out.type == ops::element_type::f32;
    const std::int64_t head = group.queries.begin, row = part.queries.position;
    const std::int64_t at = in.sums.place(0, head, row);
    const bool goes_on = in.before.data != nullptr;
    forward_of(p,
               {in.q.at(0, row, head), in.k.at(0, part.keys.position, group.keys.begin),
                in.v.at(0, part.keys.position, group.keys.begin), in.out.at(0, row, head),
                in.sums.max + at, in.sums.sum + at,
                goes_on ? reinterpret_cast<const float*>(in.before.at(0, row, head)) : nullptr},
               call.plain, turn);
  }
}

void add_gradients(const attention_part& part, span heads, const attention_call& call,
                   const gradient_stores& in, core::execution& turn) {
  for (const head_group& group : groups_of(heads, call.heads_each)) {
    ops::attention_terms terms;
    ops::attention_problem p = problem_of(part, group, call, in.q, in.k, in.v, in.sums, terms);
    p.out = in.out.strides, p.dy = in.dout.strides;
    p.dq = in.dq.strides, p.dk = in.dk.strides, p.dv_rows = in.dv.strides;
    p.float_results = true;
    p.accumulate_q = in.adds_queries, p.accumulate = in.adds_keys;
    const std::int64_t head = group.queries.begin, key_head = group.keys.begin;
    const std::int64_t row = part.queries.position, key = part.keys.position;
    const std::int64_t at = in.sums.place(0, head, row);
    gradient_of(
        p,
        {in.q.at(0, row, head), in.k.at(0, key, key_head), in.v.at(0, key, key_head),
         in.dout.at(0, row, head), in.dots != nullptr ? nullptr : in.out.at(0, row, head),
         in.sums.max + at, in.sums.sum + at, in.dq.at(0, row, head), in.dk.at(0, key, key_head),
         in.dv.at(0, key, key_head), nullptr, in.dots != nullptr ? in.dots + at : nullptr},
        call.plain, turn);
  }
}

}  // namespace velo::sched
