// vocab_parallel_cross_entropy and its gradient against the loss of the whole vocabulary in double:
// ranks, cuts, padding, dtypes, smoothing, ignored targets, levels and transports; refusals.
#include <cmath>
#include <limits>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/random.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

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

loss_case even(int ranks, std::int64_t vocab = 24) {
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

loss_ranks ranks_of(const loss_case& of) {
  loss_ranks all;
  for (std::size_t r = 0; r < of.columns.size(); ++r)
    all.push_back(std::make_unique<loss_rank>(of, static_cast<int>(r)));
  return all;
}

double bound_of(velo_dtype dtype) {
  return dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-8 : dtype.bits == 16 ? 0x1p-11 : 5e-6;
}

std::vector<loss_case> cases_of(int ranks) {
  std::vector<loss_case> all{even(ranks), even(ranks, 7 * ranks + 1), even(ranks)};
  all[2].columns.assign(at(ranks), 3);  // uneven, and a rank of padding alone
  all[2].columns[0] = 24 - 3 * (ranks - 1) + (ranks > 1 ? 3 : 0);
  all[1].targets[1] = all[1].targets[4] = all[1].ignored = std::numeric_limits<std::int64_t>::min();
  all.push_back(even(ranks));  // all classes on one rank, none on the others
  all[3].columns.assign(at(ranks), 0);
  all[3].columns.back() = 24;
  all.push_back(even(ranks));  // no target counts
  all[4].ignored = -100;
  all[4].targets.assign(at(all[4].tokens), all[4].ignored);
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().smoothing = 0.1;
  }
  return all;
}

}  // namespace

TEST_CASE("a loss over cut classes is that of all classes, and so is its gradient") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    for (loss_case of : cases_of(count))
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const char* level : {"2", "1", "0"}) {
          of.dtype = dtype;
          set_all(all, "level", level);
          const loss_ranks now = ranks_of(of);
          INFO(count << " ranks, level " << level << ", smoothing " << of.smoothing << ", "
                     << int{dtype.code} << "." << int{dtype.bits} << ", vocab " << of.vocab);
          all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
          for (const auto& one : now) {
            CHECK(one->error() <= bound_of(dtype));
            CHECK(one->borders_kept());
            CHECK(one->loss.same_bits(now[0]->loss));
            CHECK(one->lse.same_bits(now[0]->lse));
          }
        }
  }
}

TEST_CASE("losses over cut classes have the golden values") {
  const double plain[] = {5.717804868, 3.145431129, 7.513792955, 3.108537612, 6.739621363},
               smoothed[] = {5.677062253, 3.387635559, 7.331376896, 3.361143671, 6.632273487};
  const local_ranks all(3);
  for (const bool smooths : {false, true}) {
    loss_case of = even(3);
    of.smoothing = smooths ? 0.1 : 0;
    const loss_ranks now = ranks_of(of);
    all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
    for (std::int64_t t = 0; t < 5; ++t)
      CHECK(std::abs(now[0]->loss.get(t) - (smooths ? smoothed : plain)[t]) <= 2e-6);
  }
}

namespace {

// Multiples of 1000 in [-max, max] that no two neighbors in a row share, of `ranks` x 8 classes:
// all but the largest vanish in a sum of exponentials. In token 3 each rank has the largest once.
void fill_with_thousands(const loss_ranks& all, const loss_case& of) {
  for (std::size_t r = 0; r < all.size(); ++r)
    for (std::int64_t t = 0; t < of.tokens; ++t)
      for (std::int64_t v = 0; v < 8; ++v) {
        const std::int64_t name = of.begin(static_cast<int>(r)) + v;
        const std::int64_t middle = of.vocab / 2, drawn = (5 * name + 3 * t) % of.vocab;
        const bool again = t == 3 && name % 8 == 1;
        all[r]->logits.set(t * 8 + v,
                           static_cast<double>(1000 * (again ? of.vocab : drawn - middle)));
      }
}

// For a token: the largest logit, how many classes have it, and the target's logit.
struct largest {
  double value = -HUGE_VAL, classes = 0, target = 0;

