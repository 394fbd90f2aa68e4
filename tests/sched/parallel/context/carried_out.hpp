// A sequence plan carried out in double by ranks that have nothing but their own rows and what
// messages bring, against attention over the whole sequence.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "sched/parallel/context/plan.hpp"

namespace velo::testing {

using sched::content;
using sched::sequence_plan;
using sched::sequence_shape;

constexpr int width = 3;  // of a head
using row_vector = std::vector<double>;
using place = std::tuple<content, std::int64_t, std::int64_t>;  // content, row, head
using rows_by_place = std::map<place, row_vector>;

inline row_vector input(content what, std::int64_t row, std::int64_t head) {
  row_vector x(width);
  for (int d = 0; d < width; ++d) {
    const double at = 1.3 * static_cast<double>(row) + 2.1 * static_cast<double>(head) + 0.7 * d +
                      5.0 * static_cast<int>(what);
    x[static_cast<std::size_t>(d)] = std::sin(at + 0.3 * static_cast<double>(row * head));
  }
  return x;
}

inline double dot(const row_vector& a, const row_vector& b) {
  double sum = 0;
  for (int d = 0; d < width; ++d)
    sum += a[static_cast<std::size_t>(d)] * b[static_cast<std::size_t>(d)];
  return sum;
}
inline void add(row_vector& to, double factor, const row_vector& x) {
  if (to.empty()) to.assign(width, 0);
  for (int d = 0; d < width; ++d)
    to[static_cast<std::size_t>(d)] += factor * x[static_cast<std::size_t>(d)];
}

inline bool is_visible(const sequence_shape& of, std::int64_t q, std::int64_t k) {
  if (of.mask != nullptr) return of.mask[q * of.sequence() + k] == 0;
  std::int64_t of_q = 0, of_k = 0;
  while (of.all.ends[static_cast<std::size_t>(of_q)] <= q) ++of_q;
  while (of.all.ends[static_cast<std::size_t>(of_k)] <= k) ++of_k;
  return of_q == of_k && (!of.causal || k <= q);
}

// The sums of a row and head over the keys seen so far.
struct softmax_row {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  row_vector out = row_vector(width, 0);

  void see(double score, const row_vector& value) {
    const double now = std::max(largest, score), old = std::exp(largest - now);
    for (double& x : out) x *= old;
    add(out, std::exp(score - now), value);
    sum = sum * old + std::exp(score - now);
    largest = now;
  }
  void add_part(const softmax_row& part) {
    if (part.sum == 0) return;
    const double now = std::max(largest, part.largest), old = std::exp(largest - now),
                 other = std::exp(part.largest - now);
    for (double& x : out) x *= old;
    add(out, other, part.out);
    sum = sum * old + part.sum * other;
    largest = now;
  }
  row_vector result() const {
    row_vector y = out;
    for (double& x : y) x = sum > 0 ? x / sum : 0;
    return y;
  }
};

// The gradients of one cell.
inline void add_cell(rows_by_place& to, std::int64_t q, std::int64_t k, std::int64_t head,
                     std::int64_t key_head, const softmax_row& row, const row_vector (&in)[4]) {
  const auto& [query, key, value, dout] = in;
  const double weight = std::exp(dot(query, key) - row.largest) / row.sum;
  const double dscore = weight * (dot(dout, value) - dot(dout, row.result()));
  add(to[{content::dv, k, key_head}], weight, dout);
  add(to[{content::dk, k, key_head}], dscore, query);
  add(to[{content::dq, q, head}], dscore, key);
}

// Attention over the whole sequence: out, dq, dk and dv by place.
inline rows_by_place whole_attention(const sequence_shape& of) {
  rows_by_place all;
  const std::int64_t each = of.heads.queries / of.heads.keys;
  for (std::int64_t q = 0; q < of.sequence(); ++q) {
    for (std::int64_t h = 0; h < of.heads.queries; ++h) {
      softmax_row row;
      const row_vector query = input(content::q, q, h);
      for (std::int64_t k = 0; k < of.sequence(); ++k)
        if (is_visible(of, q, k))
          row.see(dot(query, input(content::k, k, h / each)), input(content::v, k, h / each));
      all[{content::out, q, h}] = row.result();
      for (std::int64_t k = 0; k < of.sequence(); ++k)
        if (is_visible(of, q, k))
          add_cell(all, q, k, h, h / each, row,
                   {query, input(content::k, k, h / each), input(content::v, k, h / each),
                    input(content::dout, q, h)});
    }
  }
  return all;
}

class carried_out_plan {
 public:
  carried_out_plan(const sequence_plan& plan, const sequence_shape& of)
      : plan_(plan), of_(of), has_(static_cast<std::size_t>(of.ranks)), rows_(has_.size()) {
    for (std::size_t r = 0; r < has_.size(); ++r) {
      for (const content what : {content::q, content::dout}) give(r, what, of.heads.queries);
      for (const content what : {content::k, content::v}) give(r, what, of.heads.keys);
    }
    give_kept();
  }

