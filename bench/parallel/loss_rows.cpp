// Rows of the loss of cut classes on two ranks: vocab_parallel_cross_entropy and its gradient.
//
// Two calls take turns: the loss of all classes on each rank at the same time, so that each has the
// other's load beside it; and that of a rank's half of the classes. A share of 0.5 is ideal. The
// whole's logits of 8 tokens fit the second cache, and each timed call follows an untimed one of
// its kind, which brings its tensors there. Those of 1024 tokens, 128 MiB in float32, come from
// memory, or in part from a third cache as large. The gradient has a tensor of its own, so that
// every call sees the same logits. Results are held against the whole's, each number relative to
// its own.
//
// "of the limit": a rank's half alone, of as many tokens as fill 128 MiB on each rank. The rate is
// that of both ranks' logits read, and of the gradient also of what is written. The limit is two
// threads' from memory: a read, or the better copy. It is the mean of a calibration before these
// rows and one behind them.
#include <cmath>
#include <cstring>

#include "bench/harness/require.hpp"
#include "bench/limits/calibration.hpp"
#include "bench/parallel/attention_calls.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t classes = 32768;

struct row {
  dtype type;
  std::int64_t tokens;
  bool gradient;

  bool in_cache() const { return tokens <= 8; }
  std::string name() const {
    return gradient ? "vocab_parallel_cross_entropy_backward" : "vocab_parallel_cross_entropy";
  }
  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(classes) +
           (in_cache() ? " in cache" : " from memory");
  }
  // A gradient is rounded to its type; losses are float32, but of two orders of summation.
  double bound() const { return gradient && type == dtype::bf16 ? 0x1p-7 : 1e-5; }
};

// The tensors of some classes, and the arguments that both operators have.
class class_range {
 public:
  class_range(const row& r, std::int64_t first, std::int64_t count)
      : logits_(r.type, first_rows(r.tokens), 1, count, 1, first),
        dlogits_(r.type, first_rows(r.tokens), 1, count, 2, first),
        tokens_(r.tokens),
        targets_(tokens()),
        loss_(tokens()),
        lse_(tokens()),
        dloss_(tokens()) {
    for (std::size_t t = 0; t < tokens(); ++t) {
      targets_[t] = static_cast<std::int64_t>(t * 2654435761u % classes);
      dloss_[t] = 1 + static_cast<float>(t % 3);
    }
  }

  template <class Args>
  void set_inputs(Args& args) const {
    args.logits = &x_, args.targets = &at_, args.lse = &sums_;
  }
  template <class Args>
  void set_forward(Args& args) const {
    set_inputs(args);
    args.loss = &y_;
  }
  template <class Args>
  void set_gradient(Args& args) const {
    set_inputs(args);
    args.dloss = &dy_, args.dlogits = &dx_;
  }

  double difference(const class_range& all, bool gradient) const {
    if (gradient) return dlogits_.relative_difference(all.dlogits_);
    double worst = 0;
    for (std::size_t t = 0; t < tokens(); ++t)
      for (const auto& one : {&class_range::loss_, &class_range::lse_}) {
        const float wanted = (all.*one)[t], apart = std::fabs((this->*one)[t] / wanted - 1);
        worst = apart <= worst ? worst : static_cast<double>(apart);  // NaN stays
      }
    return worst;
  }

 private:
  std::size_t tokens() const { return static_cast<std::size_t>(tokens_); }
  template <class T>
  velo_tensor view(const std::vector<T>& of, velo_dtype type) const {
    return {const_cast<T*>(of.data()), {VELO_DEVICE_CPU, 0}, 1, type, &tokens_, nullptr, 0};
  }
  velo_tensor view(const std::vector<float>& of) const {
    return view(of, {VELO_DTYPE_FLOAT, 32, 1});
  }

  const row_block logits_, dlogits_;
  const std::int64_t tokens_;
  std::vector<std::int64_t> targets_;
  std::vector<float> loss_, lse_, dloss_;
  const velo_tensor x_ = logits_.matrix(), dx_ = dlogits_.matrix(),
                    at_ = view(targets_, {VELO_DTYPE_INT, 64, 1}), y_ = view(loss_),
                    sums_ = view(lse_), dy_ = view(dloss_);
};

void call_forward(const rank_of& me, const class_range& own) {
  velo_vocab_parallel_cross_entropy_args args = VELO_VOCAB_PARALLEL_CROSS_ENTROPY_ARGS_INIT;
  own.set_forward(args);
  args.group = me.group;
  require(velo_vocab_parallel_cross_entropy(me.stream, &args));
}
void call_gradient(const rank_of& me, const class_range& own) {
  velo_vocab_parallel_cross_entropy_backward_args args =
      VELO_VOCAB_PARALLEL_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
  own.set_gradient(args);
  args.group = me.group;
  require(velo_vocab_parallel_cross_entropy_backward(me.stream, &args));
}

