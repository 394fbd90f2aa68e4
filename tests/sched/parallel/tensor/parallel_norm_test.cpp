// parallel_rms_norm, parallel_layer_norm and their gradients against the norms of whole rows in
// double: ranks, cuts, dtypes, levels and transports; refusals that keep the group.
#include <cmath>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

// Rows, and how their elements are cut.
struct norm_case {
  std::int64_t rows = 5;
  std::vector<std::int64_t> widths;  // of each rank
  velo_dtype dtype = f32;
  bool centered = false, has_gains = true, accumulates = false;
  double far = 0, epsilon = 1e-3;  // far: added to each element

  std::int64_t begin(int rank) const {
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += widths[at(r)];
    return first;
  }
  std::int64_t width() const { return begin(static_cast<int>(widths.size())); }
  // As the dtype holds them.
  double x(std::int64_t r, std::int64_t i) const { return held(far + wave(r, i, 0.7)); }
  double dy(std::int64_t r, std::int64_t i) const { return held(wave(r, i, 1.9)); }
  double gamma(std::int64_t i) const { return has_gains ? held(1 + wave(3, i, 0.4) / 4) : 1; }
  double beta(std::int64_t i) const { return has_gains && centered ? held(wave(7, i, 0.3)) : 0; }
  double held(double value) const {
    elements one(dtype, 1, 0);
    one.set(0, value);
    return one.get(0);
  }

 private:
  static double wave(std::int64_t r, std::int64_t i, double by) {
    const auto a = static_cast<double>(r), b = static_cast<double>(i);
    return 2 * std::sin(1.3 * a + by * b + 0.11 * a * b);
  }
};

// The norm of one whole row.
struct whole_row {
  std::vector<double> x, dy, gamma, beta, y;
  double mean = 0, rstd = 0;

  whole_row(const norm_case& of, std::int64_t r) : centered_(of.centered), epsilon_(of.epsilon) {
    for (std::int64_t i = 0; i < of.width(); ++i) {
      x.push_back(of.x(r, i)), dy.push_back(of.dy(r, i));
      gamma.push_back(of.gamma(i)), beta.push_back(of.beta(i));
    }
    y.resize(x.size());
    normalize();
  }
  // The slope of the sum of dy * y at element `i` of x, by differences.
  double slope(std::int64_t i) {
    constexpr double step = 1e-4;
    const double kept = x[at(i)];
    double losses[2];
    for (const int side : {0, 1}) {
      x[at(i)] = kept + (side == 0 ? -step : step);
      normalize();
      losses[side] = 0;
      for (std::size_t j = 0; j < y.size(); ++j) losses[side] += dy[j] * y[j];
    }
    x[at(i)] = kept;
    normalize();
    return (losses[1] - losses[0]) / (2 * step);
  }

 private:
  void normalize() {
    const auto n = static_cast<double>(x.size());
    double squares = 0;
    mean = 0;
    for (const double one : x) mean += centered_ ? one / n : 0;
    for (const double one : x) squares += (one - mean) * (one - mean);
    rstd = 1 / std::sqrt(squares / n + epsilon_);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
  }
  const bool centered_;
  const double epsilon_;
};

// A rank's part of the rows, and its calls.
class norm_rank {
 public:
  norm_rank(const norm_case& of, int rank)
      : of_(of),
        first_(of.begin(rank)),
        n_(of.widths[at(rank)]),
        x(of.dtype, {of.rows, n_}),
        y(of.dtype, {of.rows, n_}),
        dy(of.dtype, {of.rows, n_}),
        dx(of.dtype, {of.rows, n_}),
        gamma(of.dtype, {n_}),
        beta(of.dtype, {n_}),
        mean(f32, {of.rows, 1}),
        rstd(f32, {of.rows, 1}),
        dgamma(f32, {n_}, 5),
        dbeta(f32, {n_}, 6) {
    for (std::int64_t r = 0; r < of.rows; ++r)
      for (std::int64_t i = 0; i < n_; ++i)
        x.set(r * n_ + i, of.x(r, first_ + i)), dy.set(r * n_ + i, of.dy(r, first_ + i));
    for (std::int64_t i = 0; i < n_; ++i) {
      gamma.set(i, of.gamma(first_ + i)), beta.set(i, of.beta(first_ + i));
      gains_before_.push_back(dgamma[i]), biases_before_.push_back(dbeta[i]);
    }
  }

