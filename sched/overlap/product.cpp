// The checks that the operators share, and products by blocks of rows and columns.
#include "sched/overlap/product.hpp"

#include <cassert>
#include <functional>
#include <optional>

#include "core/index.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/pack/panel_matrix.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::sched {
namespace {

using core::fail;
using ops::operator==;
using core::text;

constexpr overlap_kernel sliced{overlap_kernel::way::sliced},
    composition{overlap_kernel::way::composition}, reference{overlap_kernel::way::reference};

constexpr ops::kernel_entry entries[] = {
    {"sliced", core::isa::scalar, &sliced, VELO_DEVICE_CPU, 2},
    {"composition", core::isa::scalar, &composition, VELO_DEVICE_CPU, 1},
    {"reference", core::isa::scalar, &reference}};

}  // namespace

extern const ops::kernel_list overlap_kernel_list{entries, 3};

membership membership_in(velo_group group, const char* argument) {
  if (group == nullptr) return {nullptr, {}};
  return {&core::resolve<comm::group>(group, argument), {}};
}

void require_group_of(const core::stream& on, const membership& in, const char* argument) {
  if (in.group != nullptr && &on.owner() != &in.group->owner())
    fail(VELO_ERR_ARGUMENT, argument, "a group of the stream's context", "one of another context");
}

void enter_group(membership& in, const char* argument, const comm::request& what, core::stream& on,
                 const ops::enqueue& put) {
  if (in.group == nullptr) return put();
  require_group_of(on, in, argument);
  in.group->enter(on, in.ticket, what, put);
}

void enter_both(const group_side& one, const group_side& other, core::stream& on,
                const ops::enqueue& put) {
  const bool swapped = std::less<>()(other.in->group, one.in->group);
  const group_side &first = swapped ? other : one, &second = swapped ? one : other;
  const auto then = [&] { enter_group(*second.in, second.argument, second.what, on, put); };
  try {
    enter_group(*first.in, first.argument, first.what, on, ops::enqueue(then));
  } catch (...) {
    comm::group::rethrow_for_both({one.in->group, one.what}, {other.in->group, other.what});
  }
}

overlap_problem problem_of(const velo_tensor& x, const velo_tensor& weight, bool transpose_weight,
                           std::int64_t slices) {
  ops::require_rank(x, "x", 2);
  ops::require_rank(weight, "weight", 2, 2);
  ops::require_dtype(weight, "weight", x.dtype);
  overlap_problem all{};
  ops::gemm_problem& p = all.product;
  p.m = ops::row_count(x);
  p.k = ops::row_size(x);
  p.n = weight.shape[transpose_weight ? 0 : 1];
  const std::int64_t wanted[] = {transpose_weight ? p.n : p.k, transpose_weight ? p.k : p.n};
  ops::require_shape(weight, "weight", 2, wanted);
  if (std::max(p.n, p.k) >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "sizes below 2^31", ops::shape_name(2, weight.shape));
  p.type = p.c_type = ops::type_of(x.dtype);
  p.lda = p.k;
  p.ldb = weight.shape[1];
  p.ldc = p.n;
  p.transpose_b = transpose_weight;
  all.dtype = x.dtype;
  all.slices = slices;
  return all;
}

comm::blocks blocks_of(const row_parts& parts, std::int64_t width) {
  comm::blocks all;
  for (int r = 0; r < parts.ranks(); ++r)
    all.push_back({parts.of(r).begin * width, parts.of(r).count * width});
  return all;
}

slice_choice choose_slices(const membership& in, std::int64_t slices, std::int64_t rows,
                           std::int64_t depth, std::int64_t columns) {
  if (in.group == nullptr) return {core::overlap_mode::automatic, slices};
  const core::overlap_settings& by = in.group->owner().configuration().now().overlap;
  if (by.mode == core::overlap_mode::whole) return {by.mode, 1};
  return {by.mode, slices != 0 ? slices : by.table.slices_of(rows, depth, columns)};
}

