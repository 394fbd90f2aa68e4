// parallel_rms_norm, parallel_layer_norm and their gradients: rows whose elements are cut between
// ranks, as 2D tensor parallelism cuts the hidden dimension.
//
// The kernels of the whole norms (ops/norm) take the sums of this rank's parts of the rows; an
// all_gather brings those of all ranks to each, which adds them in rank order in double, so that
// all have the same bits; then the same kernels write, given the numbers of whole rows. A
// layer_norm exchanges sums of squares around each rank's own mean: those around 0 would cancel
// where the mean is large. Cost: two reads of the inputs, the second from memory again where they
// exceed the caches, one write, 8 or 16 bytes a row and rank.
#include <cmath>
#include <cstring>

#include "ops/norm/layer_norm.hpp"
#include "ops/norm/norm_rows.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/operator/kernels_at.hpp"
#include "sched/overlap/product.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using core::at;
using ops::operator==;

struct norm_kernel {
  bool plain;
};
constexpr norm_kernel fused{false}, reference{true};
constexpr ops::kernel_entry entries[] = {{"fused", core::isa::scalar, &fused, VELO_DEVICE_CPU, 1},
                                         {"reference", core::isa::scalar, &reference}};
constexpr ops::kernel_list kernel_list{entries, 2};

struct problem {
  membership in;
  const char* function;
  ops::norm_problem norm;   // this rank's part
  bool centered;            // layer_norm
  std::uint64_t signature;  // of what must be the same on all ranks

  int sums() const { return centered ? 2 : 1; }  // of a row
  // The numbers that a rank sends: its width, and the sums of each row.
  std::int64_t sent() const { return 1 + norm.rows * sums(); }
};

problem problem_of(velo_group group, const velo_tensor& x, const velo_tensor* gamma, bool centered,
                   double epsilon, const char* function) {
  problem p{};
  p.in = membership_in(group, "args.group");
  p.function = function;
  p.norm = ops::norm_problem_of(x, gamma);
  p.centered = centered;
  std::memcpy(&p.signature, &epsilon, sizeof epsilon);
  for (const char* letter = function; *letter != 0; ++letter)
    p.signature = comm::mixed(p.signature + static_cast<std::uint64_t>(*letter));
  p.signature = comm::mixed(p.signature + (std::uint64_t{x.dtype.code} << 8 | x.dtype.bits));
  return p;
}

comm::operation exchange_of(const problem& p) {
  comm::operation what;
  what.function = p.function;
  what.terms.kind = comm::collective::all_gather;
  what.terms.in_code = what.terms.out_code = VELO_DTYPE_FLOAT;
  what.terms.in_bits = what.terms.out_bits = 64;
  what.terms.count = p.sent();
  what.terms.require_same(p.signature);
  what.set_count(p.sent());
  what.out_count = p.sent() * p.in.size();
  return what;
}

template <class Args>
void enter(const Args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", exchange_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, exchange_of(p));
}

// ---- sums of all ranks ----

// What each rank sent: its width, and for each row a product (of squares, or of the gradient) and,
// centered, a sum.
class row_sums {
 public:
  row_sums(const double* all, const problem& p) : all_(all), p_(p) {
    for (int r = 0; r < p.in.size(); ++r) width_ += width(r);
  }
  ops::row_statistics statistics(std::int64_t row, double epsilon) const {
    const double mean = p_.centered ? total(row, 1) / width_ : 0;
    const double squares = p_.centered ? squares_around(row, mean) : total(row, 0);
    return {mean, 1 / std::sqrt(squares / width_ + epsilon)};
  }
  ops::row_gradient_terms gradient_means(std::int64_t row) const {
    return {total(row, 0) / width_, p_.centered ? total(row, 1) / width_ : 0};
  }

