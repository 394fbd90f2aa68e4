// moe_token_unpermute and its gradient as operators: the weighted sums of each token's rows.
#include <algorithm>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/experts/token_slots.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "velo/ops_experts.h"

namespace velo::ops {
namespace {

using core::fail;

struct unpermute_problem {
  std::int64_t tokens, rows, n;  // permuted rows of n elements
  std::int64_t experts;          // padded: of the probabilities
};

// The sizes that indices and probabilities agree on; `tokens`: given in padded mode, or -1.
void require_slots(const velo_tensor& indices, const velo_tensor* probs, bool padded,
                   std::int64_t tokens, unpermute_problem& p) {
  require_rank(indices, "sorted_indices", padded ? 2 : 1, padded ? 2 : 1);
  const std::int64_t slots = numel(indices);
  if (slots >= std::int64_t{1} << 31) {
    fail(VELO_ERR_SHAPE, "args.sorted_indices.shape", "fewer than 2^31 indices",
         core::number(slots));
  }
  if (probs != nullptr) require_rank(*probs, "probs", 2, 2);
  p.tokens = tokens >= 0 ? tokens : probs != nullptr ? probs->shape[0] : slots;
  p.experts = padded ? indices.shape[0] : 0;
  if (padded) {
    if (probs == nullptr) fail(VELO_ERR_NULL, "args.probs", "a tensor in padded mode", "NULL");
    const std::int64_t wanted[] = {p.tokens, p.experts};
    require_shape(*probs, "probs", 2, wanted);
  } else if (probs != nullptr && numel(*probs) != slots) {
    fail(VELO_ERR_SHAPE, "args.probs.shape", core::concat(slots, " elements, one an index"),
         shape_name(probs->ndim, probs->shape));
  }
}

void require_probs_dtype(const velo_tensor* probs, velo_dtype dtype) {
  if (probs != nullptr) require_f32_or(*probs, "probs", dtype);
}

// T and n where padded rows go; elsewhere the indices say it.
std::int64_t restored(const velo_moe_token_unpermute_args& a, std::int64_t n) {
  if (a.padded_mode == 0) {
    if (a.restore_shape == nullptr) return -1;
    fail(VELO_ERR_ARGUMENT, "args.restore_shape", "NULL unless padded_mode", "a list");
  }
  if (a.restore_shape == nullptr)
    fail(VELO_ERR_NULL, "args.restore_shape", "[T, n] in padded mode", "NULL");
  const velo_ints& shape = *a.restore_shape;
  if (shape.count != 2 || shape.data[0] < 0 || shape.data[1] != n) {
    fail(VELO_ERR_ARGUMENT, "args.restore_shape", core::concat("[T, ", n, "]"),
         core::concat(shape.count, " numbers that are not"));
  }
  return shape.data[0];
}

void infer(const velo_moe_token_unpermute_args& a, unpermute_problem& p, output_shapes& outputs) {
  require_rank(*a.permuted, "permuted", 2, 2);
  p.rows = a.permuted->shape[0], p.n = a.permuted->shape[1];
  require_probs_dtype(a.probs, a.permuted->dtype);
  require_slots(*a.sorted_indices, a.probs, a.padded_mode != 0, restored(a, p.n), p);
  const std::int64_t slots = numel(*a.sorted_indices);
  if (a.padded_mode != 0 ? p.rows != slots : p.rows > slots) {
    fail(VELO_ERR_SHAPE, "args.permuted.shape",
         core::concat(a.padded_mode != 0 ? "" : "at most ", slots, " rows, one an index"),
         core::number(p.rows));
  }
  const std::int64_t shape[] = {p.tokens, p.n};
  outputs.set(a.tokens, a.permuted->dtype, 2, shape);
}

// The probability of each entry of the lists, as float32.
const float* weights_of(const velo_tensor* probs, const token_slots& slots, core::execution& on) {
  if (probs == nullptr) return nullptr;
  const std::int64_t count = slots.entries();
  auto* weights = on.scratch.take<float>(static_cast<std::size_t>(count));
  with_element_type(probs->dtype, [&](auto element) {
    const auto* from = data<const decltype(element)>(probs);
    for (std::int64_t i = 0; i < count; ++i) weights[i] = simd::to_float(from[slots.places[i]]);
  });
  return weights;
}

template <class T>
void run(const velo_moe_token_unpermute_args& a, const unpermute_problem& p,
         const moe_token_kernels& kernels, core::execution& on) {
  const token_slots slots =
      read_slots(*a.sorted_indices, "sorted_indices",
                 {p.tokens, p.rows, a.padded_mode != 0, p.experts}, on.scratch);
  const float* weights = weights_of(a.probs, slots, on);
  const std::int64_t bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.tokens), p.tokens, bytes, on);
  const row_slices slices = slice_tokens(p.tokens, p.rows, bytes);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      kernels.sum(token_sum<T>{slots.of(t, weights, p.n), data<const T>(a.permuted),
                               data<T>(a.tokens) + t * p.n, bypass});
    }
  });
}