void choose_slices(overlap_problem& problem, const membership& in) {
  const ops::gemm_problem& of = problem.product;
  const slice_choice chosen = choose_slices(in, problem.slices, of.m, of.k, of.n);
  problem.slices = chosen.slices, problem.mode = chosen.mode;
}

void require_bias(const velo_tensor* bias, std::int64_t n, velo_dtype dtype) {
  if (bias == nullptr) return;
  require_columns(*bias, "bias", n);
  ops::require_f32_or(*bias, "bias", dtype);
}

void require_columns(const velo_tensor& t, const char* field, std::int64_t n) {
  const std::int64_t wanted[] = {1, n};
  const bool row = t.ndim == 2;
  ops::require_shape(t, field, row ? 2 : 1, row ? wanted : wanted + 1);
}

comm::operation operation_of(const overlap_problem& problem, comm::collective kind,
                             std::int64_t count, const char* function) {
  comm::operation what;
  what.function = function;
  what.terms.kind = kind;
  what.terms.in_code = what.terms.out_code = problem.dtype.code;
  what.terms.in_bits = what.terms.out_bits = problem.dtype.bits;
  what.terms.count = what.out_count = count;
  what.set_count(count);
  if (!comm::traits_of(kind).reduces) return what;
  what.terms.reduction = VELO_REDUCE_SUM;
  what.terms.scale = 1;
  return what;
}

void multiply(const ops::gemm_problem& problem, overlap_kernel::way how, core::execution& turn) {
  if (how == overlap_kernel::way::reference) return ops::gemm_reference(problem, turn.threads);
  void* scratch =
      turn.scratch.take(ops::gemm_scratch_bytes(problem, turn.threads.threads(), turn.isa));
  ops::gemm(problem, turn.threads, scratch, turn.isa);
}

void add_bias(const ops::gemm_problem& of, const float* bias, const bias_target& to,
              overlap_kernel::way how, core::execution& turn) {
  ops::gemm_problem one;
  one.type = of.c_type, one.c_type = of.c_type;
  one.m = to.rows, one.n = to.columns;
  one.a = to.c, one.lda = 1;
  one.b = to.c, one.ldb = to.columns;
  one.c = to.c, one.ldc = of.ldc;
  one.epilogue.bias = bias;
  one.epilogue.accumulate = true;
  const core::scratch_scope scope(turn.scratch);
  multiply(one, how, turn);
}

bool is_sliced(const ops::kernel_entry& kernel) {
  return static_cast<const overlap_kernel*>(kernel.kernels)->how == overlap_kernel::way::sliced;
}

const char* why_not_sliced(const membership& in, const overlap_problem& problem) {
  if (in.size() == 1) return "the group has one rank";
  if (in.group->relay_slot_bytes() == 0)
    return "the transport does not show ranks each other's memory";
  if (problem.mode == core::overlap_mode::whole) return "overlap.mode is whole";
  if (problem.slices == 1) return "one slice is asked for";
  // A product of few rows packs the weight while it multiplies, which costs less than the packing
  // for slices.
  constexpr std::int64_t few_rows = 512;
  return !asks_for_slices(problem) && problem.product.m <= few_rows
             ? "512 rows or fewer, whose weight is packed as it is multiplied"
             : nullptr;
}

sliced_product::sliced_product(const ops::gemm_problem& problem, const grouped_rows* groups,
                               core::arena& scratch, core::execution& on)
    : problem_(problem) {
  if (problem.packed_b != nullptr) {
    weights_.push_back(*problem.packed_b);
    return;
  }
  const int count = groups == nullptr ? 1 : groups->rows.parts.ranks();
  for (int i = 0; i < count; ++i) {
    weights_.emplace_back(groups == nullptr ? problem.k : groups->depths[i], problem.n,
                          problem.type, on.isa);
    weights_.back().set_memory(scratch.take(weights_.back().bytes()));
  }
  in_turn(on, [&](core::execution& turn) {
    for (int i = 0; i < count; ++i)
      weights_[core::at(i)].update(groups == nullptr ? problem.b : groups->weights[i], problem.ldb,
                                   problem.transpose_b, turn.threads);
  });
}

