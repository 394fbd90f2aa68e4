// unpad_rope as an operator, by the kernels of rotary_position_embedding: the heads of a token
// share a row of the tables, that of its position in its sequence. A task is some tokens.
//
// AscendSpeed's formula for the gradient multiplies by cos + [sin2, -sin1]: a table of its own, and
// no rotation.
#include <algorithm>

#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"
#include "ops/rope/rotary_position_embedding.hpp"
#include "velo/ops_unpad.h"

namespace velo::ops {
namespace {

struct unpad_rope_problem {
  std::int64_t tokens, positions, width;  // of a head
  std::int64_t sizes[2];                  // of q's and k's rows
};

void require_heads(const velo_tensor& t, const char* field, std::int64_t part) {
  if (part != 0 && t.shape[1] % part == 0) return;
  if (part == 0 && t.shape[1] == 0) return;
  core::fail(VELO_ERR_SHAPE, core::text("args.%s.shape", field),
             core::concat("a multiple of ", part, " last"), shape_name(t.ndim, t.shape));
}

unpad_rope_problem problem_of(const velo_tensor& q, const char* q_field, const velo_tensor& k,
                              const char* k_field, const velo_tensor& cos, const velo_tensor& sin,
                              const velo_tensor& lengths) {
  require_rank(q, q_field, 2, 2);
  require_rank(k, k_field, 2, 2);
  const std::int64_t sizes[] = {q.shape[0], k.shape[1]};
  require_shape(k, k_field, 2, sizes);
  require_dtype(k, k_field, q.dtype);
  require_rank(cos, "cos", 2, 2);
  require_f32_or(cos, "cos", q.dtype);
  if (cos.shape[1] % 2 != 0)
    core::fail(VELO_ERR_SHAPE, "args.cos.shape", "an even last size",
               shape_name(cos.ndim, cos.shape));
  require_like(sin, "sin", cos, "cos");
  require_rank(lengths, "seq_len", 1, 1);
  require_heads(k, k_field, cos.shape[1]);
  require_heads(q, q_field, cos.shape[1]);
  require_heads(q, q_field, k.shape[1]);
  return {q.shape[0], cos.shape[0], cos.shape[1], {q.shape[1], k.shape[1]}};
}

void infer(const velo_unpad_rope_args& a, unpad_rope_problem& p, output_shapes& outputs) {
  p = problem_of(*a.q, "q", *a.k, "k", *a.cos, *a.sin, *a.seq_len);
  outputs.like(a.q_out, *a.q);
  outputs.like(a.k_out, *a.k);
}

void infer_backward(const velo_unpad_rope_backward_args& a, unpad_rope_problem& p,
                    output_shapes& outputs) {
  p = problem_of(*a.dq_out, "dq_out", *a.dk_out, "dk_out", *a.cos, *a.sin, *a.seq_len);
  outputs.like(a.dq, *a.dq_out);
  outputs.like(a.dk, *a.dk_out);
}

// The position of each token in its sequence.
const std::int64_t* positions_of(const velo_tensor& lengths, const unpad_rope_problem& p,
                                 core::execution& on) {
  require_indices(lengths, "seq_len", p.positions + 1);
  const index_reader length(lengths);
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < numel(lengths); ++i) {
    total += length[i];
    if (total > p.tokens) break;
  }
  if (total != p.tokens)
    core::fail(VELO_ERR_ARGUMENT, "args.seq_len", core::concat("a sum of ", p.tokens),
               core::number(total));
  auto* positions = on.scratch.take<std::int64_t>(static_cast<std::size_t>(p.tokens));
  std::int64_t* next = positions;
  for (std::int64_t i = 0; i < numel(lengths); ++i)
    for (std::int64_t j = 0; j < length[i]; ++j) *next++ = j;
  return positions;
}

struct tables {
  const float *cos, *sin;
  bool inverse;
};

struct rows_of_heads {
  const velo_tensor *from, *to;
};

template <class T>
void turn(const rows_of_heads (&both)[2], const tables& t, const std::int64_t* positions,
          const unpad_rope_problem& p, const rotary_position_embedding_kernels& kernels,
          core::execution& on) {
  const row_slices slices =
      slice_rows(p.tokens, (p.sizes[0] + p.sizes[1]) * static_cast<std::int64_t>(sizeof(T)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (int w = 0; w < 2; ++w) {
      if (p.sizes[w] == 0) continue;
      for (std::int64_t row = first; row < first + slices.count(task); ++row) {
        const std::int64_t at = positions[row] * p.width;
        kernels.rotate(rotary_slice<T>{data<const T>(both[w].from) + row * p.sizes[w],
                                       data<T>(both[w].to) + row * p.sizes[w], t.cos + at,
                                       t.sin + at, p.sizes[w] / p.width, p.width, p.width, 0,
                                       p.width, p.width, false, t.inverse, false});
      }
    }
  });
}

void run(const velo_unpad_rope_args& a, const unpad_rope_problem& p,
         const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const std::int64_t* positions = positions_of(*a.seq_len, p, on);
  const tables t{widened(*a.cos, on), widened(*a.sin, on), false};
  with_element_type(a.q->dtype, [&](auto element) {
    turn<decltype(element)>({{a.q, a.q_out}, {a.k, a.k_out}}, t, positions, p, kernels, on);
  });
}

// cos + [sin2, -sin1], and zeros.
tables upstream_tables(const tables& t, const unpad_rope_problem& p, core::execution& on) {
  const auto count = static_cast<std::size_t>(p.positions * p.width);
  auto* factor = on.scratch.take<float>(count);
  auto* zeros = on.scratch.take<float>(count);
  const std::int64_t half = p.width / 2;
  for (std::int64_t i = 0; i < p.positions * p.width; ++i) {
    const bool lower = i % p.width < half;
    factor[i] = t.cos[i] + (lower ? t.sin[i + half] : -t.sin[i - half]);
    zeros[i] = 0;
  }
  return {factor, zeros, false};
}

void run_backward(const velo_unpad_rope_backward_args& a, const unpad_rope_problem& p,
                  const rotary_position_embedding_kernels& kernels, core::execution& on) {
  const std::int64_t* positions = positions_of(*a.seq_len, p, on);
  tables t{widened(*a.cos, on), widened(*a.sin, on), true};
  if (a.upstream != 0) t = upstream_tables(t, p, on);
  with_element_type(a.dq->dtype, [&](auto element) {
    turn<decltype(element)>({{a.dq_out, a.dq}, {a.dk_out, a.dk}}, t, positions, p, kernels, on);
  });
}

}  // namespace

extern const operator_def unpad_rope_operator =
    define<infer, run>(rotary_position_embedding_kernel_list);
extern const operator_def unpad_rope_backward_operator =
    define<infer_backward, run_backward>(rotary_position_embedding_kernel_list);

}  // namespace velo::ops