  // Returns what each place's owner has in the end.
  rows_by_place run() {
    run(plan_.forward, false);
    rows_by_place results;
    for (std::size_t r = 0; r < has_.size(); ++r)
      each_own(r, of_.heads.queries, [&](std::int64_t row, std::int64_t head) {
        const auto sent = has_[r].find({content::out, row, head});
        results[{content::out, row, head}] =
            sent != has_[r].end() ? sent->second : rows_[r][{row, head}].result();
      });
    forget();
    run(plan_.gradient, true);
    for (std::size_t r = 0; r < has_.size(); ++r)
      for (const content what : {content::dq, content::dk, content::dv})
        each_own(r, what == content::dq ? of_.heads.queries : of_.heads.keys,
                 [&](std::int64_t row, std::int64_t head) {
                   results[{what, row, head}] = has_[r][{what, row, head}];
                 });
    return results;
  }

 private:
  static bool is_sum(content what) {
    return what == content::dq || what == content::dk || what == content::dv;
  }
  template <class Body>
  static void each(const sched::rows& of, sched::span heads, const Body& body) {
    for (const sched::span& s : of)
      for (std::int64_t row = s.begin; row < s.end; ++row)
        for (std::int64_t head = heads.begin; head < heads.end; ++head) body(row, head);
  }
  template <class Body>
  void each_own(std::size_t rank, std::int64_t heads, const Body& body) const {
    each(plan_.held[rank], {0, heads}, body);
  }
  void give(std::size_t rank, content what, std::int64_t heads) {
    each_own(rank, heads, [&](std::int64_t row, std::int64_t head) {
      has_[rank][{what, row, head}] = input(what, row, head);
    });
  }
  const row_vector& need(std::size_t rank, content what, std::int64_t row, std::int64_t head) {
    const auto found = has_[rank].find({what, row, head});
    REQUIRE(found != has_[rank].end());
    return found->second;
  }

  // Rows that a rank received in the forward are gone, except those that it keeps.
  void forget() {
    std::vector<rows_by_place> kept(has_.size());
    for (const sched::block_message& m : plan_.forward.messages)
      if (m.kept)
        each(m.of, m.heads, [&](std::int64_t row, std::int64_t head) {
          const auto to = static_cast<std::size_t>(m.to);
          kept[to][{m.what, row, head}] = need(to, m.what, row, head);
        });
    has_ = std::move(kept);
    for (std::size_t r = 0; r < has_.size(); ++r) {
      for (const content what : {content::q, content::dout}) give(r, what, of_.heads.queries);
      for (const content what : {content::k, content::v}) give(r, what, of_.heads.keys);
    }
    give_kept();
  }
  // Keys and values that the layer which owns them has kept.
  void give_kept() {
    for (const sched::block_message& m : plan_.given)
      if (sched::is_of_keys(m.what))
        each(m.of, m.heads, [&](std::int64_t row, std::int64_t head) {
          has_[static_cast<std::size_t>(m.to)][{m.what, row, head}] = input(m.what, row, head);
        });
  }

