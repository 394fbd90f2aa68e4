// parallel_rms_norm, parallel_layer_norm and their gradients: rows whose elements are cut between
// ranks, as 2D tensor parallelism cuts the hidden dimension.
//
// A pass over x, or over x and dy, gives one or two sums a row; an all_gather brings those of all
// ranks to each, which adds them in rank order, so that all have the same bits; a second pass
// writes. Arithmetic is in double, of elements that are widened to float32 a block at a time, so
// the loops exist once. A layer_norm exchanges sums of squares around each rank's own mean: those
// around 0 would cancel where the mean is large. Not vectorized by hand: these operators are
// secondary. Cost: two reads of the inputs, one write, 8 or 16 bytes a row and rank.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/elementwise/cast.hpp"
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

// ---- elements ----

constexpr std::int64_t block = 512;  // elements that are widened at a time
using buffer = float[block];

// Rows of a tensor, read and written as float32.
class rows_of {
 public:
  rows_of(const velo_tensor* t, std::int64_t n, bool plain, core::isa isa)
      : t_(*t),
        bytes_(t->dtype.bits / 8),
        n_(n),
        casts_(ops::kernels_at<ops::cast_kernels>(ops::cast_kernel_list,
                                                  plain ? core::isa::scalar : isa)) {}

  // Elements of a row from `first` on: in place, or widened into `to`.
  const float* read(std::int64_t row, std::int64_t first, std::int64_t count, buffer& to) const {
    char* from = place(row, first);
    if (t_.dtype == ops::bf16)
      casts_.bf16_to_f32({reinterpret_cast<simd::bf16*>(from), to, count, false});
    else if (t_.dtype == ops::f16)
      casts_.f16_to_f32({reinterpret_cast<simd::f16*>(from), to, count, false});
    else
      return reinterpret_cast<float*>(from);
    return to;
  }
  void write(std::int64_t row, std::int64_t first, std::int64_t count, const buffer& from) const {
    char* to = place(row, first);
    if (t_.dtype == ops::bf16)
      casts_.f32_to_bf16({from, reinterpret_cast<simd::bf16*>(to), count, false});
    else if (t_.dtype == ops::f16)
      casts_.f32_to_f16({from, reinterpret_cast<simd::f16*>(to), count, false});
    else
      std::memcpy(to, from, sizeof(float) * at(count));
  }

 private:
  char* place(std::int64_t row, std::int64_t first) const {
    return ops::data<char>(&t_) + (row * n_ + first) * bytes_;
  }
  const velo_tensor& t_;
  const std::int64_t bytes_, n_;
  const ops::cast_kernels& casts_;
};

// body(first, count) for the blocks of a row.
template <class Body>
void each_block(std::int64_t n, const Body& body) {
  for (std::int64_t first = 0; first < n; first += block) body(first, std::min(block, n - first));
}

// The sum of term(i) in double, in an order that depends on n alone.
template <class Term>
double sum_of(std::int64_t n, const Term& term) {
  constexpr int lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  for (; i < n; ++i) sums[0] += term(i);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// ---- sums of all ranks ----

// What each rank sent: its width, and for each row a product (of squares, or of the gradient) and,
// centered, a sum.
class row_sums {
 public:
  row_sums(const double* all, const problem& p) : all_(all), p_(p) {
    for (int r = 0; r < p.in.size(); ++r) width_ += width(r);
  }
  double width() const { return width_; }
  double sum(std::int64_t row) const {
    double all = 0;
    for (int r = 0; r < p_.in.size(); ++r) all += of(r, row)[1];
    return all;
  }
  double products(std::int64_t row) const {
    double all = 0;
    for (int r = 0; r < p_.in.size(); ++r) all += of(r, row)[0];
    return all;
  }
  // Of squares around `mean`, where each rank has those around its own.
  double squares(std::int64_t row, double mean) const {
    double all = 0;
    for (int r = 0; r < p_.in.size(); ++r) {
      if (width(r) == 0) continue;
      const double apart = of(r, row)[1] / width(r) - mean;
      all += of(r, row)[0] + width(r) * apart * apart;
    }
    return all;
  }

 private:
  double width(int rank) const { return all_[rank * p_.sent()]; }
  const double* of(int rank, std::int64_t row) const {
    return all_ + rank * p_.sent() + 1 + row * p_.sums();
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

// body(row) for all rows, a task for each slice.
template <class Body>
void each_row(const problem& p, const velo_tensor& x, core::execution& on, const Body& body) {
  const ops::row_slices slices =
      ops::slice_rows(p.norm.rows, p.norm.n * ops::element_bytes(x.dtype));
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t r = first; r < first + slices.count(task); ++r) body(r);
  });
}

