// A layer of experts on ranks, for the tests of dispatchers: a micro-batch of all ranks, each
// rank's forward and backward pass, and what they come to in double. Every expert multiplies its
// rows by a factor of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/sched/overlap/matrices.hpp"

namespace velo::testing {

// How the tokens of a micro-batch lie on ranks.
enum class token_layout {
  parts,     // in order; rank 1 of several has no token, and the others unequal numbers
  halved,    // a half on rank 0, of the others a half on rank 1, one on rank 2, none on later ones
  scattered  // in any order, with their places
};

struct micro_batch {
  std::int64_t tokens, top_k, experts, width;
  velo_dtype dtype;
  std::vector<std::int32_t> choices;  // of all ranks, -1 and less among them
  token_layout layout = token_layout::parts;

  micro_batch(std::int64_t tokens_, std::int64_t top_k_, std::int64_t experts_, std::int64_t width_,
              velo_dtype dtype_, int seed, bool one_expert = false)
      : tokens(tokens_), top_k(top_k_), experts(experts_), width(width_), dtype(dtype_) {
    random_numbers<std::mt19937> draw(at(seed));
    for (std::int64_t i = 0; i < tokens * top_k; ++i)
      choices.push_back(one_expert       ? 1
                        : draw.one_in(7) ? -1 - static_cast<std::int32_t>(draw.below(3))
                                         : static_cast<std::int32_t>(draw.below(at(experts))));
  }

  // The tokens of a rank, as they lie there.
  std::vector<std::int64_t> tokens_of(int rank, int ranks) const {
    std::vector<std::int64_t> all;
    if (layout == token_layout::scattered) {
      for (std::int64_t t = tokens - 1; t >= 0; --t)
        if (t * 7 % 5 % ranks == rank) all.push_back(t);
      return all;
    }
    const std::int64_t end = rank + 1 >= ranks ? tokens : first(rank + 1, ranks);
    for (std::int64_t t = first(rank, ranks); t < end; ++t) all.push_back(t);
    return all;
  }

 private:
  std::int64_t first(int rank, int ranks) const {
    if (rank == 0) return 0;
    if (layout == token_layout::halved)
      return rank == 1 ? (tokens + 1) * 2 / 3 : rank == 2 ? tokens - 1 : tokens;
    const std::int64_t half = std::min(tokens / 2 + 1, tokens);
    return rank <= 2 ? half : half + (tokens - half) * (rank - 2) / std::max(ranks - 2, 1);
  }
};

inline double factor_of(std::int64_t expert) {
  return 0.5 + 0.125 * static_cast<double>(expert);
}

// The tensors of a pass over all tokens, as ranks fill their parts.
struct pass_results {
  matrix y, dx, dweights;
  std::vector<std::vector<double>> rows_of_expert;  // as they came, padding among them

  explicit pass_results(const micro_batch& of)
      : y(of.dtype, {of.tokens, of.width}),
        dx(of.dtype, {of.tokens, of.width}),
        dweights(f32, {of.tokens, of.top_k}),
        rows_of_expert(at(of.experts)) {}
};

inline bool same_bits(const pass_results& a, const pass_results& b) {
  return a.y.same_bits(b.y) && a.dx.same_bits(b.dx) && a.dweights.same_bits(b.dweights);
}

// The inputs of a pass, of all tokens.
struct pass_inputs {
  matrix x, dy, weights, scores;
  explicit pass_inputs(const micro_batch& of)
      : x(of.dtype, {of.tokens, of.width}, 1),
        dy(of.dtype, {of.tokens, of.width}, 2),
        weights(f32, {of.tokens, of.top_k}, 3),
        scores(f32, {of.tokens, of.top_k}, 4) {
    for (std::int64_t i = 0; i < scores.count(); ++i)  // equal ones among them
      scores.set(i, std::round(scores[i] * 8));
  }
};

inline velo_dispatcher_desc desc_of(std::int64_t experts, std::int32_t top_k) {
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = experts, desc.top_k = top_k;
  return desc;
}
inline velo_dispatcher_desc desc_of(const micro_batch& of) {
  return desc_of(of.experts, static_cast<std::int32_t>(of.top_k));
}
inline bool takes_scores(const velo_dispatcher_desc& desc) {
  return desc.capacity_rule != VELO_CAPACITY_NONE &&
         desc.drop_policy == VELO_DROP_POLICY_PROBABILITY;
}

// A dispatcher with a routing, on a rank; NULL where they cannot be made.
struct open_layer {
  velo_dispatcher layer = nullptr;
  velo_routing routing = nullptr;

