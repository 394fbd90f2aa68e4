// The roofline of a step: a small model counted by hand.
#include "examples/decoder/report/roofline.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "examples/decoder/report/flops.hpp"

using namespace decoder;

namespace {

// Two heads of width 2, one of keys and values; six tokens a micro-batch.
settings small(const char* dtype) {
  settings s;
  s.model.hidden = 4, s.model.layers = 1, s.model.heads = 2, s.model.kv_heads = 1;
  s.model.inner = 6, s.model.vocab = 10, s.model.dtype = dtype;
  s.data.sequence = 3, s.data.batch = 2, s.data.accumulation = 2;
  return s;
}

struct sum {
  double calls = 0, flops = 0, bytes = 0;  // of a step
};

std::map<std::string, sum> sums(const settings& s) {
  std::map<std::string, sum> all;
  for (const operation& one : step_operations(s.model, s.data, s.optimizer.narrow)) {
    sum& to = all[one.name];
    to.calls += one.times;
    to.flops += one.times * one.flops;
    to.bytes += one.times * one.bytes;
    CHECK(one.footprint <= one.bytes);
    CHECK(one.footprint > 0);
  }
  return all;
}

machine_rates flat(double flops, double memory, double cache, double cache_bytes) {
  return {flops, {memory, memory, memory, memory}, {cache, cache, cache, cache}, cache_bytes};
}

}  // namespace

TEST_CASE("flops and bytes of a small f32 model are those counted by hand") {
  auto all = sums(small("f32"));
  // [in, out] of the five matrices: 4x8, 4x4, 4x12, 6x4, 4x10: 160 elements, two micro-batches.
  CHECK(all["matmul"].calls == 2 * 5);
  CHECK(all["matmul"].flops == 2 * 2 * 6 * 160);
  CHECK(all["matmul"].bytes == 2 * 4 * (160 + 6 * (12 + 8 + 16 + 10 + 14)));
  CHECK(all["matmul, input gradient"].bytes == all["matmul"].bytes);
  CHECK(all["matmul_add_fp32"].flops == all["matmul"].flops);
  CHECK(all["matmul_add_fp32"].bytes == 2 * 4 * (2 * 160 + 6 * (12 + 8 + 16 + 10 + 14)));
  // Scores: 2 sequences x 2 heads x 3 x 3 x width 2, half of them visible: 36 multiply-adds.
  CHECK(all["fusion_attention"].flops == 2 * 4 * 36);
  CHECK(all["fusion_attention"].bytes == 2 * 4 * 6 * (4 + 2 + 2 + 4));
  CHECK(all["fusion_attention_backward"].flops == 2 * 10 * 36);
  CHECK(all["fusion_attention_backward"].bytes == 2 * 4 * 6 * (4 * 4 + 4 * 2));
  CHECK(all["rms_norm"].calls == 2 * 3);
  CHECK(all["rms_norm"].bytes == 2 * 3 * 4 * 6 * 4 * 2);
  CHECK(all["rms_norm_backward"].bytes == 2 * 3 * 4 * 6 * 4 * 3);
  CHECK(all["add"].bytes == 2 * 2 * 4 * 6 * 4 * 3);
  CHECK(all["add in place"].bytes == all["add"].bytes);
  CHECK(all["rotary_position_embedding"].bytes == 2 * 4 * 6 * (4 + 2) * 2);
  CHECK(all["swiglu"].bytes == 2 * 4 * 6 * (12 + 6));
  CHECK(all["swiglu_backward"].bytes == 2 * 4 * 6 * (6 + 12 + 12));
  CHECK(all["cross_entropy"].bytes == 2 * 4 * 6 * 10);
  CHECK(all["cross_entropy_backward"].bytes == 2 * 4 * 6 * 10 * 2);
  CHECK(all["embedding"].bytes == 2 * 4 * 6 * 4 * 2);
  CHECK(all["embedding_backward"].bytes == 2 * (4 * 6 * 4 + 8 * 6 * 4));
  // Parameters: 160, the embedding's 40, and three norms of 4.
  CHECK(all["global_norm"].bytes == 4 * 212);
  CHECK(all["apply_fused_adamw"].bytes == 28 * 212);
  CHECK(all["pack"].bytes == 2 * 2 * 4 * 160);
}