// gamma as float32, 1 where it is left out. Without rows there may be no room for n elements.
const float* gains_of(const velo_tensor* gamma, const problem& p, core::execution& turn) {
  return p.norm.rows == 0 ? nullptr : ops::widened_or(gamma, p.norm.n, 1, turn);
}

// ---- forward ----

// The fields of both forward operators.
struct forward_call {
  const velo_tensor *x, *gamma, *beta, *y, *mean, *rstd;
  double epsilon;
};

void sum_row(const rows_of& x, const problem& p, std::int64_t row, double* to) {
  const std::int64_t n = p.norm.n;
  buffer wide;
  double sum = 0, squares = 0;
  if (p.centered) {
    each_block(n, [&](std::int64_t first, std::int64_t count) {
      const float* a = x.read(row, first, count, wide);
      sum += sum_of(count, [a](std::int64_t i) { return static_cast<double>(a[i]); });
    });
    to[1] = sum;
  }
  const double mean = n == 0 ? 0 : sum / static_cast<double>(n);
  each_block(n, [&](std::int64_t first, std::int64_t count) {
    const float* a = x.read(row, first, count, wide);
    squares += sum_of(count, [a, mean](std::int64_t i) {
      const double apart = static_cast<double>(a[i]) - mean;
      return apart * apart;
    });
  });
  to[0] = squares;
}

void run(const forward_call& a, const problem& p, const norm_kernel& kernel, core::execution& on) {
  const std::int64_t n = p.norm.n;
  const rows_of x(a.x, n, kernel.plain, on.isa);
  const auto sum = [&](double* own, core::execution& turn) {
    each_row(p, *a.x, turn, [&](std::int64_t r) { sum_row(x, p, r, own + r * p.sums()); });
  };
  const auto write = [&](const row_sums& all, core::execution& turn) {
    const float* gamma = gains_of(a.gamma, p, turn);
    const float* beta =
        a.beta == nullptr || p.norm.rows == 0 ? nullptr : ops::widened(*a.beta, turn);
    const rows_of y(a.y, n, kernel.plain, on.isa);
    each_row(p, *a.x, turn, [&](std::int64_t r) {
      const double mean = p.centered ? all.sum(r) / all.width() : 0;
      const double squares = p.centered ? all.squares(r, mean) : all.products(r);
      const double rstd = 1 / std::sqrt(squares / all.width() + a.epsilon);
      if (a.mean != nullptr) ops::data<float>(a.mean)[r] = static_cast<float>(mean);
      if (a.rstd != nullptr) ops::data<float>(a.rstd)[r] = static_cast<float>(rstd);
      buffer wide, made;
      each_block(n, [&](std::int64_t first, std::int64_t count) {
        const float* from = x.read(r, first, count, wide);
        for (std::int64_t i = 0; i < count; ++i)
          made[i] = static_cast<float>((static_cast<double>(from[i]) - mean) * rstd *
                                           static_cast<double>(gamma[first + i]) +
                                       (beta == nullptr ? 0.0 : double{beta[first + i]}));
        y.write(r, first, count, made);
      });
    });
  };
  in_two_passes(p, on, sum, write);
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
  bool accumulate;
};

// A running gradient.
struct gradient_rows {
  const gradient_call& a;
  const problem& p;
  const rows_of x, dy, dx;

  double mean(std::int64_t row) const {
    return a.mean == nullptr ? 0 : double{ops::data<const float>(a.mean)[row]};
  }
  double rstd(std::int64_t row) const { return double{ops::data<const float>(a.rstd)[row]}; }
  void sum(std::int64_t row, const float* gamma, double* to) const;
  void write(std::int64_t row, const float* gamma, const row_sums& all, float* dgamma,
             float* dbeta) const;
};

