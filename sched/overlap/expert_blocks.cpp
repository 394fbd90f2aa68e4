// Checks, collectives and copies that both operators over two groups of experts have.
#include "sched/overlap/expert_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/gemm_groups.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::sched {

using core::fail;

void set_product(expert_problem& p, const velo_tensor& x, const velo_tensor& weight,
                 bool transposed, std::int64_t rows, std::int64_t depth) {
  ops::require_rank(weight, "weight", 3, 3);
  ops::require_dtype(weight, "weight", x.dtype);
  ops::gemm_problem& one = p.product;
  one.m = rows, one.k = depth;
  one.n = weight.shape[transposed ? 1 : 2];
  const std::int64_t straight[] = {p.of.local, depth, one.n}, turned[] = {p.of.local, one.n, depth};
  ops::require_shape(weight, "weight", 3, transposed ? turned : straight);
  if (std::max(one.n, one.k) >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "sizes below 2^31", ops::shape_name(3, weight.shape));
  one.type = one.c_type = ops::type_of(x.dtype);
  one.lda = depth, one.ldb = weight.shape[2], one.ldc = one.n;
  one.transpose_b = transposed;
  p.dtype = x.dtype;
  p.of.element = x.dtype.bits / 8;
  p.mode = choose_slices(p.tensor, 0, rows, depth, one.n).mode;
}

void require_expert_bias(const velo_tensor* bias, std::int64_t local, std::int64_t n,
                         velo_dtype dtype) {
  if (bias == nullptr) return;
  const std::int64_t flat[] = {local, n}, with_rows[] = {local, 1, n};
  ops::require_shape(*bias, "bias", bias->ndim == 3 ? 3 : 2, bias->ndim == 3 ? with_rows : flat);
  ops::require_f32_or(*bias, "bias", dtype);
}

std::int64_t product_of_sizes(std::int64_t size, std::int64_t factor, const velo_tensor& of,
                              const char* shape_field) {
  if (__builtin_mul_overflow(size, factor, &size))
    ops::refuse_sizes(of.ndim, of.shape, shape_field);
  return size;
}

namespace {

// A hash of the sizes on which the ranks of either group must agree.
std::uint64_t signature_of(const expert_blocks& of) {
  std::uint64_t all = of.by_columns ? 1 : 2;
  for (const std::int64_t size : {of.local, of.ep, of.tp, of.rows, of.width})
    all = comm::mixed(all + static_cast<std::uint64_t>(size) + 1);
  return all;
}

}  // namespace

comm::operation exchange_of(const expert_problem& p) {
  comm::operation what =
      operation_of(p, comm::collective::all_to_all, p.of.part_elements() / p.of.ep, p.function);
  what.terms.require_same(signature_of(p.of));
  what.out_count = p.of.part_elements();
  return what;
}

comm::operation over_tensor(const expert_problem& p) {
  const bool reduces = comm::traits_of(p.over_tensor).reduces;
  const std::int64_t part = p.of.part_elements(), all = part * p.of.tp;
  comm::operation what = operation_of(p, p.over_tensor, reduces ? all : part, p.function);
  what.terms.require_same(signature_of(p.of));
  what.set_count(part);
  what.out_count = reduces ? part : all;
  return what;
}

void enter_groups(expert_problem& p, core::stream& on, const ops::enqueue& put) {
  enter_both({&p.experts, "args.group_ep", exchange_of(p)},
             {&p.tensor, "args.group_tp", over_tensor(p)}, on, put);
}

void drop_groups(const expert_problem& p) noexcept {
  if (p.experts.group != nullptr) p.experts.group->drop(p.experts.ticket, exchange_of(p));
  if (p.tensor.group != nullptr) p.tensor.group->drop(p.tensor.ticket, over_tensor(p));
}

void multiply_experts(ops::gemm_problem* products, std::int64_t count, overlap_kernel::way how,
                      core::execution& turn) {
  if (how != overlap_kernel::way::reference)
    return ops::gemm_groups(products, count, turn.threads, turn.scratch, turn.isa);
  for (std::int64_t i = 0; i < count; ++i) multiply(products[i], how, turn);
}

void gather_rows(const expert_blocks& of, const void* const* parts, std::int64_t expert,
                 std::int64_t first, std::int64_t count, void* to) {
  auto* at = static_cast<char*>(to);
  const auto row = static_cast<std::size_t>(of.row_bytes());
  if (row == 0) return;  // such parts may be NULL
  const auto block = [&](std::int64_t part, std::int64_t source) {
    return static_cast<const char*>(parts[part]) + (source * of.local + expert) * of.block_bytes();
  };
  for (std::int64_t i = first; of.by_columns && i < first + count; ++i)
    for (std::int64_t t = 0; t < of.tp; ++t, at += row)
      std::memcpy(at, block(t, i / of.rows) + i % of.rows * of.row_bytes(), row);
  if (of.by_columns) return;
  for (std::int64_t i = first; i < first + count;) {
    const std::int64_t number = i / of.rows, from = i % of.rows;
    const std::int64_t some = std::min(of.rows - from, first + count - i);
    const auto bytes = static_cast<std::size_t>(some) * row;
    std::memcpy(at, block(number % of.tp, number / of.tp) + from * of.row_bytes(), bytes);
    at += bytes, i += some;
  }
}

}  // namespace velo::sched
