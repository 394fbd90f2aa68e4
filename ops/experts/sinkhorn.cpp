// sinkhorn and its gradient as operators: scores whose experts have as much weight as each other.
//
//   y[t, e] = rows[t] exp(logits[t, e]) columns[e]
//
// From columns = 1 on, rows become 1 / (T (sum_e exp(logits) columns + eps)) and columns
// 1 / (E (sum_t exp(logits) rows + eps)), until the mean change of the columns is within the
// tolerance. The gradient goes back through all these rounds, whose columns it keeps; rows follow
// from them. The forward keeps the columns of two rounds. All in double; sums over tokens have one
// partial result a slice, added in the order of the slices, whose number depends on the sizes
// alone. Cost: an exponential an element, and for each round a pass over T E numbers, of the
// gradient two.
#include <algorithm>
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_experts.h"

namespace velo::ops {
namespace {

constexpr double eps = 1e-8;  // as in Megatron-LM

struct sinkhorn_kernel {};
constexpr sinkhorn_kernel plain{};
constexpr kernel_entry entries[] = {{"reference", core::isa::scalar, &plain}};
constexpr kernel_list sinkhorn_kernels{entries, 1};

struct balance_problem {
  std::int64_t tokens, experts, rounds;
  double tolerance;
};

template <class Args>
balance_problem problem_of(const Args& a) {
  require_rank(*a.logits, "logits", 2, 2);
  return {a.logits->shape[0], a.logits->shape[1], a.max_rounds, a.tolerance};
}

void infer(const velo_sinkhorn_args& a, balance_problem& p, output_shapes& outputs) {
  p = problem_of(a);
  outputs.like(a.y, *a.logits, f32);
}

void infer_backward(const velo_sinkhorn_backward_args& a, balance_problem& p,
                    output_shapes& outputs) {
  p = problem_of(a);
  require_shape(*a.dy, "dy", 2, a.logits->shape);
  outputs.like(a.dlogits, *a.logits);
}

class balancing {
 public:
  enum class kept { two_rounds, all_rounds };

  balancing(const balance_problem& p, const velo_tensor& logits, kept what, core::execution& on)
      : p_(p),
        on_(on),
        kept_(what == kept::all_rounds ? p.rounds + 1 : 2),
        slices_(slice_rows_into(p.tokens, 64, 32)),
        powers_(take(p.tokens * p.experts)),
        rows_(take(p.tokens)),
        sums_(take(slices_.tasks() * p.experts)),
        columns_(on.scratch.take<double*>(static_cast<std::size_t>(kept_))) {
    with_element_type(logits.dtype, [&](auto element) {
      const auto* x = data<const decltype(element)>(&logits);
      on.threads.slices(slices_.tasks(), [&](std::int64_t task, int) {
        const std::int64_t first = slices_.begin(task) * p_.experts;
        const std::int64_t end = first + slices_.count(task) * p_.experts;
        for (std::int64_t i = first; i < end; ++i)
          powers_[i] = std::exp(static_cast<double>(simd::to_float(x[i])));
      });
    });
  }

  // Rounds until the columns stay as they are.
  void balance() {
    columns_[0] = take(p_.experts);
    std::fill_n(columns_[0], p_.experts, 1.0);
    double change = INFINITY;
    while (change > p_.tolerance && done_ < p_.rounds) {
      const double* before = columns(done_);
      if (++done_ < kept_) columns_[done_] = take(p_.experts);
      double* after = columns(done_);
      each_row([&](std::int64_t t, double* sums) {
        rows_[t] = row_factor(t, before);
        for (std::int64_t e = 0; e < p_.experts; ++e) sums[e] += rows_[t] * power(t, e);
      });
      add_sums(after);
      change = 0;
      for (std::int64_t e = 0; e < p_.experts; ++e) {
        after[e] = 1 / (static_cast<double>(p_.experts) * (after[e] + eps));
        change += std::abs(after[e] - before[e]);
      }
      change /= static_cast<double>(p_.experts);
    }
  }

  void store(float* y) {
    each_row([&](std::int64_t t, double*) {
      for (std::int64_t e = 0; e < p_.experts; ++e)
        y[t * p_.experts + e] = static_cast<float>(rows_[t] * power(t, e) * columns(done_)[e]);
    });
  }