void gradient_rows::sum(std::int64_t row, const float* gamma, double* to) const {
  const double middle = mean(row);
  double dot = 0, sum = 0;
  buffer wide_x, wide_dy;
  each_block(p.norm.n, [&](std::int64_t first, std::int64_t count) {
    const float *from = x.read(row, first, count, wide_x), *g = dy.read(row, first, count, wide_dy),
                *gain = gamma + first;
    dot += sum_of(count, [=](std::int64_t i) {
      return double{g[i]} * double{gain[i]} * (double{from[i]} - middle);
    });
    if (p.centered)
      sum += sum_of(count, [=](std::int64_t i) { return double{g[i]} * double{gain[i]}; });
  });
  to[0] = dot;
  if (p.centered) to[1] = sum;
}

// dgamma, dbeta: the partial sums of a slice, or nullptr.
void gradient_rows::write(std::int64_t row, const float* gamma, const row_sums& all, float* dgamma,
                          float* dbeta) const {
  const double middle = mean(row), scale = rstd(row);
  const double shift = p.centered ? all.sum(row) / all.width() : 0;
  const double slope = scale * scale * all.products(row) / all.width();
  buffer wide_x, wide_dy, made;
  each_block(p.norm.n, [&](std::int64_t first, std::int64_t count) {
    const float *from = x.read(row, first, count, wide_x), *g = dy.read(row, first, count, wide_dy),
                *gain = gamma + first;
    for (std::int64_t i = 0; dgamma != nullptr && i < count; ++i)
      dgamma[first + i] = static_cast<float>(double{dgamma[first + i]} +
                                             double{g[i]} * (double{from[i]} - middle) * scale);
    for (std::int64_t i = 0; dbeta != nullptr && i < count; ++i) dbeta[first + i] += g[i];
    for (std::int64_t i = 0; i < count; ++i)
      made[i] = static_cast<float>(
          scale * (double{g[i]} * double{gain[i]} - shift - (double{from[i]} - middle) * slope));
    dx.write(row, first, count, made);
  });
}

void run(const gradient_call& a, const problem& p, const norm_kernel& kernel, core::execution& on) {
  const std::int64_t n = p.norm.n;
  const auto rows = [&](const velo_tensor* t) { return rows_of(t, n, kernel.plain, on.isa); };
  const gradient_rows call{a, p, rows(a.x), rows(a.dy), rows(a.dx)};
  const auto sum = [&](double* own, core::execution& turn) {
    const float* gamma = gains_of(a.gamma, p, turn);
    each_row(p, *a.x, turn, [&](std::int64_t r) { call.sum(r, gamma, own + r * p.sums()); });
  };
  const auto write = [&](const row_sums& all, core::execution& turn) {
    const float* gamma = gains_of(a.gamma, p, turn);
    const auto& kernels = ops::kernels_at<ops::norm_kernels>(
        ops::rms_norm_kernel_list, kernel.plain ? core::isa::scalar : turn.isa);
    const ops::row_slices slices = ops::slices_of_gradient(p.norm);
    const ops::partial_rows gains(a.dgamma != nullptr, slices, n, turn),
        biases(a.dbeta != nullptr, slices, n, turn);
    turn.threads(slices.tasks(), [&](std::int64_t task, int) {
      float *dgamma = gains.begin(task), *dbeta = biases.begin(task);
      const std::int64_t first = slices.begin(task);
      for (std::int64_t r = first; r < first + slices.count(task); ++r)
        call.write(r, gamma, all, dgamma, dbeta);
    });
    gains.add_to(a.dgamma, a.accumulate, kernels.columns, turn);
    biases.add_to(a.dbeta, a.accumulate, kernels.columns, turn);
  };
  in_two_passes(p, on, sum, write);
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
  run(gradient_call{a.dy, a.x, a.gamma, nullptr, a.rstd, a.dx, a.dgamma, nullptr,
                    a.accumulate != 0},
      p, kernel, on);
}
void run_layer_gradient(const layer_gradient_args& a, const problem& p, const norm_kernel& kernel,
                        core::execution& on) {
  run(gradient_call{a.dy, a.x, a.gamma, a.mean, a.rstd, a.dx, a.dgamma, a.dbeta, a.accumulate != 0},
      p, kernel, on);
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