TEST_CASE("experts have a row for each choice, and every expert's weights") {
  settings s = small("f32");
  s.model.experts = 3, s.model.experts_per_token = 2, s.model.expert_inner = 5;
  auto all = sums(s);
  // 12 rows; [in, out] of an expert: 4x10, 5x4.
  CHECK(all["grouped_matmul"].calls == 2 * 2);
  CHECK(all["grouped_matmul"].flops == 2 * 2 * 12 * 60);
  CHECK(all["grouped_matmul"].bytes == 2 * 4 * (3 * 60 + 12 * (14 + 9)));
  CHECK(all["grouped_matmul, input gradient"].bytes == all["grouped_matmul"].bytes);
  CHECK(all["grouped_matmul_add_fp32"].bytes == 2 * 4 * (2 * 3 * 60 + 12 * (14 + 9)));
  // 4x8, 4x4, the router's 4x3, 4x10.
  CHECK(all["matmul"].calls == 2 * 4);
  CHECK(all["matmul"].flops == 2 * 2 * 6 * 100);
  CHECK(all["moe_token_permute"].bytes == 2 * 4 * (6 + 12) * 4);
  CHECK(all["moe_token_unpermute_backward"].bytes == 2 * 4 * (6 + 2 * 12) * 4);
  CHECK(all["swiglu"].bytes == 2 * 4 * 12 * (10 + 5));
  // Parameters: 100, those of three experts, the embedding's 40, and three norms of 4.
  CHECK(all["global_norm"].bytes == 4 * (100 + 180 + 40 + 12));
  CHECK(matrix_parameters(s.model) == 100 + 2 * 60);
}

TEST_CASE("dense layers and shared experts are products like others") {
  settings s = small("f32");
  s.model.experts = 3, s.model.experts_per_token = 2, s.model.expert_inner = 5;
  s.model.layers = 2, s.model.dense_layers = 1, s.model.shared_experts = 2;
  auto all = sums(s);
  // Products: 4x8 and 4x4 of both layers; 4x12 and 6x4 of the first; 4x3, 4x20 and 10x4 of the
  // second; 4x10 of the head.
  CHECK(all["matmul"].calls == 2 * (4 + 2 + 3 + 1));
  CHECK(all["matmul"].flops == 2 * 2 * 6 * (2 * 48 + 72 + 132 + 40));
  CHECK(all["grouped_matmul"].calls == 2 * 2);
  CHECK(all["swiglu"].bytes == 2 * 4 * (6 * (12 + 6) + 12 * (10 + 5) + 6 * (20 + 10)));
  CHECK(all["add in place"].calls == 2 * (4 + 2));
  // Parameters: those, three experts, the embedding's 40, and five norms of 4.
  CHECK(all["global_norm"].bytes == 4 * (340 + 180 + 40 + 20));
  CHECK(matrix_parameters(s.model) == 340 + 2 * 60);
}

TEST_CASE("latent attention has its own matrices, norms and widths of heads") {
  settings s = small("f32");
  s.model.attention = "latent", s.model.kv_heads = 2, s.model.q_lora_rank = 3;
  s.model.kv_lora_rank = 5, s.model.qk_nope_head_dim = 1, s.model.qk_rope_head_dim = 2;
  s.model.v_head_dim = 4;
  auto all = sums(s);
  // 4x3, 3x6; 4x5, 4x2, 5x10; 8x4; 4x12, 6x4, 4x10.
  CHECK(all["matmul"].calls == 2 * 9);
  CHECK(all["matmul"].flops == 2 * 2 * 6 * (30 + 78 + 32 + 72 + 40));
  CHECK(all["rms_norm"].bytes == 2 * 4 * 6 * 2 * (3 * 4 + 3 + 5));
  // 2 sequences x 2 heads x 3 x 3 x widths 3 and 4, half of them visible: 63 for both products.
  CHECK(all["fusion_attention"].flops == 2 * 2 * 126);
  CHECK(all["fusion_attention"].bytes == 2 * 4 * 6 * (6 + 6 + 8 + 8));
  CHECK(all["global_norm"].bytes == 4 * (252 + 40 + 12 + 8));
  CHECK(matrix_parameters(s.model) == 252);
}