// One rank's calls of a row.
class losses {
 public:
  losses(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        whole_(r, 0, classes),
        own_(r, me.number * classes / ranks, classes / ranks) {
    for (const int which : {peer, ours}) forward(which);  // for the gradients
  }
  void call(int which) const { r_.gradient ? gradient(which) : forward(which); }
  bool is_right() const { return own_.difference(whole_, r_.gradient) <= r_.bound(); }

 private:
  void forward(int which) const {
    if (which == peer) {
      velo_cross_entropy_args args = VELO_CROSS_ENTROPY_ARGS_INIT;
      whole_.set_forward(args);
      args.reduction = VELO_REDUCTION_NONE;
      return require(velo_cross_entropy(me_.stream, &args));
    }
    call_forward(me_, own_);
  }
  void gradient(int which) const {
    if (which == peer) {
      velo_cross_entropy_backward_args args = VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
      whole_.set_gradient(args);
      args.reduction = VELO_REDUCTION_NONE;
      return require(velo_cross_entropy_backward(me_.stream, &args));
    }
    call_gradient(me_, own_);
  }

  const row& r_;
  const rank_of& me_;
  const class_range whole_, own_;
};

std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool gradient : {false, true})
      for (const std::int64_t tokens : {8, 1024}) rows.push_back({type, tokens, gradient});
  return rows;
}

// ---- against memory's limit ----

constexpr std::int64_t limit_bytes = std::int64_t{128} << 20;  // of a rank's logits

// The loss of one rank's half of the classes, without the other rank.
class half_losses {
 public:
  half_losses(const row& r, const rank_of& me)
      : r_(r), me_(me), own_(r, me.number * classes / ranks, classes / ranks) {
    call_forward(me_, own_);  // for the gradient
  }
  void call(int) const { r_.gradient ? call_gradient(me_, own_) : call_forward(me_, own_); }

 private:
  const row& r_;
  const rank_of& me_;
  const class_range own_;
};

result against_limit(const row& r, const char* by, const board& all) {
  const double bytes = static_cast<double>(ranks * limit_bytes) * (r.gradient ? 2 : 1);
  result made;
  made.name = r.name();
  made.shape = std::to_string(r.tokens) + "x" + std::to_string(classes) + " of the limit";
  made.residency = by;
  made.unit = "GB/s";
  made.bound = r.gradient ? limit::copy_nt : limit::read;
  made.type = r.type;
  made.threads = ranks;
  made.p25s = {all.slower(ours, 0.25)};
  made.mins = {all.slower(ours, 0)};
  made.rates = {1e-9 * bytes / made.p25s[0]};
  return made;
}

double limit_of(const row& r, const calibration& at) {
  if (!r.gradient) return at.at(limit::read, ranks);
  return std::max(at.at(limit::copy, ranks), at.at(limit::copy_nt, ranks));
}

struct limited {
  row of;
  result made;
  int rounds;
};

std::vector<limited> measure_halves(const pair_options& set, board& all) {
  std::vector<limited> made;
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool gradient : {false, true})
      for (const char* by : {"local", "shm"}) {
        const row r{type, limit_bytes / (classes / ranks * bytes_of(type)), gradient};
        all.rounds = board::most_rounds;
        by_way(by, [&](const rank_of& me) {
          const half_losses one(r, me);
          alternate(me, all, set.seconds, 1, [&one](int which) { one.call(which); });
        });
        made.push_back({r, against_limit(r, by, all), all.rounds});
      }
  return made;
}

void measure_limits(const pair_options& set, board& all, const row_taker& take) {
  if (!set.filter.empty() && set.filter.find("limit") == std::string::npos) return;
  const machine here = identify_machine();
  const calibration before = calibrate(here, {ranks}, quick);
  std::vector<limited> rows = measure_halves(set, all);
  const calibration limits = mean(before, calibrate(here, {ranks}, quick));
  for (limited& one : rows) {
    const double most = limit_of(one.of, limits);
    one.made.limits = {most};
    one.made.add_peer("limit", most, one.made.rates[0] / most);
    take(one.made, one.rounds);
  }
}

}  // namespace

bool measure_losses(const pair_options& set, board& all, const row_taker& take) {
  for (const row& r : all_rows()) {
    const pair_row of{r.name(), r.type, r.text(), "whole", r.in_cache()};
    if (!measure_pair<losses>(of, r, set, all, take)) return false;
  }
  measure_limits(set, all, take);
  return true;
}

}  // namespace velo::bench
