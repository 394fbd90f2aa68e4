// moe_token_permute and its gradient as operators: the sort of tokens by expert, and the copies.
#include <algorithm>
#include <cstring>

#include "ops/experts/token_slots.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "velo/ops_experts.h"

namespace velo::ops {
namespace {

using core::fail;

struct permute_problem {
  std::int64_t tokens, rows, n;  // permuted rows of n elements
  std::int64_t slots;            // choices of all tokens
};

void require_below_2_31(std::int64_t size, const char* field) {
  if (size < (std::int64_t{1} << 31)) return;
  fail(VELO_ERR_SHAPE, core::text("args.%s.shape", field), "fewer than 2^31 indices",
       core::number(size));
}

void infer(const velo_moe_token_permute_args& a, permute_problem& p, output_shapes& outputs) {
  require_rank(*a.tokens, "tokens", 2, 2);
  const bool padded = a.padded_mode != 0;
  require_rank(*a.indices, "indices", padded ? 2 : 1, 2);
  p.tokens = a.tokens->shape[0], p.n = a.tokens->shape[1], p.slots = numel(*a.indices);
  require_below_2_31(p.slots, "indices");
  if (!padded && a.indices->shape[0] != p.tokens) {
    std::int64_t wanted[] = {p.tokens, a.indices->ndim == 2 ? a.indices->shape[1] : 0};
    require_shape(*a.indices, "indices", a.indices->ndim, wanted);
  }
  if (padded && a.num_out_tokens != 0)
    fail(VELO_ERR_ARGUMENT, "args.num_out_tokens", "0 in padded mode",
         core::number(a.num_out_tokens));
  p.rows = rows_kept(a.num_out_tokens, p.slots);
  const std::int64_t rows[] = {p.rows, p.n}, experts[] = {a.num_experts};
  outputs.set(a.permuted, a.tokens->dtype, 2, rows);
  if (padded) {
    outputs.set(a.sorted_indices, i32, 2, a.indices->shape);
  } else {
    outputs.set(a.sorted_indices, i32, 1, &p.slots);
  }
  if (a.counts != nullptr && a.num_experts == 0)
    fail(VELO_ERR_ARGUMENT, "args.num_experts", "the number of experts, for counts", "0");
  if (padded && a.num_experts != 0 && a.num_experts != a.indices->shape[0])
    fail(VELO_ERR_ARGUMENT, "args.num_experts", core::number(a.indices->shape[0]),
         core::number(a.num_experts));
  if (a.num_experts != 0) outputs.set(a.counts, i64, 1, experts);
}

// ---- the order ----

// A stable counting sort of the choices by expert. Cost: three passes over the indices.
class expert_order {
 public:
  expert_order(const velo_moe_token_permute_args& a, std::int64_t slots, core::arena& scratch)
      : ids_(*a.indices), slots_(slots), experts_(a.num_experts) {
    require();
    for (std::int64_t f = 0; experts_ == 0 && f < slots; ++f) most_ = std::max(most_, ids_[f]);
    if (experts_ == 0) experts_ = most_ + 1;
    const auto count = static_cast<std::size_t>(experts_) + 2;
    start_ = scratch.take<std::int64_t>(count);
    std::memset(start_, 0, count * sizeof(std::int64_t));
    for (std::int64_t f = 0; f < slots; ++f) ++start_[expert_of(f) + 1];
    for (std::int64_t e = 0; e <= experts_; ++e) start_[e + 1] += start_[e];
  }

  // How many of the first `rows` rows each expert has.
  void counts(std::int64_t rows, std::int64_t* to) const {
    for (std::int64_t e = 0; e < experts_; ++e)
      to[e] = std::min(start_[e + 1], rows) - std::min(start_[e], rows);
  }
  // The row of each choice. Advances the beginnings.
  void rows(std::int32_t* to) {
    for (std::int64_t f = 0; f < slots_; ++f)
      to[f] = static_cast<std::int32_t>(start_[expert_of(f)]++);
  }

 private:
  // Dropped choices, -1 - expert, come after those of all experts.
  std::int64_t expert_of(std::int64_t f) const { return ids_[f] < 0 ? experts_ : ids_[f]; }

  void require() const {
    constexpr std::int64_t most_experts = 65536;
    const std::int64_t limit = experts_ == 0 ? most_experts : experts_;
    for (std::int64_t f = 0; f < slots_; ++f) {
      if (ids_[f] < limit && ids_[f] >= -experts_) continue;
      fail(VELO_ERR_ARGUMENT, "args.indices",
           core::concat("indices in [", -experts_, ", ", limit, ")"),
           core::concat(ids_[f], " in element ", f));
    }
  }

