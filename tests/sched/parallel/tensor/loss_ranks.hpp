// The loss of classes that are cut between ranks, against that of the whole vocabulary in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

namespace velo::testing {

// Logits of all classes, and how they are cut.
struct loss_case {
  std::int64_t tokens = 5, vocab = 24;
  std::vector<std::int64_t> columns;  // of each rank, with padding
  std::vector<std::int64_t> targets;
  double smoothing = 0;
  std::int64_t ignored = -100;
  velo_dtype dtype = f32;

  std::int64_t begin(int rank) const {
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += columns[at(r)];
    return first;
  }
  double logit(std::int64_t t, std::int64_t v) const {
    const auto a = static_cast<double>(t), b = static_cast<double>(v);
    return 4 * std::sin(1.3 * a + 0.7 * b + 0.11 * a * b);
  }
};

inline loss_case even(int ranks, std::int64_t vocab = 24) {
  loss_case made;
  made.vocab = vocab;
  made.columns.assign(at(ranks), (vocab + ranks - 1) / ranks);
  made.targets = {0, 7, 8, 23, 15};
  for (std::int64_t& one : made.targets) one = std::min(one, vocab - 1);
  return made;
}

// A rank's classes, and its calls.
class loss_rank {
 public:
  loss_rank(const loss_case& of, int rank)
      : of_(of),
        begin_(of.begin(rank)),
        n_(of.columns[at(rank)]),
        shape_{of.tokens, n_},
        logits(of.dtype, of.tokens * n_, 0),
        dlogits(of.dtype, of.tokens * n_, 0),
        loss(f32, of.tokens, 0),
        lse(f32, of.tokens, 0),
        dloss(f32, of.tokens, 0) {
    for (std::int64_t t = 0; t < of.tokens; ++t) {
      dloss.set(t, 0.5 + static_cast<double>(t));
      for (std::int64_t v = 0; v < n_; ++v)
        logits.set(t * n_ + v, begin_ + v < of.vocab ? of.logit(t, begin_ + v) : 1e4);
    }
  }

  velo_status forward(velo_stream stream, velo_group group) const {
    const velo_tensor in = matrix_of(logits), y = loss.view(), sums = lse.view(), at = targets();
    velo_vocab_parallel_cross_entropy_args args = VELO_VOCAB_PARALLEL_CROSS_ENTROPY_ARGS_INIT;
    args.group = group, args.logits = &in, args.targets = &at, args.loss = &y, args.lse = &sums;
    set_common(args);
    return velo_vocab_parallel_cross_entropy(stream, &args);
  }
  velo_status gradient(velo_stream stream, velo_group group, bool in_place) const {
    const velo_tensor in = matrix_of(logits), to = in_place ? in : matrix_of(dlogits),
                      sums = lse.view(), dy = dloss.view(), at = targets();
    velo_vocab_parallel_cross_entropy_backward_args args =
        VELO_VOCAB_PARALLEL_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
    args.group = group, args.logits = &in, args.targets = &at, args.lse = &sums;
    args.dloss = &dy, args.dlogits = &to;
    set_common(args);
    return velo_vocab_parallel_cross_entropy_backward(stream, &args);
  }
  velo_status run(const rank_of_group& me) const {
    const velo_status done = forward(me.stream, me.group);
    if (done != VELO_OK) return done;
    const velo_status apart = gradient(me.stream, me.group, false);
    return apart == VELO_OK ? gradient(me.stream, me.group, true) : apart;
  }

  void place(std::int64_t first) { begin_ = first; }

  // The largest difference from the whole in double, of losses and of gradients over dloss.
  double error() const {
    double worst = 0;
    for (std::int64_t t = 0; t < of_.tokens; ++t) {
      const std::int64_t target = of_.targets[at(t)];
      double sum = 0, all = 0;
      for (std::int64_t v = 0; v < of_.vocab; ++v)
        sum += std::exp(rounded(t, v)), all += rounded(t, v);
      const double whole = std::log(sum), e = of_.smoothing;
      const auto classes = static_cast<double>(of_.vocab);
      const double wanted =
          target < 0 ? 0 : (1 - e) * (whole - rounded(t, target)) + e * (whole - all / classes);
      worst = std::max({worst, std::abs(loss.get(t) - wanted), std::abs(lse.get(t) - whole)});
      for (std::int64_t v = 0; v < n_; ++v) {
        const std::int64_t name = begin_ + v;
        const bool counts = target >= 0 && name < of_.vocab;
        const double p =
            counts ? std::exp(rounded(t, name) - whole) - (name == target ? 1 - e : 0) - e / classes
                   : 0;
        for (const elements* one : {&dlogits, &logits})
          worst = std::max(worst, std::abs(one->get(t * n_ + v) / dloss.get(t) - p));
      }
    }
    return worst;
  }
  bool borders_kept() const {
    return logits.borders_kept() && dlogits.borders_kept() && loss.borders_kept() &&
           lse.borders_kept();
  }

 private:
  // A logit as the dtype holds it.
  double rounded(std::int64_t t, std::int64_t v) const {
    elements one(of_.dtype, 1, 0);
    one.set(0, of_.logit(t, v));
    return one.get(0);
  }
  velo_tensor matrix_of(const elements& of) const {
    velo_tensor all = of.view();
    all.ndim = 2, all.shape = shape_;
    return all;
  }
  velo_tensor targets() const { return view_of(of_.targets.data(), i64, of_.tokens); }
  template <class Args>
  void set_common(Args& args) const {
    args.label_smoothing = of_.smoothing, args.ignore_index = of_.ignored;
    args.vocab_begin = begin_, args.vocab_size = of_.vocab;
  }

  const loss_case& of_;
  std::int64_t begin_;
  const std::int64_t n_;
  const std::int64_t shape_[2];

 public:
  elements logits, dlogits, loss, lse, dloss;
};

using loss_ranks = std::vector<std::unique_ptr<loss_rank>>;

inline loss_ranks ranks_of(const loss_case& of) {
  loss_ranks all;
  for (std::size_t r = 0; r < of.columns.size(); ++r)
    all.push_back(std::make_unique<loss_rank>(of, static_cast<int>(r)));
  return all;
}

}  // namespace velo::testing
