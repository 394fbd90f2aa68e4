// The attention engine: one description for every layout, and the forward and backward passes.
//
//   S = float(scale * Q K^T + addend),  P = softmax of the visible part of each row,  out = (M P) V
//   dV = (M P)^T dY,  dS = P (M dY V^T - rowsum(dY out)),  dQ = scale dS K,  dK = scale dS^T Q
//
// Addends and the multipliers M of dropout are those of attention_terms.hpp. S is rounded to float
// once, in the same way in both passes and in the statistics: differences of large scores from
// their row's maximum are exact, and P of the gradient is that of the output.
// A layout is three strides a tensor (sequence of the batch, token, head), the last dimension being
// dense; sequences of different lengths are two cumulative lists. Query head h reads key head
// h / (heads / kv_heads). A row sees a range of keys (attention_window.hpp); a row that sees none
// gives 0, with lowest-finite maximum and sum 0. Blocks of keys that no row sees cost nothing.
// Invariant: bits depend on the problem and the instruction set, never on threads. Cost: products
// at the speed of ops/gemm/panel_product.hpp plus one exp a score; memory O(S D) a thread, never
// S x S. The keys of a row may come in several calls: each begins with the float32 outputs and the
// statistics of those before, and gradients are summed in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host/cpu.hpp"
#include "core/stream/parallel.hpp"
#include "ops/attention/engine/attention_terms.hpp"
#include "ops/attention/engine/attention_window.hpp"
#include "ops/gemm/kernel/element_type.hpp"

namespace velo::ops {

// Elements between neighbors; with cumulative lengths `batch` is not used.
struct attention_strides {
  std::int64_t batch = 0, token = 0, head = 0;
};

struct attention_problem {
  element_type type = element_type::f32;
  std::int64_t batch = 0, heads = 0, kv_heads = 0;
  std::int64_t d = 0, dv = 0;            // of queries and keys; of values and outputs
  std::int64_t sq = 0, skv = 0;          // without lists: every sequence; with lists: the longest
  const std::int64_t* q_ends = nullptr;  // cumulative, no leading zero, batch of them; or null
  const std::int64_t* kv_ends = nullptr;
  attention_window window;   // of every sequence but the banded one
  std::int64_t banded = -1;  // the sequence whose window is `band`; -1: none
  attention_window band;
  const std::int64_t* prefixes = nullptr;  // a sequence: its rows see the keys below; or null
  const attention_terms* terms = &no_terms;
  float scale = 1.0f;
  attention_strides q, k, v, out;
  attention_strides dy, dq, dk, dv_rows;  // gradients of out, q, k and v
  attention_strides stats;                // of max and sum
  int copies = 1;  // of each statistic, side by side; packed sequences with 8 lie head by head
  bool accumulate = false;     // dK and dV are added to
  bool accumulate_q = false;   // dQ is added to
  bool float_results = false;  // out, dQ, dK and dV are float32
  bool float_keys = false;     // dK and dV are float32, whatever the rest is
  attention_strides before;    // of the outputs of earlier keys
  // Of dpse, as of pse: elements between neighbors, 0 in the dimensions it sums over.
  score_tensor dpse;
};

struct attention_tensors {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;
  float *max = nullptr, *sum = nullptr;  // either may be null
  // The outputs of earlier keys, whose statistics max and sum hold then; or null. May be `out`.
  const float* before = nullptr;
};

struct attention_gradients {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *dy = nullptr, *out = nullptr;
  const float *max = nullptr, *sum = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void* dpse = nullptr;         // or none
  const float* dots = nullptr;  // rowsum(dY out), in the places of max; null: out is read
};

// The resources of a pass: the isa whose kernels are used (avx2 or above), threads and scratch.
struct attention_run {
  core::isa isa;
  const core::parallel& threads;
  void* scratch;  // attention_*_bytes, aligned to 64
};

std::size_t attention_forward_bytes(const attention_problem& problem, core::isa isa, int threads);
std::size_t attention_backward_bytes(const attention_problem& problem, core::isa isa, int threads);

std::size_t attention_bias_gradient_bytes(const attention_problem& problem, core::isa isa,
                                          int threads);

void attention_forward(const attention_problem& problem, const attention_tensors& tensors,
                       const attention_run& run);
void attention_backward(const attention_problem& problem, const attention_gradients& tensors,
                        const attention_run& run);

// dpse, by computing scores and their gradients once more.
void attention_bias_gradient(const attention_problem& problem, const attention_gradients& tensors,
                             const attention_run& run);

// Plain loops in double; no scratch, any processor.
void attention_forward_reference(const attention_problem& problem, const attention_tensors& tensors,
                                 const core::parallel& threads);
void attention_backward_reference(const attention_problem& problem,
                                  const attention_gradients& tensors,
                                  const core::parallel& threads);

}  // namespace velo::ops