  largest(const loss_ranks& all, const loss_case& of, std::int64_t t) {
    for (std::int64_t name = 0; name < of.vocab; ++name) {
      const double x = all[at(static_cast<int>(name / 8))]->logits.get(t * 8 + name % 8);
      if (x > value) value = x, classes = 0;
      if (x == value) ++classes;
      if (name == of.targets[at(t)]) target = x;
    }
  }
};

}  // namespace

TEST_CASE("losses of logits in the thousands are exact: nothing overflows") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count);
    for (const velo_dtype dtype : {f32, bf16})
      for (const char* level : {"2", "1", "0"}) {
        set_all(all, "level", level);
        loss_case of = even(count, 8 * count);
        of.dtype = dtype;
        of.targets[4] = of.ignored;
        const loss_ranks now = ranks_of(of);
        fill_with_thousands(now, of);
        std::vector<largest> most;
        for (std::int64_t t = 0; t < of.tokens; ++t) most.emplace_back(now, of, t);
        INFO(count << " ranks, level " << level << ", " << int{dtype.bits} << " bits");
        all.require([&](const rank_of_group& me) {
          const velo_status done = now[at(me.rank)]->forward(me.stream, me.group);
          return done == VELO_OK ? now[at(me.rank)]->gradient(me.stream, me.group, false) : done;
        });
        for (std::int64_t t = 0; t < of.tokens; ++t) {
          const largest& one = most[at(t)];
          const bool counts = of.targets[at(t)] >= 0;
          const double lse = one.value + std::log(one.classes);
          for (std::int64_t name = 0; name < of.vocab; ++name) {
            const loss_rank& has = *now[at(static_cast<int>(name / 8))];
            CHECK(has.lse.get(t) == static_cast<float>(lse));
            CHECK(has.loss.get(t) == (counts ? Approx(lse - one.target).epsilon(1e-6) : Approx(0)));
            const double p = has.logits.get(t * 8 + name % 8) == one.value ? 1 / one.classes : 0,
                         wanted = counts ? p - (name == of.targets[at(t)] ? 1 : 0) : 0;
            CHECK(has.dlogits.get(t * 8 + name % 8) ==
                  Approx(has.dloss.get(t) * wanted).epsilon(4e-3));
          }
        }
      }
  }
}

TEST_CASE("processes and hosts compute the losses of threads") {
  const ranks_on_hosts hosts("0011");
  const local_ranks threads(4);
  for (const loss_case& of : cases_of(4)) {
    const loss_ranks by_hosts = ranks_of(of), by_threads = ranks_of(of);
    hosts.require([&](const rank_of_group& me) { return by_hosts[at(me.rank)]->run(me); });
    threads.require([&](const rank_of_group& me) { return by_threads[at(me.rank)]->run(me); });
    for (std::size_t r = 0; r < 4; ++r) {
      CHECK(by_hosts[r]->loss.same_bits(by_threads[r]->loss));
      CHECK(by_hosts[r]->dlogits.same_bits(by_threads[r]->dlogits));
    }
  }
  processes ranks;
  ranks.start_all(3, group_desc(), [](const rank_of_group& me) {
    const loss_case of = even(3, 22);
    const loss_rank mine(of, me.rank);
    const velo_status done = mine.run(me);
    return ending_of(done, mine.error() <= 5e-6 ? 1 : 0);
  });
  for (const ending& one : ranks.wait()) {
    CHECK_OK(one);
    CHECK(one.value == 1);
  }
}

TEST_CASE("a logit that is not finite shows in the loss of its token alone") {
  const local_ranks all(2);
  for (const double odd : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const loss_case of = even(2);
    const loss_ranks now = ranks_of(of);
    now[1]->logits.set(3, odd);  // of token 0
    all.require(
        [&](const rank_of_group& me) { return now[at(me.rank)]->forward(me.stream, me.group); });
    const double loss = now[0]->loss.get(0);
    CHECK((odd == -HUGE_VAL ? std::isfinite(loss) : odd > 0 ? loss == HUGE_VAL : std::isnan(loss)));
    CHECK(std::isfinite(now[0]->loss.get(1)));
  }
}

