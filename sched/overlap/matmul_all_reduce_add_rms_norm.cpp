// matmul_all_reduce_add_rms_norm: z = sum over ranks of (x @ op(weight) + bias) + residual, and its
// norm, in one call.
//
// The sums lie in norm_out. One pass over rows reads them and the residual and writes z and the
// norm in their places; it is that of dropout_add_rms_norm. In the sliced way rows take it as soon
// as their sums have arrived, while later slices are multiplied; apart, the sums would be read
// again from memory, and z, too. Biases belong to the ranks' products: sliced products, which are
// rounded in registers, get their sum afterwards, and it travels in pieces ahead of the slices.
// Slices of a quantized product are of columns (column_slices.hpp): they have their biases, and the
// pass over rows follows them.
#include <algorithm>
#include <cstring>

#include "ops/gemm/element_dtype.hpp"
#include "ops/norm/dropout_add_norm.hpp"
#include "ops/norm/norm_rows.hpp"
#include "ops/operator/kernels_at.hpp"
#include "sched/overlap/column_slices.hpp"
#include "sched/overlap/quantized_product.hpp"
#include "sched/overlap/slices.hpp"
#include "sched/overlap/weight_source.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

using core::at;
using core::fail;
using ops::operator==;
using args = velo_matmul_all_reduce_add_rms_norm_args;
using way = overlap_kernel::way;

struct problem : overlap_problem {
  membership in;
  quantized_sizes quantized;

  bool is_quantized() const { return quantized.how != quantization::none; }
  std::int64_t rows() const { return product.m; }
  std::int64_t columns() const { return product.n; }
};

// ---- checks ----

quantized_operands operands_of(const args& a) {
  return {a.x,     a.weight, a.bias,       a.packed,        a.transpose_weight != 0,
          a.scale, a.offset, a.group_size, a.dequant_scale, nullptr};
}

void set_product(const args& a, problem& p) {
  p.quantized = require_quantized(operands_of(a), a.residual->dtype, p);
  p.slices = a.parallel_num;
  if (!p.is_quantized()) {
    static_cast<overlap_problem&>(p) =
        problem_of(*a.x, *a.weight, a.transpose_weight != 0, a.parallel_num);
    require_pack(a.packed, p.dtype, p.product.k, p.product.n);
  }
  if (p.quantized.how != quantization::integers) require_bias(a.bias, p.columns(), p.dtype);
}

void require_residual(const args& a, const problem& p) {
  const velo_tensor& residual = *a.residual;
  ops::require_rank(residual, "residual", 2);
  ops::require_f32_or(residual, "residual", p.dtype);
  if (ops::row_count(residual) != p.rows() || ops::row_size(residual) != p.columns())
    fail(VELO_ERR_SHAPE, "args.residual.shape",
         core::concat(p.rows(), " rows of ", p.columns(), " elements"),
         ops::shape_name(residual.ndim, residual.shape));
}

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  p = problem{};
  set_product(a, p);
  require_residual(a, p);
  const std::int64_t n = p.columns();
  ops::require_shape(*a.gamma, "gamma", 1, &n);
  ops::require_f32_or(*a.gamma, "gamma", p.dtype);
  p.in = membership_in(a.group, "args.group");
  choose_slices(p, p.in);
  outputs.like(a.y, *a.residual);
  outputs.like(a.norm_out, *a.residual, p.dtype);
  outputs.set(a.rstd, core::f32, a.residual->ndim, ops::statistics_shape(*a.residual, 1).sizes);
}

// ---- the pass over rows ----

// Turns rows of sums in norm_out into z and its norm.
class row_pass {
 public:
  row_pass(const args& a, const problem& p, way how, core::arena& scratch, core::isa isa)
      : a_(a),
        p_(p),
        kernels_(ops::kernels_at<ops::dropout_add_norm_kernels>(
            ops::dropout_add_norm_kernel_list, how == way::reference ? core::isa::scalar : isa)),
        gamma_(ops::widened(*a.gamma, scratch)) {}

  void run(const row_range& rows, core::execution& turn) const {
    ops::with_element_type(p_.dtype, [&](auto element) {
      using T = decltype(element);
      if (a_.residual->dtype == core::f32) return run_typed<T, float>(rows, turn);
      run_typed<T, T>(rows, turn);
    });
  }