 private:
  double width(int rank) const { return all_[rank * p_.sent()]; }
  const double* of(int rank, std::int64_t row) const {
    return all_ + rank * p_.sent() + 1 + row * p_.sums();
  }
  double total(std::int64_t row, int which) const {
    double all = 0;
    for (int r = 0; r < p_.in.size(); ++r) all += of(r, row)[which];
    return all;
  }
  // Each rank has the squares around its own mean.
  double squares_around(std::int64_t row, double mean) const {
    double all = 0;
    for (int r = 0; r < p_.in.size(); ++r) {
      if (width(r) == 0) continue;
      const double apart = of(r, row)[1] / width(r) - mean;
      all += of(r, row)[0] + width(r) * apart * apart;
    }
    return all;
  }

  const double* all_;
  const problem& p_;
  double width_ = 0;
};

// sum(own): writes this rank's sums of each row. write(row_sums).
template <class Sum, class Write>
void in_two_passes(const problem& p, core::execution& on, const Sum& sum, const Write& write) {
  const auto passes = [&](core::arena& scratch, comm::transport* link) {
    auto* own = scratch.take<double>(at(p.sent()));
    own[0] = static_cast<double>(p.norm.n);
    in_turn(on, [&](core::execution& turn) { sum(own + 1, turn); });
    double* all = own;
    if (link != nullptr) {
      all = scratch.take<double>(at(p.sent() * p.in.size()));
      comm::operation what = exchange_of(p);
      what.in = own, what.out = all;
      link->run(what, on);
    }
    in_turn(on, [&](core::execution& turn) { write(row_sums(all, p), turn); });
  };
  if (p.in.group == nullptr)
    return in_turn(on, [&](core::execution& turn) { passes(turn.scratch, nullptr); });
  p.in.group->serve(p.in.ticket, exchange_of(p),
                    [&](comm::transport& link, core::arena& scratch) { passes(scratch, &link); });
}

// body(first, count) for slices of rows, each a task.
template <class Body>
void each_slice(const problem& p, const velo_tensor& x, core::execution& on, const Body& body) {
  const ops::row_slices slices =
      ops::slice_rows(p.norm.rows, p.norm.n * ops::element_bytes(x.dtype));
  on.threads.slices(slices.tasks(),
                    [&](std::int64_t task, int) { body(slices.begin(task), slices.count(task)); });
}

// number(row) of all rows.
template <class Number>
auto* of_each_row(const problem& p, core::execution& turn, const Number& number) {
  auto* all = turn.scratch.take<decltype(number(0))>(at(p.norm.rows));
  for (std::int64_t r = 0; r < p.norm.rows; ++r) all[r] = number(r);
  return all;
}

// gamma or beta as float32, `otherwise` where it is left out. Without rows there may be no room for
// n elements.
const float* gains_of(const velo_tensor* gain, const problem& p, float otherwise,
                      core::execution& turn) {
  return p.norm.rows == 0 ? nullptr : ops::widened_or(gain, p.norm.n, otherwise, turn);
}

const ops::norm_kernels& kernels_of(const problem& p, const norm_kernel& kernel, core::isa isa) {
  return ops::kernels_at<ops::norm_kernels>(
      p.centered ? ops::layer_norm_kernel_list : ops::rms_norm_kernel_list,
      kernel.plain ? core::isa::scalar : isa);
}

// ---- forward ----

// The fields of both forward operators.
struct forward_call {
  const velo_tensor *x, *gamma, *beta, *y, *mean, *rstd;
  double epsilon;
};

