// The choice of experts by float32 values, where rounding cannot change it.
//
// Logits that are compared as they are, are exact, and so is their choice. Scores with a bias and
// sums of two scores are known to a margin: a choice whose neighbors lie further apart is that of
// choose_experts (expert_choice.hpp), any other is left to it. Cost: k passes of a vector unit over
// the values; the exact choice takes an exponential in double an expert.
#pragma once

#include "ops/experts/expert_choice.hpp"
#include "ops/experts/topk_router.hpp"

namespace velo::ops {

// A thread's scratch, and the choice of a token in it.
class quick_choice {
 public:
  static std::size_t floats(const choice_rule& rule) {
    return static_cast<std::size_t>(rule.experts + rule.groups) + 2 * (most + 1);
  }
  quick_choice(const topk_router_kernels& kernels, const choice_rule& rule, float* area)
      : kernels_(kernels),
        rule_(rule),
        values_(area),
        groups_(values_ + rule.experts),
        found_(groups_ + rule.groups),
        places_(reinterpret_cast<std::int32_t*>(found_ + most + 1)) {}

  // Chooses as choose_experts does; false where it cannot tell.
  template <class T>
  bool choose(const T* logits, const float* scores, std::int32_t* chosen) const {
    if (rule_.k > most || rule_.groups > most) return false;
    const bool scored = compares_scores(rule_);
    kernels_.values(
        router_values<T>{logits, scored ? scores : nullptr, rule_.bias, rule_.experts, values_});
    if (rule_.groups > 1 && !keep_groups(scored)) return false;
    if (!find(values_, rule_.experts, rule_.k, scored ? margin : 0)) return false;
    for (std::int64_t j = 0; j < rule_.k; ++j) chosen[j] = places_[j];
    return true;
  }

 private:
  static constexpr std::int64_t most = 64;  // that are looked for one after another
  // Float32 scores are within 3e-6 of the exact ones, and sums of two within twice that.
  static constexpr float margin = 1e-5f;

  bool keep_groups(bool scored) const;
  bool find(float* values, std::int64_t n, std::int64_t count, float apart) const;

  const topk_router_kernels& kernels_;
  const choice_rule& rule_;
  float *values_, *groups_, *found_;
  std::int32_t* places_;
};

}  // namespace velo::ops