  // dpowers: the gradient of exp(logits), of so many numbers.
  void gradient(const float* dy, double* dpowers) {
    const std::int64_t n = p_.experts;
    double *drows = take(p_.tokens), *dcolumns = take(n), *dsums = take(n);
    const double* last = columns_[done_];
    each_row([&](std::int64_t t, double* sums) {
      drows[t] = 0;
      for (std::int64_t e = 0; e < n; ++e) {
        const double d = static_cast<double>(dy[t * n + e]);
        dpowers[t * n + e] = d * rows_[t] * last[e];
        drows[t] += d * power(t, e) * last[e];
        sums[e] += d * power(t, e) * rows_[t];
      }
    });
    add_sums(dcolumns);
    for (std::int64_t round = done_; round > 0; --round) {
      const double *after = columns_[round], *before = columns_[round - 1];
      for (std::int64_t e = 0; e < n; ++e)
        dsums[e] = -dcolumns[e] * static_cast<double>(n) * after[e] * after[e];
      each_row([&](std::int64_t t, double* sums) {
        const double row = row_factor(t, before);
        for (std::int64_t e = 0; e < n; ++e) drows[t] += power(t, e) * dsums[e];
        const double d = -drows[t] * static_cast<double>(p_.tokens) * row * row;
        for (std::int64_t e = 0; e < n; ++e) {
          dpowers[t * n + e] += row * dsums[e] + d * before[e];
          sums[e] += d * power(t, e);
        }
        drows[t] = 0;
      });
      add_sums(dcolumns);
    }
  }

  template <class T>
  void store_gradient(const double* dpowers, T* dlogits) {
    each_row([&](std::int64_t t, double*) {
      for (std::int64_t i = t * p_.experts; i < (t + 1) * p_.experts; ++i)
        simd::assign(dlogits[i], dpowers[i] * powers_[i]);
    });
  }

  double* take(std::int64_t count) const {
    return on_.scratch.take<double>(static_cast<std::size_t>(count));
  }

 private:
  double* columns(std::int64_t round) const { return columns_[round % kept_]; }
  double power(std::int64_t t, std::int64_t e) const { return powers_[t * p_.experts + e]; }

  double row_factor(std::int64_t t, const double* columns) const {
    double sum = 0;
    for (std::int64_t e = 0; e < p_.experts; ++e) sum += power(t, e) * columns[e];
    return 1 / (static_cast<double>(p_.tokens) * (sum + eps));
  }

  // Calls f(token, sums of its slice, one an expert, which begin at 0).
  template <class F>
  void each_row(const F& f) {
    on_.threads(slices_.tasks(), [&](std::int64_t task, int) {
      double* sums = sums_ + task * p_.experts;
      std::fill_n(sums, p_.experts, 0.0);
      for (std::int64_t t = slices_.begin(task); t < slices_.begin(task) + slices_.count(task); ++t)
        f(t, sums);
    });
  }

  void add_sums(double* to) const {
    std::fill_n(to, p_.experts, 0.0);
    for (std::int64_t s = 0; s < slices_.tasks(); ++s)
      for (std::int64_t e = 0; e < p_.experts; ++e) to[e] += sums_[s * p_.experts + e];
  }

  const balance_problem& p_;
  core::execution& on_;
  const std::int64_t kept_;  // rounds whose columns are kept
  const row_slices slices_;
  double *powers_, *rows_;
  double* sums_;      // one a slice and expert
  double** columns_;  // of the kept rounds; of round 0 they are 1
  std::int64_t done_ = 0;
};

void run(const velo_sinkhorn_args& a, const balance_problem& p, const sinkhorn_kernel&,
         core::execution& on) {
  balancing all(p, *a.logits, balancing::kept::two_rounds, on);
  all.balance();
  all.store(data<float>(a.y));
}

void backward(const velo_sinkhorn_backward_args& a, const balance_problem& p,
              const sinkhorn_kernel&, core::execution& on) {
  balancing all(p, *a.logits, balancing::kept::all_rounds, on);
  all.balance();
  double* dpowers = all.take(p.tokens * p.experts);
  all.gradient(data<const float>(a.dy), dpowers);
  with_element_type(a.logits->dtype, [&](auto element) {
    all.store_gradient(dpowers, data<decltype(element)>(a.dlogits));
  });
}

}  // namespace

extern const operator_def sinkhorn_operator = define<infer, run>(sinkhorn_kernels);
extern const operator_def sinkhorn_backward_operator =
    define<infer_backward, backward>(sinkhorn_kernels);

}  // namespace velo::ops