template <class T>
void run_typed(const forward_call& a, const problem& p, const norm_kernel& kernel,
               core::execution& on) {
  const ops::norm_kernels& kernels = kernels_of(p, kernel, on.isa);
  const auto sum = [&](double* own, core::execution& turn) {
    each_slice(p, *a.x, turn, [&](std::int64_t first, std::int64_t count) {
      kernels.sums(ops::norm_sums<T>{ops::data<const T>(a.x) + first * p.norm.n,
                                     own + first * p.sums(), count, p.norm.n,
                                     static_cast<float>(a.epsilon)});
    });
  };
  const auto write = [&](const row_sums& all, core::execution& turn) {
    const ops::norm_gains by{gains_of(a.gamma, p, 1, turn),
                             p.centered ? gains_of(a.beta, p, 0, turn) : nullptr};
    const auto* known =
        of_each_row(p, turn, [&](std::int64_t r) { return all.statistics(r, a.epsilon); });
    float* mean = a.mean == nullptr ? nullptr : ops::data<float>(a.mean);
    ops::normalize<T>(a, p.norm, by, mean, kernels, turn, known);
  };
  in_two_passes(p, on, sum, write);
}

void run(const forward_call& a, const problem& p, const norm_kernel& kernel, core::execution& on) {
  ops::with_element_type(a.x->dtype, [&](auto t) { run_typed<decltype(t)>(a, p, kernel, on); });
}

using rms_args = velo_parallel_rms_norm_args;
using layer_args = velo_parallel_layer_norm_args;

void infer_rms(const rms_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a.group, *a.x, a.gamma, false, a.epsilon, "velo_parallel_rms_norm");
  outputs.like(a.y, *a.x);
  const ops::statistics_shape statistics(*a.x, p.norm.normalized);
  outputs.set(a.rstd, ops::f32, a.x->ndim, statistics.sizes);
}

void infer_layer(const layer_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a.group, *a.x, a.gamma, true, a.epsilon, "velo_parallel_layer_norm");
  if (a.beta != nullptr) {
    ops::require_gain(*a.beta, "beta", *a.x);
    ops::require_rank(*a.beta, "beta", p.norm.normalized, p.norm.normalized);
  }
  outputs.like(a.y, *a.x);
  const ops::statistics_shape statistics(*a.x, p.norm.normalized);
  outputs.set(a.mean, ops::f32, a.x->ndim, statistics.sizes);
  outputs.set(a.rstd, ops::f32, a.x->ndim, statistics.sizes);
}

void run_rms(const rms_args& a, const problem& p, const norm_kernel& kernel, core::execution& on) {
  run(forward_call{a.x, a.gamma, nullptr, a.y, nullptr, a.rstd, a.epsilon}, p, kernel, on);
}
void run_layer(const layer_args& a, const problem& p, const norm_kernel& kernel,
               core::execution& on) {
  run(forward_call{a.x, a.gamma, a.beta, a.y, a.mean, a.rstd, a.epsilon}, p, kernel, on);
}

// ---- gradient ----

// The fields of both gradients.
struct gradient_call {
  const velo_tensor *dy, *x, *gamma, *mean, *rstd, *dx, *dgamma, *dbeta;
  std::int64_t accumulate;
};

template <class T>
void run_typed(const gradient_call& a, const problem& p, const norm_kernel& kernel,
               core::execution& on) {
  const ops::norm_kernels& kernels = kernels_of(p, kernel, on.isa);
  const float* mean = a.mean == nullptr ? nullptr : ops::data<const float>(a.mean);
  const auto sum = [&](double* own, core::execution& turn) {
    const float* gamma = gains_of(a.gamma, p, 1, turn);
    each_slice(p, *a.x, turn, [&](std::int64_t first, std::int64_t count) {
      kernels.gradient_sums(ops::norm_gradient_sums<T>{
          ops::data<const T>(a.dy) + first * p.norm.n, ops::data<const T>(a.x) + first * p.norm.n,
          gamma, mean == nullptr ? nullptr : mean + first, ops::data<const float>(a.rstd) + first,
          own + first * p.sums(), count, p.norm.n});
    });
  };
  const auto write = [&](const row_sums& all, core::execution& turn) {
    const auto* known = of_each_row(p, turn, [&](std::int64_t r) { return all.gradient_means(r); });
    ops::normalize_backward<T>(a, p.norm, gains_of(a.gamma, p, 1, turn), mean, a.dbeta, kernels,
                               turn, known);
  };
  in_two_passes(p, on, sum, write);
}