  index_reader ids_;
  std::int64_t slots_, experts_, most_ = 0;
  std::int64_t* start_;
};

// The places of the choices, as a tensor that the lists are read from.
token_slots slots_of(const velo_moe_token_permute_args& a, const permute_problem& p,
                     core::execution& on) {
  auto* sorted = data<std::int32_t>(a.sorted_indices);
  if (sorted == nullptr) sorted = on.scratch.take<std::int32_t>(static_cast<std::size_t>(p.slots));
  auto* counts = data<std::int64_t>(a.counts);
  velo_tensor as_rows = *a.indices;
  as_rows.data = sorted, as_rows.dtype = i32, as_rows.strides = nullptr, as_rows.byte_offset = 0;
  if (a.padded_mode != 0) {
    require_indices(*a.indices, "indices", p.tokens);
    const index_reader ids(*a.indices);
    for (std::int64_t i = 0; i < p.slots; ++i) sorted[i] = static_cast<std::int32_t>(ids[i]);
    for (std::int64_t e = 0; counts != nullptr && e < a.num_experts; ++e)
      counts[e] = a.indices->shape[1];
  } else {
    expert_order order(a, p.slots, on.scratch);
    if (counts != nullptr) order.counts(p.rows, counts);
    order.rows(sorted);
  }
  return read_slots(as_rows, "indices", {p.tokens, p.rows, a.padded_mode != 0, 0}, on.scratch);
}

void run(const velo_moe_token_permute_args& a, const permute_problem& p,
         const moe_token_kernels& kernels, core::execution& on) {
  const token_slots slots = slots_of(a, p, on);
  const std::int64_t bytes = p.n * element_bytes(a.tokens->dtype);
  if (bytes == 0) return;
  const auto* tokens = data<const char>(a.tokens);
  auto* permuted = data<char>(a.permuted);
  const bool bypass = bypass_cache(permuted, p.rows, bytes, on);
  const row_slices slices = slice_tokens(p.tokens, p.rows, bytes);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const char* row = tokens + t * bytes;
      const char* next = tokens + std::min(t + 1, p.tokens - 1) * bytes;
      for (std::int64_t s = slots.start[t]; s < slots.start[t + 1]; ++s) {
        char* to = permuted + slots.rows[s] * bytes;
        if (bypass) {
          kernels.copy_row({row, next, to, bytes});
        } else {
          std::memcpy(to, row, static_cast<std::size_t>(bytes));
        }
      }
    }
  });
}

// ---- the gradient ----

void infer_backward(const velo_moe_token_permute_backward_args& a, permute_problem& p,
                    output_shapes& outputs) {
  require_rank(*a.dpermuted, "dpermuted", 2, 2);
  const bool padded = a.padded_mode != 0;
  require_rank(*a.sorted_indices, "sorted_indices", padded ? 2 : 1, padded ? 2 : 1);
  p = {a.tokens, a.dpermuted->shape[0], a.dpermuted->shape[1], numel(*a.sorted_indices)};
  require_below_2_31(p.slots, "sorted_indices");
  if (padded ? p.rows != p.slots : p.rows > p.slots) {
    fail(VELO_ERR_SHAPE, "args.dpermuted.shape",
         core::concat(padded ? "" : "at most ", p.slots, " rows, one an index"),
         core::number(p.rows));
  }
  if (!padded && (p.tokens == 0 ? p.slots != 0 : p.slots % p.tokens != 0)) {
    fail(VELO_ERR_ARGUMENT, "args.tokens",
         core::concat("a number that divides the ", p.slots, " indices"), core::number(p.tokens));
  }
  const std::int64_t shape[] = {p.tokens, p.n};
  outputs.set(a.dtokens, a.dpermuted->dtype, 2, shape);
}

template <class T>
void backward(const velo_moe_token_permute_backward_args& a, const permute_problem& p,
              const moe_token_kernels& kernels, core::execution& on) {
  const token_slots slots = read_slots(*a.sorted_indices, "sorted_indices",
                                       {p.tokens, p.rows, a.padded_mode != 0, 0}, on.scratch);
  const std::int64_t bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.dtokens), p.tokens, bytes, on);
  const row_slices slices = slice_tokens(p.tokens, p.rows, bytes);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      kernels.sum(token_sum<T>{slots.of(t, nullptr, p.n), data<const T>(a.dpermuted),
                               data<T>(a.dtokens) + t * p.n, bypass});
    }
  });
}

}  // namespace

extern const operator_def moe_token_permute_operator = define<infer, run>(moe_token_kernel_list);
extern const operator_def moe_token_permute_backward_operator =
    define<infer_backward, by_dtype<&velo_moe_token_permute_backward_args::dpermuted,
                                    backward<float>, backward<simd::bf16>, backward<simd::f16>>>(
        moe_token_kernel_list);

}  // namespace velo::ops