// ---- the gradient ----

void infer_backward(const velo_moe_token_unpermute_backward_args& a, unpermute_problem& p,
                    output_shapes& outputs) {
  require_rank(*a.dy, "dy", 2, 2);
  const bool padded = a.padded_mode != 0;
  p.n = a.dy->shape[1];
  require_probs_dtype(a.probs, a.dy->dtype);
  require_slots(*a.sorted_indices, a.probs, padded, padded ? a.dy->shape[0] : -1, p);
  const std::int64_t wanted[] = {p.tokens, p.n};
  require_shape(*a.dy, "dy", 2, wanted);
  if (padded && a.num_out_tokens != 0)
    fail(VELO_ERR_ARGUMENT, "args.num_out_tokens", "0 in padded mode",
         core::number(a.num_out_tokens));
  p.rows = rows_kept(a.num_out_tokens, numel(*a.sorted_indices));
  const std::int64_t rows[] = {p.rows, p.n};
  if (a.permuted != nullptr) {
    require_dtype(*a.permuted, "permuted", a.dy->dtype);
    require_shape(*a.permuted, "permuted", 2, rows);
  }
  outputs.set(a.dpermuted, a.dy->dtype, 2, rows);
  if (a.dprobs != nullptr) {
    require_given(a.probs, "probs");
    require_given(a.permuted, "permuted");
  }
  if (a.probs != nullptr && a.permuted != nullptr) outputs.like(a.dprobs, *a.probs);
}

// The gradient of the probabilities, as float32: those of choices that have no row are zero.
void store_dprobs(const velo_tensor& dprobs, const token_slots& slots, const float* dots) {
  const auto bytes = static_cast<std::size_t>(bytes_of(dprobs.dtype, numel(dprobs)));
  if (bytes == 0) return;
  std::memset(data<void>(&dprobs), 0, bytes);
  with_element_type(dprobs.dtype, [&](auto element) {
    auto* to = data<decltype(element)>(&dprobs);
    const std::int64_t count = slots.entries();
    for (std::int64_t i = 0; i < count; ++i) {  // a token may have two rows at an expert
      double sum = dots[i];
      const std::int64_t place = slots.places[i];
      while (i + 1 < count && slots.places[i + 1] == place) sum += dots[++i];
      simd::assign(to[place], sum);
    }
  });
}

// Rows of dpermuted that are the token's gradient as it is.
template <class T>
void copy_rows(const token_scale<T>& s) {
  if (s.at.n == 0) return;
  for (std::int64_t j = 0; j < s.at.count; ++j)
    std::memcpy(s.dpermuted + s.at.rows[j] * s.at.n, s.dy,
                static_cast<std::size_t>(s.at.n) * sizeof(T));
}

template <class T>
void backward(const velo_moe_token_unpermute_backward_args& a, const unpermute_problem& p,
              const moe_token_kernels& kernels, core::execution& on) {
  const token_slots slots =
      read_slots(*a.sorted_indices, "sorted_indices",
                 {p.tokens, p.rows, a.padded_mode != 0, p.experts}, on.scratch);
  const float* weights = weights_of(a.probs, slots, on);
  float* dots = a.dprobs == nullptr
                    ? nullptr
                    : on.scratch.take<float>(static_cast<std::size_t>(slots.entries()));
  auto* dpermuted = data<T>(a.dpermuted);
  const std::int64_t bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = dpermuted != nullptr && bypass_cache(dpermuted, p.rows, bytes, on);
  const row_slices slices = slice_tokens(p.tokens, p.rows, bytes);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const token_rows at = slots.of(t, weights, p.n);
      const T* dy = data<const T>(a.dy) + t * p.n;
      if (dots != nullptr)
        kernels.dots(token_dots<T>{at, data<const T>(a.permuted), dy, dots + slots.start[t]});
      if (dpermuted == nullptr) continue;
      const token_scale<T> scaled{at, dy, dpermuted, bypass};
      weights == nullptr ? copy_rows(scaled) : kernels.scale(scaled);
    }
  });
  if (dots != nullptr) store_dprobs(*a.dprobs, slots, dots);
}

// Rows are read for the gradient of the probabilities alone.
void cost_of(const velo_moe_token_unpermute_backward_args& a, const unpermute_problem&,
             op_cost& cost) {
  if (a.dprobs == nullptr) cost.bytes_read -= bytes_of(a.permuted);
}

}  // namespace

extern const operator_def moe_token_unpermute_operator =
    define<infer, by_dtype<&velo_moe_token_unpermute_args::permuted, run<float>, run<simd::bf16>,
                           run<simd::f16>>>(moe_token_kernel_list);
extern const operator_def moe_token_unpermute_backward_operator = with_cost<cost_of>(
    define<infer_backward, by_dtype<&velo_moe_token_unpermute_backward_args::dy, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        moe_token_kernel_list));

}  // namespace velo::ops