void run(const gradient_call& a, const problem& p, const norm_kernel& kernel, core::execution& on) {
  ops::with_element_type(a.x->dtype, [&](auto t) { run_typed<decltype(t)>(a, p, kernel, on); });
}

using rms_gradient_args = velo_parallel_rms_norm_backward_args;
using layer_gradient_args = velo_parallel_layer_norm_backward_args;

void infer_rms_gradient(const rms_gradient_args& a, problem& p, ops::output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  p = problem_of(a.group, x, a.gamma, false, 0, "velo_parallel_rms_norm_backward");
  ops::require_like(*a.dy, "dy", x, "x");
  const ops::statistics_shape statistics(x, p.norm.normalized);
  ops::require_shape(*a.rstd, "rstd", x.ndim, statistics.sizes);
  outputs.like(a.dx, x);
  outputs.like(a.dgamma, *a.gamma, ops::f32);
}

void infer_layer_gradient(const layer_gradient_args& a, problem& p, ops::output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  p = problem_of(a.group, x, a.gamma, true, 0, "velo_parallel_layer_norm_backward");
  ops::require_like(*a.dy, "dy", x, "x");
  const ops::statistics_shape statistics(x, p.norm.normalized);
  ops::require_shape(*a.mean, "mean", x.ndim, statistics.sizes);
  ops::require_shape(*a.rstd, "rstd", x.ndim, statistics.sizes);
  outputs.like(a.dx, x);
  const std::int64_t* normalized = x.shape + (x.ndim - p.norm.normalized);
  outputs.set(a.dgamma, ops::f32, p.norm.normalized, normalized);
  outputs.set(a.dbeta, ops::f32, p.norm.normalized, normalized);
}

void run_rms_gradient(const rms_gradient_args& a, const problem& p, const norm_kernel& kernel,
                      core::execution& on) {
  run(gradient_call{a.dy, a.x, a.gamma, nullptr, a.rstd, a.dx, a.dgamma, nullptr, a.accumulate}, p,
      kernel, on);
}
void run_layer_gradient(const layer_gradient_args& a, const problem& p, const norm_kernel& kernel,
                        core::execution& on) {
  run(gradient_call{a.dy, a.x, a.gamma, a.mean, a.rstd, a.dx, a.dgamma, a.dbeta, a.accumulate}, p,
      kernel, on);
}

void rms_gradient_cost(const rms_gradient_args& a, const problem&, ops::op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += ops::bytes_of(a.dgamma);
}
void layer_gradient_cost(const layer_gradient_args& a, const problem&, ops::op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += ops::bytes_of(a.dgamma) + ops::bytes_of(a.dbeta);
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def parallel_rms_norm_operator =
    define_waiting<sched::infer_rms, sched::run_rms, nullptr, sched::enter<sched::rms_args>,
                   sched::drop>(sched::kernel_list);
extern const operator_def parallel_layer_norm_operator =
    define_waiting<sched::infer_layer, sched::run_layer, nullptr, sched::enter<sched::layer_args>,
                   sched::drop>(sched::kernel_list);
extern const operator_def parallel_rms_norm_backward_operator = with_cost<sched::rms_gradient_cost>(
    define_waiting<sched::infer_rms_gradient, sched::run_rms_gradient, nullptr,
                   sched::enter<sched::rms_gradient_args>, sched::drop>(sched::kernel_list));
extern const operator_def parallel_layer_norm_backward_operator =
    with_cost<sched::layer_gradient_cost>(
        define_waiting<sched::infer_layer_gradient, sched::run_layer_gradient, nullptr,
                       sched::enter<sched::layer_gradient_args>, sched::drop>(sched::kernel_list));

}  // namespace velo::ops