  void run(const sched::attention_pass& pass, bool gradient) {
    std::vector<carried_rows> under_way(pass.messages.size());
    for (std::int64_t step = 0; step <= pass.steps; ++step) {
      for (std::size_t i = 0; i < pass.messages.size(); ++i)
        if (pass.messages[i].needed == step) deliver(pass.messages[i], under_way[i]);
      for (std::size_t i = 0; i < pass.messages.size(); ++i)
        if (pass.messages[i].step == step) send(pass.messages[i], under_way[i]);
      for (std::size_t r = 0; r < has_.size(); ++r)
        for (const sched::attention_task& task : pass.tasks[r])
          if (task.step == step) compute(r, task, gradient);
    }
  }
  // What a message brings. With statistics a row's sums over keys go along: those of a part of the
  // result, which the receiver adds to its own, or with dout those of the whole.
  struct carried_rows {
    rows_by_place rows;
    std::map<std::pair<std::int64_t, std::int64_t>, softmax_row> sums;
  };
  void deliver(const sched::block_message& m, const carried_rows& all) {
    const auto rank = static_cast<std::size_t>(m.to);
    for (const auto& [at, sums] : all.sums)
      if (m.what == content::out)
        rows_[rank][at].add_part(sums);
      else
        rows_[rank][at] = sums;
    for (const auto& [at, x] : all.rows) {
      row_vector& to = has_[rank][at];
      if (is_sum(m.what))
        add(to, 1, x);
      else
        to = x;
    }
  }
  void send(const sched::block_message& m, carried_rows& carried) {
    const auto from = static_cast<std::size_t>(m.from);
    rows_by_place& all = carried.rows;
    each(m.of, m.heads, [&](std::int64_t row, std::int64_t head) {
      const place at{m.what, row, head};
      if (m.statistics > 0) carried.sums[{row, head}] = rows_[from][{row, head}];
      if (m.part && m.what == content::out) return;
      if (m.what == content::out) {
        all[at] = rows_[from][{row, head}].result();
      } else if (!is_sum(m.what)) {
        all[at] = need(from, m.what, row, head);
      } else if (const auto found = has_[from].find(at); found != has_[from].end()) {
        all[at] = found->second;
        has_[from].erase(found);
      }
    });
  }
  void compute(std::size_t rank, const sched::attention_task& task, bool gradient) {
    const std::int64_t each_key = of_.heads.queries / of_.heads.keys;
    each(task.queries, task.heads, [&](std::int64_t q, std::int64_t head) {
      for (const sched::span& keys : task.keys)
        for (std::int64_t k = keys.begin; k < keys.end; ++k) {
          if (task.visible == sched::cells::causal && k > q) continue;
          if (task.visible == sched::cells::masked && !is_visible(of_, q, k)) continue;
          REQUIRE(is_visible(of_, q, k));
          const std::int64_t key_head = head / each_key;
          const row_vector in[] = {need(rank, content::q, q, head),
                                   need(rank, content::k, k, key_head),
                                   need(rank, content::v, k, key_head),
                                   gradient ? need(rank, content::dout, q, head) : row_vector()};
          softmax_row& row = rows_[rank][{q, head}];
          if (gradient)
            add_cell(has_[rank], q, k, head, key_head, row, in);
          else
            row.see(dot(in[0], in[1]), in[2]);
        }
    });
  }

  const sequence_plan& plan_;
  const sequence_shape& of_;
  std::vector<rows_by_place> has_;  // by rank
  std::vector<std::map<std::pair<std::int64_t, std::int64_t>, softmax_row>> rows_;
};

}  // namespace velo::testing
