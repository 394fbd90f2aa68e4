// The part of attention's walks that both directions share.
#include "ops/attention/attention_plan.hpp"

namespace velo::ops {

attention_sequence sequence_of(const attention_problem& problem, std::int64_t batch) {
  attention_sequence s{0, 0, problem.sq, problem.skv, 0, problem.causal != causal_mask::none};
  if (problem.q_ends != nullptr) {
    s.q_first = batch == 0 ? 0 : problem.q_ends[batch - 1];
    s.kv_first = batch == 0 ? 0 : problem.kv_ends[batch - 1];
    s.sq = problem.q_ends[batch] - s.q_first;
    s.skv = problem.kv_ends[batch] - s.kv_first;
  }
  if (problem.causal == causal_mask::right_down) s.shift = s.skv - s.sq;
  return s;
}

const attention_kernels& attention_kernels_for(block_type type, core::isa isa) {
  const bool bf16 = type == block_type::bf16;
  if (isa < core::isa::avx512) return bf16 ? avx2::attention_bf16() : avx2::attention_f32();
  if (!bf16) return avx512::attention_f32();
  return isa < core::isa::avx512_bf16 ? avx512::attention_bf16() : avx512_bf16::attention_bf16();
}

attention_shape::attention_shape(const attention_problem& problem, core::isa isa)
    : bytes(problem.type == block_type::bf16 ? 2 : 4),
      per_word(4 / bytes),
      group(problem.heads / problem.kv_heads),
      pairs(problem.batch * problem.kv_heads),
      kernels(attention_kernels_for(problem.type, isa)) {
  // Whole tiles of 32 where there are tiles: a rest would cost a second configuration each product.
  const bool tiles = isa == core::isa::amx && problem.type == block_type::bf16;
  d = round_up(problem.d, tiles ? 32 : 16);
  dv = round_up(problem.dv, tiles ? 32 : 16);
}

}  // namespace velo::ops
