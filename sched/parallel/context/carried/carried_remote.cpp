// Remote queries of a pass: the rows that this rank computes for other ranks, and the parts of its
// own results that these return.
#include <algorithm>

#include "core/index.hpp"
#include "sched/overlap/product.hpp"
#include "sched/parallel/context/carried/carried_pass.hpp"

namespace velo::sched {
namespace {

constexpr ops::element_type f32 = ops::element_type::f32;

// Whether a part is the first of its rows. Parts of the same rows follow each other.
bool is_first(const std::vector<attention_part>& parts, std::size_t index) {
  return index == 0 || parts[index - 1].queries.position != parts[index].queries.position;
}

}  // namespace

bool carried_pass::is_remote(const attention_task& task) const {
  return !share_.queries().has(task.queries);
}

// Float32 numbers of some rows and heads, for this step and the next.
row_numbers carried_pass::make_numbers(const row_places& of, span heads) {
  const std::size_t bytes = dense_bytes(call_.batch, of.size(), heads, 1, f32);
  const auto take = [&] { return static_cast<float*>(memory_.take(bytes, step_, step_ + 1)); };
  float *max = take(), *sum = take();
  return {{max, sum, of.size(), heads}, take()};
}

void carried_pass::attend_to_remote(const attention_task& task, block_carrier& by) {
  const span key_heads = share_.shape().heads.keys_of(task.heads);
  const row_store &q = find(content::q, task.queries, task.heads),
                  &k = find(content::k, task.keys, key_heads),
                  &v = find(content::v, task.keys, key_heads);
  const row_store all =
      temporary(*q.places, task.heads, widths_.value + elements_of(numbers_of_part, f32), f32);
  const row_store out = without_numbers(all, numbers_of_part);
  const row_numbers numbers = make_numbers(*q.places, task.heads);
  const std::vector<attention_part> parts =
      parts_of(task, call_, *q.places, *k.places, share_.shape());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const row_store before = is_first(parts, i) ? row_store() : out;
    in_turn(on_, [&](core::execution& turn) {
      block_carrier::access access;
      by.begin_access(access);
      attend(parts[i], task.heads, call_, {q, k, v, before, out, numbers.sums}, turn);
    });
  }
  write_numbers(numbers, out, call_.batch);
  remote_parts_.push_back(all);
}

void carried_pass::add_gradients_of_remote(const attention_task& task, block_carrier& by) {
  const span key_heads = share_.shape().heads.keys_of(task.heads);
  const row_store &q = find(content::q, task.queries, task.heads),
                  &k = find(content::k, task.keys, key_heads),
                  &dout = find(content::dout, task.queries, task.heads);
  const row_numbers numbers = make_numbers(*q.places, task.heads);
  read_numbers(dout, numbers, call_.batch);
  const row_store dq = temporary(*q.places, task.heads, widths_.key, f32);
  gradient_stores in{q,
                     k,
                     find(content::v, task.keys, key_heads),
                     dout,
                     {},
                     dq,
                     sums_of(content::dk, k.places->list(), k.heads).store,
                     sums_of(content::dv, k.places->list(), k.heads).store,
                     numbers.sums,
                     false,
                     false,
                     numbers.dots};
  const std::vector<attention_part> parts =
      parts_of(task, call_, *q.places, *k.places, share_.shape());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    in.adds_queries = !is_first(parts, i);
    add_part_gradients(parts[i], task, in, by);
  }
  remote_parts_.push_back(dq);
}

// The store of the part that this rank computed for the receiver. The part is forgotten here.
row_store carried_pass::computed_part_of(const block_message& m) {
  const auto found = std::find_if(
      remote_parts_.begin(), remote_parts_.end(),
      [&](const row_store& one) { return one.heads == m.heads && one.places->list() == m.of; });
  if (found == remote_parts_.end())
    core::fail(VELO_ERR_INTERNAL, "plan",
               core::concat("a part that rank ", share_.rank(), " computed before step ", step_),
               core::concat("none"));
  const row_store part = *found;
  remote_parts_.erase(found);
  memory_.free(part.data, m.needed + 1);
  return part;
}

// Rows of dout with their numbers.
row_store carried_pass::remote_gradient_of(const block_message& m) {
  places_.emplace_back(m.of);
  const row_store &dout = find(content::dout, m.of, m.heads),
                  &out = find(content::out, m.of, m.heads);
  const row_store all =
      temporary(places_.back(), m.heads,
                widths_.value + elements_of(numbers_of_gradient, dout.type), dout.type);
  memory_.free(all.data, m.needed + 1);
  const row_store to = without_numbers(all, numbers_of_gradient);
  const rows_of_heads which{call_.batch, m.of, m.heads};
  in_turn(on_, [&](core::execution& turn) {
    copy_rows(dout, to, which, turn);
    write_numbers(remote_gradient{dout, out, to, share_.queries(), statistics_}, which, turn);
  });
  return all;
}

// Adds a part of the result that another rank computed.
void carried_pass::take_part(const block_message& m, const row_store& from, block_carrier& by) {
  if (!is_gradient_) attend_to_parts(by);  // the rank's own parts of earlier steps come first
  for (const row_run& run : share_.queries().runs(m.of))
    fill_rows(run.position, run.position + run.count);
  const rows_of_heads which{call_.batch, m.of, m.heads};
  in_turn(on_, [&](core::execution& turn) {
    block_carrier::access access;
    by.begin_access(access);
    if (is_gradient_) return add_rows(from, sums_, which, turn);
    merge({without_numbers(from, numbers_of_part), sums_, share_.queries(), statistics_}, which,
          turn);
  });
  if (is_gradient_) return;
  for (const row_run& run : share_.queries().runs(m.of))
    for (std::int64_t i = 0; i < run.count; ++i) --tasks_left_[core::at(run.position + i)];
}

}  // namespace velo::sched