  open_layer(velo_group group, const velo_dispatcher_desc& desc) {
    if (velo_dispatcher_create(group, &desc, &layer) == VELO_OK)
      velo_routing_create(layer, &routing);
  }
  ~open_layer() {
    velo_routing_destroy(routing);
    velo_dispatcher_destroy(layer);
  }
  open_layer(const open_layer&) = delete;
  open_layer& operator=(const open_layer&) = delete;
};

// One rank's forward and backward pass.
class rank_pass {
 public:
  rank_pass(const micro_batch& of, const pass_inputs& in, const rank_of_group& me)
      : of_(of),
        experts_in_(me.group),
        expert_rank_(me.rank),
        expert_ranks_(me.size),
        tokens_(of.tokens_of(me.rank, me.size)),
        count_(static_cast<std::int64_t>(tokens_.size())),
        x_(of.dtype, {count_, of.width}),
        dy_(of.dtype, {count_, of.width}),
        weights_(f32, {count_, of.top_k}),
        scores_(f32, {count_, of.top_k}),
        y_(of.dtype, {count_, of.width}),
        dx_(of.dtype, {count_, of.width}),
        dweights_(f32, {count_, of.top_k}, 9) {
    take(in.x, of.width, x_);
    take(in.dy, of.width, dy_);
    take(in.weights, of.top_k, weights_);
    take(in.scores, of.top_k, scores_);
    for (const std::int64_t t : tokens_)
      for (std::int64_t j = 0; j < of.top_k; ++j)
        choices_.push_back(of.choices[at(t * of.top_k + j)]);
  }

  // The experts lie on the ranks of another group, which has this rank and others.
  void move_to(velo_group group) {
    velo_group_info info = VELO_GROUP_INFO_INIT;
    velo_group_get_info(group, &info);
    experts_in_ = group, expert_ranks_ = info.size, expert_rank_ = info.rank;
  }

  velo_status run(velo_stream stream, const velo_dispatcher_desc& desc, pass_results& into) {
    const open_layer of(experts_in_, desc);
    velo_status done = VELO_OK;
    for (int step = 0; step < 2 && done == VELO_OK; ++step)  // a routing is used again
      done = run_in(of, stream, desc, into);
    return done;
  }
  velo_status run_in(const open_layer& of, velo_stream stream, const velo_dispatcher_desc& desc,
                     pass_results& into) {
    places_given_ = of_.layout == token_layout::scattered &&
                    desc.capacity_rule != VELO_CAPACITY_NONE && desc.capacity_by_rank == 0;
    scores_given_ = takes_scores(desc);
    return pass(stream, of.layer, of.routing, into);
  }
  // Whether what this rank has is bit for bit what another number of ranks has.
  bool agrees(const pass_results& whole) const {
    const auto same = [&](const matrix& own, const matrix& all, std::int64_t columns) {
      matrix part(own.view().dtype, {count_, columns});
      take(all, columns, part);
      return own.same_bits(part);
    };
    return same(y_, whole.y, of_.width) && same(dx_, whole.dx, of_.width) &&
           same(dweights_, whole.dweights, of_.top_k);
  }

 private:
  void take(const matrix& all, std::int64_t columns, matrix& own) const {
    for (std::int64_t i = 0; i < own.count(); ++i)
      own.set(i, all[tokens_[at(i / columns)] * columns + i % columns]);
  }
  void keep(const matrix& own, std::int64_t columns, matrix& all) const {
    for (std::int64_t i = 0; i < own.count(); ++i)
      all.set(tokens_[at(i / columns)] * columns + i % columns, own[i]);
  }

  velo_status set(velo_stream stream, velo_routing routing) {
    const std::int64_t shape[] = {count_, of_.top_k};
    const velo_tensor choices = view_of(choices_.data(), i32, shape), scores = scores_.view(),
                      places = view_of(tokens_.data(), i64, count_);
    const velo_status done =
        velo_routing_set(routing, stream, &choices, scores_given_ ? &scores : nullptr,
                         places_given_ ? &places : nullptr);
    return done == VELO_OK ? velo_stream_synchronize(stream) : done;
  }

  velo_status pass(velo_stream stream, velo_dispatcher layer, velo_routing routing,
                   pass_results& into) {
    std::vector<std::int64_t> counts(at(of_.experts / expert_ranks_));
    std::int64_t rows = 0;
    velo_status done = set(stream, routing);
    if (done == VELO_OK)
      done = velo_routing_get_rows(routing, counts.data(), static_cast<std::int64_t>(counts.size()),
                                   &rows);
    if (done != VELO_OK) return done;
    matrix taken(of_.dtype, {rows, of_.width}, 8), drows(of_.dtype, {rows, of_.width}, 8);
    const velo_tensor x = x_.view(), y = y_.view(), in = taken.view(), w = weights_.view(),
                      dy = dy_.view(), din = drows.view(), dx = dx_.view(), dw = dweights_.view();
    done = velo_dispatcher_dispatch(layer, stream, routing, &x, &in);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    if (done != VELO_OK) return done;
    multiply(taken, counts, &into);
    done = velo_dispatcher_combine(layer, stream, routing, &in, &w, &y);
    if (done == VELO_OK)
      done = velo_dispatcher_combine_backward(layer, stream, routing, &dy, &in, &w, &din, &dw);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    if (done != VELO_OK) return done;
    multiply(drows, counts, nullptr);
    done = velo_dispatcher_dispatch_backward(layer, stream, routing, &din, &dx);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    keep(y_, of_.width, into.y);
    keep(dx_, of_.width, into.dx);
    keep(dweights_, of_.top_k, into.dweights);
    return done;
  }

