// Rows of tokens by expert and back: 4096 tokens of 4096 numbers, two choices of 64 experts.
#include <algorithm>
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t tokens = 4096, choices = 2, experts = 64, width = 4096;
constexpr std::int64_t slots = tokens * choices;

// The row of choice f where 128 choices f, f + 64, .. have each expert.
std::int64_t row_of(std::int64_t f) {
  return f % experts * (slots / experts) + f / experts;
}

void fill_permute(experiment& e, dtype type) {
  tensor& x = e.random(type, {tokens, width});
  tensor& indices = e.zeros(dtype::i64, {tokens, choices});
  tensor& permuted = e.zeros(type, {slots, width});
  for (std::int64_t f = 0; f < slots; ++f) indices.set(f, static_cast<double>(f % experts));
  e.velo("moe_token_permute", {{"tokens", x.view()},
                               {"indices", indices.view()},
                               {"permuted", permuted.view()},
                               {"num_experts", experts}});
  e.check([&x, &permuted] {
    return sampled_error(
        slots, [&](std::int64_t f) { return permuted.at(row_of(f) * width); },
        [&](std::int64_t f) { return x.at(f / choices * width); });
  });
}

void fill_unpermute(experiment& e, dtype type) {
  tensor& permuted = e.random(type, {slots, width});
  tensor& indices = e.zeros(dtype::i64, {slots});
  tensor& probs = e.random(dtype::f32, {tokens, choices});
  tensor& y = e.zeros(type, {tokens, width});
  for (std::int64_t f = 0; f < slots; ++f) indices.set(f, static_cast<double>(row_of(f)));
  e.velo("moe_token_unpermute", {{"permuted", permuted.view()},
                                 {"sorted_indices", indices.view()},
                                 {"probs", probs.view()},
                                 {"tokens", y.view()}});
  e.check([&permuted, &probs, &y] {
    return sampled_error(
        tokens, [&](std::int64_t t) { return y.at(t * width); },
        [&](std::int64_t t) {
          double sum = 0;
          for (std::int64_t f = t * choices; f < (t + 1) * choices; ++f)
            sum += probs.at(f) * permuted.at(row_of(f) * width);
          return sum;
        });
  });
}

void fill_permute_backward(experiment& e, dtype type) {
  tensor& dpermuted = e.random(type, {slots, width});
  tensor& indices = e.zeros(dtype::i64, {slots});
  tensor& dtokens = e.zeros(type, {tokens, width});
  for (std::int64_t f = 0; f < slots; ++f) indices.set(f, static_cast<double>(row_of(f)));
  e.velo("moe_token_permute_backward", {{"dpermuted", dpermuted.view()},
                                        {"sorted_indices", indices.view()},
                                        {"dtokens", dtokens.view()},
                                        {"tokens", tokens}});
  e.check([&dpermuted, &dtokens] {
    return sampled_error(
        tokens, [&](std::int64_t t) { return dtokens.at(t * width); },
        [&](std::int64_t t) {
          double sum = 0;
          for (std::int64_t f = t * choices; f < (t + 1) * choices; ++f)
            sum += dpermuted.at(row_of(f) * width);
          return sum;
        });
  });
}

// Reads the rows for the gradient of the probabilities, and writes their own.
void fill_unpermute_backward(experiment& e, dtype type) {
  tensor& dy = e.random(type, {tokens, width});
  tensor& permuted = e.random(type, {slots, width});
  tensor& indices = e.zeros(dtype::i64, {slots});
  tensor& probs = e.random(dtype::f32, {tokens, choices});
  tensor& dpermuted = e.zeros(type, {slots, width});
  tensor& dprobs = e.zeros(dtype::f32, {tokens, choices});
  for (std::int64_t f = 0; f < slots; ++f) indices.set(f, static_cast<double>(row_of(f)));
  e.velo("moe_token_unpermute_backward", {{"dy", dy.view()},
                                          {"permuted", permuted.view()},
                                          {"sorted_indices", indices.view()},
                                          {"probs", probs.view()},
                                          {"dpermuted", dpermuted.view()},
                                          {"dprobs", dprobs.view()}});
  e.check([&dy, &probs, &dpermuted] {
    return sampled_error(
        slots, [&](std::int64_t f) { return dpermuted.at(row_of(f) * width); },
        [&](std::int64_t f) { return probs.at(f) * dy.at(f / choices * width); });
  });
}

// 8 of 256 experts for 8192 tokens, as DeepSeek-V3 chooses them.
constexpr std::int64_t routed = 8192, all_experts = 256, chosen = 8;