int sliced_product::panel(const ops::gemm_problem& problem, core::isa isa) {
  return ops::packed_matrix(problem.k, problem.n, problem.type, isa).panel();
}

void sliced_product::multiply(const block& of, const row_source& a, void* c, std::int64_t ldc,
                              const ops::overlapped_copy& copies, core::execution& turn) const {
  assert(a.parts.rank_of(of.row) ==
         a.parts.rank_of(of.row + of.rows - 1));  // one matrix: the copy overlaps one product
  ops::gemm_problem slice = problem_;
  if (copies.count > 0) slice.epilogue.copies = &copies;
  slice.c = c;
  slice.ldc = ldc;
  run(slice, of, a, turn);
}

void sliced_product::multiply_for_peer(const block& of, const row_source& a, void* to,
                                       core::execution& turn) const {
  ops::gemm_problem slice = problem_;
  slice.c = to, slice.c_layout = ops::matrix_layout::panels;
  slice.epilogue.panels.rows = of.rows;
  run(slice, of, a, turn);
}

void sliced_product::multiply_and_sum(const block& of, const row_source& a,
                                      const ops::addend_list& peers, const sum_target& to,
                                      core::execution& turn) const {
  ops::gemm_problem slice = problem_;
  slice.c = to.c;
  slice.ldc = to.ldc;
  slice.epilogue.second = to.second;
  slice.epilogue.panels.rows = of.rows;
  slice.epilogue.addends = peers;
  run(slice, of, a, turn);
}

void sliced_product::copy_rows(const block& of, const void* from, void* to, std::int64_t ld,
                               core::execution& turn) const {
  ops::copy_to_rows({from, of.rows, of.columns, weights_[0].panel(), problem_.c_type}, to, ld,
                    turn.threads, turn.isa);
}

// Multiplies the rows of one matrix after the other.
void sliced_product::run(ops::gemm_problem slice, const block& of, const row_source& a,
                         core::execution& turn) const {
  const bool grouped = weights_.size() > 1;
  ops::packed_matrix weight = weights_[0].columns(of.column, of.columns);
  slice.n = of.columns;
  slice.packed_b = &weight;
  if (slice.epilogue.bias != nullptr) slice.epilogue.bias += of.column;
  std::optional<comm::relay::tensor_access> access;
  if (a.relay != nullptr) access.emplace(*a.relay);
  for (std::int64_t row = of.row; row < of.row + of.rows; row += slice.m) {
    const int index = a.parts.rank_of(row);
    const row_range part = a.parts.of(index);
    slice.m = std::min(part.end(), of.row + of.rows) - row;
    if (grouped) {
      weight = weights_[core::at(index)].columns(of.column, of.columns);
      slice.k = slice.lda = weight.k();
    }
    slice.a = static_cast<const char*>(a.matrices[core::at(index)]) +
              (row - part.begin) * slice.lda * ops::element_bytes(slice.type);
    const core::scratch_scope scope(turn.scratch);
    void* own = turn.scratch.take(ops::gemm_scratch_bytes(slice, turn.threads.threads(), turn.isa));
    ops::gemm(slice, turn.threads, own, turn.isa);
    slice.epilogue.panels.first += slice.m;
    const auto skip_rows = [&](void*& rows, std::int64_t ld, ops::matrix_layout layout) {
      if (rows == nullptr || layout == ops::matrix_layout::panels) return;
      rows = static_cast<char*>(rows) + slice.m * ld * ops::element_bytes(slice.c_type);
    };
    skip_rows(slice.c, slice.ldc, slice.c_layout);
    ops::second_output& second = slice.epilogue.second;
    skip_rows(second.data, second.ld, second.layout);
  }
}

}  // namespace velo::sched
