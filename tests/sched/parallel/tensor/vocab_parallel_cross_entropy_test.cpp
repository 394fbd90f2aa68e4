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
#include "tests/sched/parallel/tensor/loss_ranks.hpp"

using namespace velo::testing;

namespace {

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