  velo_status forward(velo_stream stream, velo_group group) const {
    const velo_tensor in = x.view(), gain = gamma.view(), bias = beta.view(), out = y.view(),
                      mu = mean.view(), scale = rstd.view();
    if (of_.centered) {
      velo_parallel_layer_norm_args args = VELO_PARALLEL_LAYER_NORM_ARGS_INIT;
      args.group = group, args.x = &in, args.y = &out, args.mean = &mu, args.rstd = &scale;
      args.epsilon = of_.epsilon;
      if (of_.has_gains) args.gamma = &gain, args.beta = &bias;
      return velo_parallel_layer_norm(stream, &args);
    }
    velo_parallel_rms_norm_args args = VELO_PARALLEL_RMS_NORM_ARGS_INIT;
    args.group = group, args.x = &in, args.gamma = &gain, args.y = &out, args.rstd = &scale;
    args.epsilon = of_.epsilon;
    return velo_parallel_rms_norm(stream, &args);
  }
  velo_status gradient(velo_stream stream, velo_group group) const {
    const velo_tensor in = x.view(), gain = gamma.view(), g = dy.view(), out = dx.view(),
                      mu = mean.view(), scale = rstd.view(), gains = dgamma.view(),
                      biases = dbeta.view();
    if (of_.centered) {
      velo_parallel_layer_norm_backward_args args = VELO_PARALLEL_LAYER_NORM_BACKWARD_ARGS_INIT;
      args.group = group, args.x = &in, args.dy = &g, args.mean = &mu, args.rstd = &scale;
      args.dx = &out, args.dgamma = &gains, args.dbeta = &biases;
      args.accumulate = of_.accumulates;
      if (of_.has_gains) args.gamma = &gain;
      return velo_parallel_layer_norm_backward(stream, &args);
    }
    velo_parallel_rms_norm_backward_args args = VELO_PARALLEL_RMS_NORM_BACKWARD_ARGS_INIT;
    args.group = group, args.x = &in, args.dy = &g, args.gamma = &gain, args.rstd = &scale;
    args.dx = &out, args.dgamma = &gains, args.accumulate = of_.accumulates;
    return velo_parallel_rms_norm_backward(stream, &args);
  }
  velo_status run(const rank_of_group& me) const {
    const velo_status done = forward(me.stream, me.group);
    return done == VELO_OK ? gradient(me.stream, me.group) : done;
  }

  // The largest difference from the whole; of the gradient from differences of the whole.
  double error() const {
    double worst = 0;
    const auto hold = [&worst](double got, double wanted, double rounding) {
      const double apart = std::abs(got - wanted) - rounding * std::abs(wanted);
      worst = apart <= worst ? worst : apart;  // NaN stays
    };
    const double half = of_.dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-8
                        : of_.dtype.bits == 16              ? 0x1p-11
                                                            : 0;
    std::vector<double> gains(at(n_)), biases(at(n_));
    for (std::int64_t r = 0; r < of_.rows; ++r) {
      whole_row row(of_, r);
      hold(rstd[r], row.rstd, 0);
      if (of_.centered) hold(mean[r], row.mean, 0x1p-23);
      for (std::int64_t i = 0; i < n_; ++i) {
        const std::size_t own = at(first_ + i);
        hold(y[r * n_ + i], row.y[own], half);
        hold(dx[r * n_ + i], row.slope(first_ + i), half);
        gains[at(i)] += row.dy[own] * (row.x[own] - row.mean) * row.rstd;
        biases[at(i)] += row.dy[own];
      }
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      hold(dgamma[i], gains[at(i)] + (of_.accumulates ? gains_before_[at(i)] : 0), 1e-6);
      if (of_.centered)
        hold(dbeta[i], biases[at(i)] + (of_.accumulates ? biases_before_[at(i)] : 0), 1e-6);
    }
    return worst;
  }
  bool borders_kept() const {
    bool kept = true;
    for (const matrix* one : {&x, &y, &dx, &mean, &rstd, &dgamma, &dbeta})
      kept = kept && one->borders_kept();
    return kept;
  }
  bool same_bits(const norm_rank& other) const {
    return y.same_bits(other.y) && dx.same_bits(other.dx) && dgamma.same_bits(other.dgamma) &&
           dbeta.same_bits(other.dbeta) && same_statistics(other);
  }
  bool same_statistics(const norm_rank& other) const {
    return mean.same_bits(other.mean) && rstd.same_bits(other.rstd);
  }