  // Rows of each expert times its factor; rows as they came are kept.
  void multiply(matrix& rows, const std::vector<std::int64_t>& counts, pass_results* into) const {
    std::int64_t element = 0;
    for (std::size_t e = 0; e < counts.size(); ++e) {
      const auto expert =
          static_cast<std::int64_t>(e) + expert_rank_ * (of_.experts / expert_ranks_);
      std::vector<double> came;
      for (std::int64_t i = 0; i < counts[e] * of_.width; ++i, ++element) {
        came.push_back(rows[element]);
        rows.set(element, rows[element] * factor_of(expert));
      }
      if (into != nullptr) into->rows_of_expert[at(expert)] = came;
    }
  }

  const micro_batch& of_;
  velo_group experts_in_;
  std::int64_t expert_rank_, expert_ranks_;
  const std::vector<std::int64_t> tokens_;
  const std::int64_t count_;
  std::vector<std::int32_t> choices_;
  bool places_given_ = false, scores_given_ = false;
  matrix x_, dy_, weights_, scores_, y_, dx_, dweights_;
};

template <class Ranks>
void run_pass(const micro_batch& of, const velo_dispatcher_desc& desc, const Ranks& ranks,
              pass_results& into, bool queued = false) {
  const pass_inputs in(of);
  std::vector<velo_stream> streams;
  for (int rank = 0; rank < ranks.size(); ++rank)
    streams.push_back(queued ? ranks.context(rank).new_stream() : ranks.rank(rank).stream);
  ranks.require([&](const rank_of_group& me) {
    rank_pass pass(of, in, me);
    return pass.run(streams[at(me.rank)], desc, into);
  });
}
template <class Ranks>
void run_pass(const micro_batch& of, const Ranks& ranks, pass_results& into, bool queued = false) {
  run_pass(of, desc_of(of), ranks, into, queued);
}

inline double rounding_of(velo_dtype dtype) {
  return dtype.bits == 32 ? 1e-6 : dtype.code == VELO_DTYPE_BFLOAT ? 8e-3 : 1e-3;
}

// The number of elements of a pass that are too far from the sums in double. kept: the choices that
// have rows; the others are negative.
inline std::int64_t wrong_elements(const micro_batch& of, const std::vector<std::int32_t>& kept,
                                   const pass_results& got) {
  const pass_inputs in(of);
  const double bound = 4 * rounding_of(of.dtype);
  std::int64_t wrong = 0;
  for (std::int64_t t = 0; t < of.tokens; ++t) {
    for (std::int64_t i = 0; i < of.width; ++i) {
      double y = 0, dx = 0, sum = 1;
      for (std::int64_t j = 0; j < of.top_k; ++j) {
        const std::int32_t expert = kept[at(t * of.top_k + j)];
        if (expert < 0) continue;
        const double scale = in.weights[t * of.top_k + j] * factor_of(expert);
        y += scale * in.x[t * of.width + i], dx += scale * in.dy[t * of.width + i];
        sum += std::abs(scale);
      }
      wrong += std::abs(got.y[t * of.width + i] - y) > bound * sum;
      wrong += std::abs(got.dx[t * of.width + i] - dx) > bound * sum;
    }
    for (std::int64_t j = 0; j < of.top_k; ++j) {
      const std::int32_t expert = kept[at(t * of.top_k + j)];
      double product = 0, sum = 1;
      for (std::int64_t i = 0; i < of.width && expert >= 0; ++i) {
        const double term = factor_of(expert) * in.x[t * of.width + i] * in.dy[t * of.width + i];
        product += term, sum += std::abs(term);
      }
      wrong += std::abs(got.dweights[t * of.top_k + j] - product) > bound * sum;
    }
  }
  return wrong;
}

// The rows of each expert by token and choice, as they come where tokens lie in order.
inline std::vector<std::vector<double>> rows_in_order(const micro_batch& of,
                                                      const std::vector<std::int32_t>& kept) {
  const pass_inputs in(of);
  std::vector<std::vector<double>> all(at(of.experts));
  for (std::int64_t i = 0; i < of.tokens * of.top_k; ++i) {
    if (kept[at(i)] < 0) continue;
    for (std::int64_t c = 0; c < of.width; ++c)
      all[at(kept[at(i)])].push_back(in.x[i / of.top_k * of.width + c]);
  }
  return all;
}

inline void check_against_double(const micro_batch& of, const pass_results& got) {
  CHECK(wrong_elements(of, of.choices, got) == 0);
}
inline void check_rows(const micro_batch& of, const pass_results& got) {
  CHECK(got.rows_of_expert == rows_in_order(of, of.choices));
}

}  // namespace velo::testing