 private:
  template <class T, class Z>
  void run_typed(const row_range& rows, core::execution& turn) const {
    const std::int64_t n = p_.columns();
    // Two rows for each thread, and a line, so that threads write no line of another.
    const std::size_t own = static_cast<std::size_t>(2 * n + 31) / 16 * 16;
    const core::scratch_scope scope(turn.scratch);
    auto* floats = turn.scratch.take<float>(static_cast<std::size_t>(turn.threads.threads()) * own);
    T* const norm = ops::data<T>(a_.norm_out);
    float* const rstd = ops::data<float>(a_.rstd);
    const bool bypass =
        ops::bypass_cache(norm, p_.rows(), n * static_cast<std::int64_t>(sizeof(T)), turn);
    const ops::row_slices slices =
        ops::slice_rows(rows.count, n * static_cast<std::int64_t>(sizeof(Z)));
    turn.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
      const std::int64_t first = rows.begin + slices.begin(task);
      ops::dropout_add_norm_slice<T, Z> s{};
      s.x = s.y = norm + first * n;
      s.residual = ops::data<const Z>(a_.residual) + first * n;
      s.z = ops::data<Z>(a_.y) + first * n;
      s.rstd = rstd == nullptr ? nullptr : rstd + first;
      s.epsilon = static_cast<float>(a_.epsilon), s.bypass = bypass;
      s.by.gamma = gamma_, s.by.rows = slices.count(task), s.by.n = n;
      s.by.scratch = floats + static_cast<std::size_t>(thread) * own;
      kernels_.rms.forward(s);
    });
  }

  const args& a_;
  const problem& p_;
  const ops::dropout_add_norm_kernels& kernels_;
  const float* const gamma_;
};

// ---- the sum of the ranks' biases ----

// The biases of all ranks, added in rank order, or nullptr where no rank has one. They travel in
// pieces of a line that says whether there is one, and its numbers. Calls of all ranks have as many
// pieces, whoever has a bias.
const float* sum_of_biases(const float* own, std::int64_t n, std::int64_t room, int ranks,
                           comm::relay& link, core::arena& scratch) {
  constexpr std::int64_t line = 64;
  const std::int64_t most = (room - line) / static_cast<std::int64_t>(sizeof(float));
  auto* sum = scratch.take<float>(at(n));
  std::fill_n(sum, n, 0.0f);
  bool any = false;
  for (std::int64_t first = 0; first < n; first += most) {
    const std::int64_t count = std::min(most, n - first);
    link.wait_slot();
    *link.slot() = own != nullptr;
    if (own != nullptr) std::memcpy(link.slot() + line, own + first, at(count) * sizeof(float));
    link.post();
    link.wait_piece();
    for (int r = 0; r < ranks; ++r) {
      if (*link.piece(r) == 0) continue;
      any = true;
      const auto* numbers = reinterpret_cast<const float*>(link.piece(r) + line);
      for (std::int64_t i = 0; i < count; ++i) sum[first + i] += numbers[i];
    }
    link.release();
  }
  return any ? sum : nullptr;
}

// ---- the call ----

comm::operation reduction_of(const problem& p) {
  return operation_of(p, comm::collective::all_reduce, p.rows() * p.columns(),
                      "velo_matmul_all_reduce_add_rms_norm");
}

cut cut_of(const problem& p) {
  const int ranks = p.in.size();
  return cut(
      {row_parts(p.rows(), ranks).most(), p.columns(), p.dtype.bits / 8, ranks, false, p.slices},
      p.in.group->relay_slot_bytes());
}

column_cut column_cut_of(const problem& p) {
  return {p, p.in.size(), p.in.group->relay_slot_bytes()};
}

// A running call.
struct running {
  const args& a;
  const problem& p;
  const way how;
  core::execution& on;
  const weight_source weight{*a.weight, a.packed, how, on.isa};

