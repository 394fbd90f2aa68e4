// Rows of tokens by expert and back: 4096 tokens of 4096 numbers, two choices of 64 experts.
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

}  // namespace

void list_experts(std::vector<row>& rows) {
  constexpr plane moved{slots, width, "dram"};
  for (dtype type : operator_types) {
    for (const bool back : {false, true}) {
      row made = streaming_row(
          back ? "moe_token_unpermute" : "moe_token_permute", type, moved, 2,
          [type, back](experiment& e) { back ? fill_unpermute(e, type) : fill_permute(e, type); });
      made.shape = "4096x4096 2 64";
      made.torch.clear();
      made.work = static_cast<double>((tokens + slots) * width * bytes_of(type));
      rows.push_back(std::move(made));
    }
    constexpr plane logits{routed, all_experts, "cache"};
    row router = streaming_row("topk_router", type, logits, 1,
                               [type](experiment& e) { fill_router(e, type); });
    router.torch.clear();
    rows.push_back(std::move(router));
  }
}

}  // namespace velo::bench