void fill_router(experiment& e, dtype type) {
  tensor& logits = e.random(type, {routed, all_experts});
  tensor& weights = e.zeros(dtype::f32, {routed, chosen});
  tensor& indices = e.zeros(dtype::i64, {routed, chosen});  // room for int32
  auto* first = static_cast<std::int32_t*>(indices.data());
  const tensor_view places(first, {routed, chosen});
  e.velo(
      "topk_router",
      {{"logits", logits.view()}, {"weights", weights.view()}, {"indices", places}, {"k", chosen}});
  e.check([&weights] {
    return sampled_error(
        routed,
        [&](std::int64_t t) {
          double sum = 0;
          for (std::int64_t j = 0; j < chosen; ++j) sum += weights.at(t * chosen + j);
          return sum;
        },
        [](std::int64_t) { return 1.0; });
  });
}

void fill_router_backward(experiment& e, dtype type) {
  tensor& logits = e.random(type, {routed, all_experts});
  tensor& dweights = e.random(dtype::f32, {routed, chosen});
  tensor& dlogits = e.zeros(type, {routed, all_experts});
  tensor& indices = e.zeros(dtype::i64, {routed, chosen});  // room for int32
  auto* first = static_cast<std::int32_t*>(indices.data());
  for (std::int64_t i = 0; i < routed * chosen; ++i)
    first[i] = static_cast<std::int32_t>(i % chosen * (all_experts / chosen) + i / chosen % 32);
  const tensor_view places(first, {routed, chosen});
  e.velo("topk_router_backward", {{"logits", logits.view()},
                                  {"indices", places},
                                  {"dweights", dweights.view()},
                                  {"dlogits", dlogits.view()}});
  // The weights of a token sum to 1, so that its gradients sum to 0.
  e.check([&dlogits] {
    double worst = 0;
    for (std::int64_t t = 0; t < routed; t += 64) {
      double sum = 0, all = 0;
      for (std::int64_t i = t * all_experts; i < (t + 1) * all_experts; ++i)
        sum += dlogits.at(i), all += std::abs(dlogits.at(i));
      worst = std::max(worst, std::abs(sum) / all);
    }
    return worst;
  });
}

// 2 of 64 experts for 8192 tokens, whose weights sum to 1 where both are kept.
constexpr std::int64_t gated_experts = 64;

void fill_gate(experiment& e, dtype type) {
  tensor& logits = e.random(type, {routed, gated_experts});
  tensor& weights = e.zeros(dtype::f32, {routed, choices});
  tensor& room = e.zeros(dtype::i64, {routed, choices});  // for indices and positions in int32
  auto* first = static_cast<std::int32_t*>(room.data());
  const tensor_view indices(first, {routed, choices});
  const tensor_view positions(first + routed * choices, {routed, choices});
  e.velo("capacity_gate", {{"logits", logits.view()},
                           {"weights", weights.view()},
                           {"indices", indices},
                           {"positions", positions},
                           {"k", choices},
                           {"capacity", routed}});
  e.check([&weights] {
    return sampled_error(
        routed,
        [&](std::int64_t t) { return weights.at(t * choices) + weights.at(t * choices + 1); },
        [](std::int64_t) { return 1.0; });
  });
}

// A row that reads and writes rows of the width: `streams` of them a token.
row moved_row(const char* name, dtype type, std::int64_t streams,
              std::function<void(experiment&)> fill) {
  constexpr plane moved{slots, width, "dram"};
  row made = streaming_row(name, type, moved, 2, std::move(fill));
  made.shape = "4096x4096 2 64";
  made.torch.clear();
  made.work = static_cast<double>(streams * tokens * width * bytes_of(type));
  return made;
}

}  // namespace

void list_experts(std::vector<row>& rows) {
  constexpr std::int64_t one_way = 1 + choices;
  for (dtype type : operator_types) {
    rows.push_back(moved_row("moe_token_permute", type, one_way,
                             [type](experiment& e) { fill_permute(e, type); }));
    rows.push_back(moved_row("moe_token_unpermute", type, one_way,
                             [type](experiment& e) { fill_unpermute(e, type); }));
    rows.push_back(moved_row("moe_token_permute_backward", type, one_way,
                             [type](experiment& e) { fill_permute_backward(e, type); }));
    rows.push_back(moved_row("moe_token_unpermute_backward", type, one_way + choices,
                             [type](experiment& e) { fill_unpermute_backward(e, type); }));
    constexpr plane logits{routed, all_experts, "cache"};
    row router = streaming_row("topk_router", type, logits, 1,
                               [type](experiment& e) { fill_router(e, type); });
    router.torch.clear();
    rows.push_back(std::move(router));
    row gradient = streaming_row("topk_router_backward", type, logits, 2,
                                 [type](experiment& e) { fill_router_backward(e, type); });
    gradient.torch.clear();
    rows.push_back(std::move(gradient));
    constexpr plane gate_logits{routed, gated_experts, "cache"};
    row gate = streaming_row("capacity_gate", type, gate_logits, 1,
                             [type](experiment& e) { fill_gate(e, type); });
    gate.torch.clear();
    rows.push_back(std::move(gate));
  }
}

}  // namespace velo::bench