 private:
  const norm_case& of_;
  const std::int64_t first_, n_;
  std::vector<double> gains_before_, biases_before_;

 public:
  matrix x, y, dy, dx, gamma, beta, mean, rstd, dgamma, dbeta;
};

using norm_ranks = std::vector<std::unique_ptr<norm_rank>>;

norm_ranks ranks_of(const norm_case& of) {
  norm_ranks all;
  for (std::size_t r = 0; r < of.widths.size(); ++r)
    all.push_back(std::make_unique<norm_rank>(of, static_cast<int>(r)));
  return all;
}

std::vector<norm_case> cases_of(int ranks) {
  std::vector<norm_case> all(4);
  all[0].widths.assign(at(ranks), 6);
  all[1].widths.assign(at(ranks), 3);  // uneven, and a rank without elements
  all[1].widths[0] = 19, all[1].widths.back() = ranks > 1 ? 0 : 19;
  all[1].accumulates = true;
  all[2].widths.assign(at(ranks), 8);
  all[2].rows = 40;
  all[3].widths.assign(at(ranks), 2);
  all[3].widths.back() = 600;  // more than a block
  all[3].rows = 1;
  // A layer_norm of each, one of them without gamma and beta.
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().centered = true;
    all.back().has_gains = i != 2;
  }
  return all;
}

}  // namespace

TEST_CASE("norms of cut rows are those of whole rows, and so are their gradients") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    for (norm_case of : cases_of(count))
      for (const velo_dtype dtype : {f32, bf16, f16}) {
        of.dtype = dtype;
        norm_ranks first;
        for (const char* level : {"2", "1", "0"}) {
          set_all(all, "level", level);
          norm_ranks now = ranks_of(of);
          INFO(count << " ranks, level " << level << ", centered " << of.centered << ", "
                     << int{dtype.code} << "." << int{dtype.bits} << ", width " << of.width());
          all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
          for (const auto& one : now) {
            if (*level != '1') CHECK(one->error() <= 1e-5);
            CHECK(one->borders_kept());
            CHECK(one->same_statistics(*now[0]));
          }
          for (std::size_t r = 0; *level == '1' && r < now.size(); ++r)
            CHECK(now[r]->same_bits(*first[r]));
          first = std::move(now);
        }
      }
  }
}

TEST_CASE("a mean far from 0 costs a cut layer_norm no digits") {
  const local_ranks all(3);
  norm_case of = cases_of(3)[4];
  of.far = 4096;  // squares around 0 would have 24 bits of it
  const norm_ranks now = ranks_of(of);
  all.require(
      [&](const rank_of_group& me) { return now[at(me.rank)]->forward(me.stream, me.group); });
  for (std::int64_t r = 0; r < of.rows; ++r) {
    const whole_row whole(of, r);
    CHECK(std::abs(now[0]->rstd[r] / whole.rstd - 1) <= 1e-6);
    CHECK(std::abs(now[0]->y[r * 6] - whole.y[0]) <= 1e-6);
  }
}