  void alone() const {
    in_turn(on, [&](core::execution& turn) {
      const core::scratch_scope scope(turn.scratch);
      multiply_own(ops::data<void>(a.norm_out), turn);
      row_pass(a, p, how, turn.scratch, on.isa).run({0, p.rows()}, turn);
    });
  }
  void one_after_another(comm::transport& link, core::arena& scratch) const {
    comm::operation what = reduction();
    void* const own = unused_y();
    if (own != nullptr) what.in = own;
    in_turn(on, [&](core::execution& turn) {
      const core::scratch_scope scope(turn.scratch);
      multiply_own(own != nullptr ? own : what.out, turn);
    });
    link.run(what, on);
    const row_pass pass(a, p, how, scratch, on.isa);
    in_turn(on, [&](core::execution& turn) { pass.run({0, p.rows()}, turn); });
  }
  void in_columns(comm::transport& link, core::arena& scratch) const {
    comm::operation what = reduction();
    const column_cut in = column_cut_of(p);
    what.terms.require_same(in.signature());
    {
      const auto relay = link.begin_relay(what, on);
      const quantized_product own(operands_of(a), p.quantized, p, bias(scratch), scratch);
      all_reduce_in_columns({p, what, *relay, on, p.in.group->rank(), p.in.size(), in,
                             [&](const auto& of, void* to, core::execution& turn) {
                               own.multiply({of.first, of.count}, to, how, turn);
                             }});
    }
    const row_pass pass(a, p, how, scratch, on.isa);
    in_turn(on, [&](core::execution& turn) { pass.run({0, p.rows()}, turn); });
  }
  void in_slices(comm::transport& link, core::arena& scratch) const {
    if (p.is_quantized()) return in_columns(link, scratch);
    comm::operation what = reduction();
    const ops::gemm_problem all = product();
    const cut in = cut_of(p);
    // Differs from matmul_all_reduce, whose relay has no pieces of biases.
    what.terms.require_same(comm::mixed(in.signature(sliced_product::panel(all, on.isa))));
    const auto relay = link.begin_relay(what, on);
    const float* own = a.bias == nullptr ? nullptr : ops::widened(*a.bias, scratch);
    const float* bias = sum_of_biases(own, p.columns(), p.in.group->relay_slot_bytes(), p.in.size(),
                                      *relay, scratch);
    const row_pass pass(a, p, how, scratch, on.isa);
    const row_parts parts(p.rows(), p.in.size());
    slicing s{all, what, *relay, on, scratch, p.in.group->rank(), p.in.size(), in, parts};
    s.arrived = [&](const row_range& rows) {
      in_turn(on, [&](core::execution& turn) {
        if (bias != nullptr) add_bias(all, bias, {sums_of(rows), rows.count, all.n}, how, turn);
        pass.run(rows, turn);
      });
    };
    all_reduce_in_slices(s);
  }

 private:
  ops::gemm_problem product() const {
    ops::gemm_problem one = p.product;
    one.a = ops::data<const void>(a.x);
    weight.set(one);
    one.c = ops::data<void>(a.norm_out);
    return one;
  }
  // y where it may hold the product before its sum: a sum that is not in place is faster.
  void* unused_y() const {
    void* const y = ops::data<void>(a.y);
    return a.y->dtype == p.dtype && y != ops::data<void>(a.residual) ? y : nullptr;
  }
  comm::operation reduction() const {
    comm::operation what = reduction_of(p);
    what.in = what.out = ops::data<void>(a.norm_out);
    what.reducer.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
    return what;
  }
  void* sums_of(const row_range& rows) const {
    return ops::data<char>(a.norm_out) + rows.begin * p.columns() * (p.dtype.bits / 8);
  }
  // The bias that is added before this rank's product is rounded.
  const float* bias(core::arena& scratch) const {
    const bool adds = a.bias != nullptr && p.quantized.how != quantization::integers;
    return adds ? ops::widened(*a.bias, scratch) : nullptr;
  }
  // Writes the product of this rank with its bias, within a scope of scratch.
  void multiply_own(void* to, core::execution& turn) const {
    const float* const added = bias(turn.scratch);
    if (p.is_quantized())
      return multiply_quantized(operands_of(a), p.quantized, p, added, to, how, turn);
    ops::gemm_problem one = product();
    one.c = to;
    one.epilogue.bias = added;
    multiply(one, how, turn);
  }
};

void run(const args& a, const problem& p, const overlap_kernel& kernel, core::execution& on) {
  if (p.in.group == nullptr) return running{a, p, kernel.how, on}.alone();
  p.in.group->serve(p.in.ticket, reduction_of(p), [&](comm::transport& link, core::arena& scratch) {
    const running call{a, p, kernel.how, on};
    kernel.how == way::sliced ? call.in_slices(link, scratch)
                              : call.one_after_another(link, scratch);
  });
}

const char* reject(const args&, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (const char* why = why_not_sliced(p.in, p)) return why;
  if (p.is_quantized() && !asks_for_slices(p)) return columns_not_asked_for;
  if (p.is_quantized()) return column_cut_of(p).pays() ? nullptr : too_small;
  // Measured on two cores with AMX, slices took 1.1 to 1.3 of the time.
  const bool by_tiles = p.dtype == core::bf16 && p.in.group->owner().isa() >= core::isa::amx;
  if (by_tiles && !asks_for_slices(p)) return "AMX multiplies bfloat16 faster whole than in slices";
  return cut_of(p).pays() ? nullptr : too_small;
}

void enter(const args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", reduction_of(p), on, put);
}

void count(const args& a, const problem& p, ops::op_cost& cost) {
  count_product(operands_of(a), p.quantized.how, p, cost);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, reduction_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def matmul_all_reduce_add_rms_norm_operator = with_cost<sched::count>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list));

}  // namespace velo::ops