TEST_CASE("a target that is no class fails on every rank, writes nothing, and ends no group") {
  const local_ranks all(2);
  loss_case of = even(2);
  of.targets[3] = 24;
  const loss_ranks now = ranks_of(of), before = ranks_of(of);
  for (const call_record& one : all.run([&](const rank_of_group& me) {
         return now[at(me.rank)]->forward(me.stream, me.group);
       })) {
    CHECK(one.code == VELO_ERR_ARGUMENT);
    CHECK(one.argument == "args.targets");
    CHECK(one.got == "24 in element 3");
  }
  for (std::size_t r = 0; r < 2; ++r) CHECK(now[r]->loss.same_bits(before[r]->loss));
  all.require_barrier();
}

TEST_CASE("ranks with another vocabulary or smoothing hear of it") {
  loss_case of = even(2), other = even(2, 23), smoothed = of, ignoring = of;
  smoothed.smoothing = 0.1;
  ignoring.ignored = std::numeric_limits<std::int64_t>::min();
  for (const loss_case* odd : {&other, &smoothed, &ignoring}) {
    const local_ranks all(2);
    const loss_rank first(of, 0), last(*odd, 1);
    for (const call_record& one : all.run([&](const rank_of_group& me) {
           return (me.rank == 0 ? first : last).forward(me.stream, me.group);
         }))
      CHECK(one.code == VELO_ERR_PEER);
  }
}

TEST_CASE("a target that no rank has, or two, fails on every rank and writes nothing") {
  const local_ranks all(2);
  for (const std::int64_t second : {13, 11}) {  // behind 12 columns of the first
    loss_case of = even(2, 25);
    of.columns = {12, 12};
    of.targets = {12, 12, 11, 11, 3};
    const loss_ranks now = ranks_of(of), before = ranks_of(of);
    now[1]->place(second);
    for (const call_record& one : all.run([&](const rank_of_group& me) {
           return now[at(me.rank)]->forward(me.stream, me.group);
         })) {
      CHECK(one.code == VELO_ERR_ARGUMENT);
      CHECK(one.argument == "args.vocab_begin");
    }
    for (std::size_t r = 0; r < 2; ++r) CHECK(now[r]->loss.same_bits(before[r]->loss));
    all.require_barrier();
  }
}

TEST_CASE("vocab_parallel_cross_entropy refuses what does not fit, by name") {
  const local_ranks all(2);
  const loss_case of = even(2);
  const loss_rank one(of, 0);
  static const std::int64_t shape[] = {5, 12}, five = 5, four = 4;
  velo_tensor logits = one.logits.view();
  logits.ndim = 2, logits.shape = shape;
  const velo_tensor targets = view_of(of.targets.data(), i64, five),
                    few = view_of(of.targets.data(), i64, four), loss = one.loss.view();
  velo_tensor flat = logits;
  flat.ndim = 1;
  using args = velo_vocab_parallel_cross_entropy_args;
  args valid = VELO_VOCAB_PARALLEL_CROSS_ENTROPY_ARGS_INIT;
  valid.group = all.group(0), valid.logits = &logits, valid.targets = &targets, valid.loss = &loss;
  check_refusals<args>(
      valid, [&](const args& a) { return velo_vocab_parallel_cross_entropy(all.stream(0), &a); },
      {{[](args& a) { a.logits = nullptr; }, VELO_ERR_NULL, "args.logits"},
       {[&](args& a) { a.logits = &flat; }, VELO_ERR_RANK, "args.logits.ndim"},
       {[&](args& a) { a.targets = &few; }, VELO_ERR_SHAPE, "args.targets.shape"},
       {[](args& a) { a.label_smoothing = 2; }, VELO_ERR_ARGUMENT, "args.label_smoothing"},
       {[](args& a) { a.vocab_begin = -2; }, VELO_ERR_ARGUMENT, "args.vocab_begin"},
       {[](args& a) { a.vocab_size = -1; }, VELO_ERR_ARGUMENT, "args.vocab_size"},
       {[&](args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  all.require_barrier();
}