TEST_CASE("processes and hosts compute the norms of threads") {
  const ranks_on_hosts hosts("0011");
  const local_ranks threads(4);
  for (const norm_case& of : cases_of(4)) {
    const norm_ranks by_hosts = ranks_of(of), by_threads = ranks_of(of);
    hosts.require([&](const rank_of_group& me) { return by_hosts[at(me.rank)]->run(me); });
    threads.require([&](const rank_of_group& me) { return by_threads[at(me.rank)]->run(me); });
    for (std::size_t r = 0; r < 4; ++r) CHECK(by_hosts[r]->same_bits(*by_threads[r]));
  }
  processes ranks;
  ranks.start_all(3, group_desc(), [](const rank_of_group& me) {
    double worst = 0;
    for (const norm_case& of : cases_of(3)) {
      const norm_rank mine(of, me.rank);
      const velo_status done = mine.run(me);
      if (done != VELO_OK) return ending_of(done, 0);
      worst = std::max(worst, mine.error());
    }
    return ending_of(VELO_OK, worst <= 1e-5 ? 1 : 0);
  });
  for (const ending& one : ranks.wait()) {
    CHECK_OK(one);
    CHECK(one.value == 1);
  }
}

TEST_CASE("ranks with another epsilon, number of rows, dtype, norm or pass hear of it") {
  norm_case of = cases_of(2)[0];
  std::vector<norm_case> others(4, of);
  others[0].epsilon = 1e-4, others[1].rows = 4, others[2].dtype = bf16, others[3].centered = true;
  others.push_back(of);  // the gradient
  for (std::size_t i = 0; i < others.size(); ++i) {
    const local_ranks all(2);
    const norm_rank first(of, 0), last(others[i], 1), before(of, 0);
    for (const call_record& one : all.run([&](const rank_of_group& me) {
           if (me.rank == 0) return first.forward(me.stream, me.group);
           return i == 4 ? last.gradient(me.stream, me.group) : last.forward(me.stream, me.group);
         }))
      CHECK(one.code == VELO_ERR_PEER);
    CHECK(first.same_bits(before));
  }
}

TEST_CASE("parallel norms refuse what does not fit, by name, and keep the group") {
  const local_ranks all(2);
  const norm_case of = cases_of(2)[0];
  const norm_rank one(of, 0);
  const velo_tensor x = one.x.view(), gamma = one.gamma.view(), y = one.y.view(),
                    rstd = one.rstd.view();
  using args = velo_parallel_rms_norm_args;
  args valid = VELO_PARALLEL_RMS_NORM_ARGS_INIT;
  valid.group = all.group(0), valid.x = &x, valid.gamma = &gamma, valid.y = &y;
  check_refusals<args>(
      valid, [&](const args& a) { return velo_parallel_rms_norm(all.stream(0), &a); },
      {{[](args& a) { a.gamma = nullptr; }, VELO_ERR_NULL, "args.gamma"},
       {[&](args& a) { a.gamma = &rstd; }, VELO_ERR_SHAPE, "args.gamma.shape"},
       {[&](args& a) { a.y = &gamma; }, VELO_ERR_RANK, "args.y.shape"},
       {[](args& a) { a.epsilon = -1; }, VELO_ERR_ARGUMENT, "args.epsilon"},
       {[&](args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  using layer_args = velo_parallel_layer_norm_backward_args;
  layer_args gradient = VELO_PARALLEL_LAYER_NORM_BACKWARD_ARGS_INIT;
  gradient.group = all.group(0), gradient.x = &x, gradient.dy = &x, gradient.dx = &y;
  gradient.mean = gradient.rstd = &rstd;
  check_refusals<layer_args>(
      gradient,
      [&](const layer_args& a) { return velo_parallel_layer_norm_backward(all.stream(0), &a); },
      {{[&](layer_args& a) { a.dy = &gamma; }, VELO_ERR_RANK, "args.dy.shape"},
       {[&](layer_args& a) { a.mean = &gamma; }, VELO_ERR_RANK, "args.mean.shape"},
       {[&](layer_args& a) { a.dbeta = &rstd; }, VELO_ERR_RANK, "args.dbeta.shape"},
       {[](layer_args& a) { a.rstd = nullptr; }, VELO_ERR_NULL, "args.rstd"}});
  all.require_barrier();
}