TEST_CASE("bf16 halves activations, and a tied head has no parameters of its own") {
  settings s = small("bf16");
  s.model.tied = true;
  auto all = sums(s);
  CHECK(all["rms_norm"].bytes == 2 * 3 * 2 * 6 * 4 * 2);
  CHECK(all["matmul_add_fp32"].bytes == 2 * (8 * 160 + 2 * 6 * (12 + 8 + 16 + 10 + 14)));
  CHECK(all["apply_fused_adamw"].bytes == 30 * 172);
  CHECK(all["pack"].bytes == 2 * 2 * 2 * 160);
}

TEST_CASE("bf16 gradients and moments and masters as residuals move fewer bytes") {
  settings s = small("bf16");
  s.model.tied = true;
  s.optimizer.narrow = {true, true, true};
  auto all = sums(s);
  CHECK(all["matmul, weight gradient"].bytes == 2 * (4 * 160 + 2 * 6 * (12 + 8 + 16 + 10 + 14)));
  CHECK(all["global_norm"].bytes == 2 * 172);
  CHECK(all["apply_fused_adamw"].bytes == (2 + 8 + 8) * 172);
  s.optimizer.narrow = {true, false, false};
  CHECK(sums(s)["apply_fused_adamw"].bytes == 28 * 172);
}

TEST_CASE("a layer that shares keys does without their products, weights and rotation") {
  settings s = small("f32");
  s.model.layers = s.model.kv_share = 2;
  auto all = sums(s);
  // [in, out] of nine matrices: 4x8 once and 4x4 three times, 4x12 and 6x4 twice, 4x10.
  CHECK(all["matmul"].calls == 2 * 9);
  CHECK(all["matmul"].flops == 2 * 2 * 6 * 264);
  CHECK(all["pack"].bytes == 2 * 2 * 4 * 264);
  CHECK(all["global_norm"].bytes == 4 * (264 + 40 + 5 * 4));
  CHECK(all["rotary_position_embedding"].calls == 2 * 2);
  CHECK(all["rotary_position_embedding"].bytes == 2 * 4 * 6 * (4 + 2 + 4) * 2);
  CHECK(all["fusion_attention"].bytes == 2 * 2 * 4 * 6 * (4 + 2 + 2 + 4));
  // One adds to gradients of keys and values that it reads.
  CHECK(all["fusion_attention_backward"].bytes == 2 * 4 * 6 * (2 * (4 * 4 + 4 * 2) + 2 * 2));
}

TEST_CASE("operators need the flops of a step, and attention's probabilities once more") {
  settings usual;
  usual.model.kv_share = GENERATE(0, 2, 3);
  double flops = 0, again = 0;
  for (const operation& one : step_operations(usual.model, usual.data, {})) {
    flops += one.times * one.flops;
    if (std::string(one.name) == "fusion_attention_backward") again += one.times * one.flops / 5;
  }
  CHECK(flops - again == Approx(step_flops(usual.model, usual.data)));
}

TEST_CASE("an operator is held to the limit that binds it, and what fits the cache to the cache") {
  const operation product = {"", 1, 8e9, 1e9, 1e9, walk::triad};
  CHECK(seconds_of(product, flat(1e9, 1e9, 1e9, 0)) == Approx(8));
  CHECK(seconds_of(product, flat(1e10, 1e9, 4e9, 0)) == Approx(1));
  CHECK(seconds_of(product, flat(1e12, 1e9, 4e9, 1e9)) == Approx(0.25));
  machine_rates machine = flat(1e9, 1e9, 1e9, 0);
  machine.memory[static_cast<std::size_t>(walk::read)] = 2e9;
  const operation stream = {"", 3, 0, 1e9, 1e9, walk::read};
  CHECK(seconds_of(stream, machine) == Approx(0.5));
  CHECK(roofline_seconds({stream, product}, machine) == Approx(3 * 0.5 + 8));
}
