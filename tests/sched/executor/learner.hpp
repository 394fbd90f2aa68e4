// A rank that trains: a few weights for each of its stages, gradients, clipping and AdamW, in plain
// loops. Its steps may be validated late; the result must be the same.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

struct learner {
  using vec = std::array<float, 4>;
  struct parameters {
    vec weight{0.9f, 1.1f, -0.8f, 0.7f}, first{}, second{};
    bool operator==(const parameters& other) const { return bits() == other.bits(); }
    std::array<std::uint32_t, 12> bits() const {
      std::array<std::uint32_t, 12> all;
      const vec* const from[] = {&weight, &first, &second};
      for (std::size_t i = 0; i < 3; ++i) std::memcpy(&all[4 * i], from[i]->data(), sizeof(vec));
      return all;
    }
  };
  struct stage {
    parameters now, before;
    vec gradient{};
  };
  struct cell {
    vec input, output, gradient, back;
  };

  std::int32_t rank = 0, chain = 0;
  float bound = 0;
  std::pair<int, int> poisoned{-1, -1};  // run and rank whose gradient is not a number
  std::set<std::int32_t> fails_at;       // numbers of calls of step that fail
  std::function<void(const learner&, const velo_executor_call&)> before_forward = nullptr;

  std::map<std::int32_t, stage> stages;
  std::map<std::pair<std::int32_t, std::int32_t>, cell> cells;
  std::vector<double> losses;  // by run
  int runs = 0, measured = 0, steps = 0, rollbacks = 0, forgotten = 0, forwards = 0;
  bool gradients_are_old = true;

  void begin() {
    ++runs;
    losses.push_back(0);
  }
  bool begins(std::int32_t at) const { return at % chain == 0; }
  bool ends(std::int32_t at) const { return (at + 1) % chain == 0; }

  static velo_tensor as_tensor(vec& of) {
    static const std::int64_t shape[] = {4};
    velo_tensor made{};
    made.data = of.data();
    made.device.type = VELO_DEVICE_CPU;
    made.ndim = 1;
    made.dtype = f32;
    made.shape = shape;
    return made;
  }
  static vec given(const velo_tensors& all) {
    vec made;
    std::memcpy(made.data(), all.data[0].data, sizeof made);
    return made;
  }

  velo_status act(velo_executor_call& call) {
    const velo_action& a = call.action;
    cell& at = cells[{a.stage, a.microbatch}];
    stage& of = stages[a.stage];
    if (a.kind == VELO_ACTION_F) return forward(call, at, of);
    if (std::exchange(gradients_are_old, false))
      for (auto& [number, each] : stages) each.gradient = {};
    if (a.kind != VELO_ACTION_W) {
      at.gradient = ends(a.stage) ? at.output : given(call.inputs);
      for (std::size_t i = 0; i < 4; ++i)
        at.back[i] = at.gradient[i] * of.now.weight[i] + 0.25f * at.gradient[(i + 3) % 4];
      if (!begins(a.stage)) call.outputs[0] = as_tensor(at.back), call.output_count = 1;
    }
    if (a.kind != VELO_ACTION_I)
      for (std::size_t i = 0; i < 4; ++i) of.gradient[i] += at.gradient[i] * at.input[i];
    return VELO_OK;
  }

  velo_status forward(velo_executor_call& call, cell& at, const stage& of) {
    if (before_forward) before_forward(*this, call);
    ++forwards;
    const velo_action& a = call.action;
    for (std::size_t i = 0; begins(a.stage) && i < 4; ++i)
      at.input[i] =
          0.1f * static_cast<float>((a.microbatch * 7 + runs * 5 + static_cast<int>(i)) % 11) -
          0.5f;
    if (!begins(a.stage)) at.input = given(call.inputs);
    for (std::size_t i = 0; i < 4; ++i)
      at.output[i] = at.input[i] * of.now.weight[i] + 0.25f * at.input[(i + 1) % 4];
    if (ends(a.stage))
      for (const float each : at.output) losses.back() += static_cast<double>(each * each);
    else
      call.outputs[0] = as_tensor(at.output), call.output_count = 1;
    return VELO_OK;
  }

  double sum_of_squares() {
    measured = runs;
    gradients_are_old = true;
    if (poisoned == std::make_pair(runs, static_cast<int>(rank)))
      stages.begin()->second.gradient[1] = std::numeric_limits<float>::quiet_NaN();
    double sum = 0;
    for (const auto& [number, each] : stages)
      for (const float one : each.gradient) sum += static_cast<double>(one) * one;
    return sum;
  }
  double decide(const double* sums, std::int32_t known, std::int32_t ranks) const {
    double sum = 0;
    for (std::int32_t i = 0; i < known; ++i) sum += sums[i];
    const float norm = static_cast<float>(std::sqrt(sum));
    if (norm <= bound) return 1;
    if (known < ranks) return std::numeric_limits<double>::quiet_NaN();
    return std::isfinite(norm) ? static_cast<double>(bound / norm) : 0;
  }
  velo_status step(std::int32_t number, double factor, bool final) {
    stage& of = stages[number];
    if (!final) of.before = of.now;
    const auto scale = static_cast<float>(factor), t = static_cast<float>(measured);
    for (std::size_t i = 0; i < 4; ++i) {
      const float g = of.gradient[i] * scale;
      parameters& p = of.now;
      p.first[i] = 0.9f * p.first[i] + 0.1f * g;
      p.second[i] = 0.95f * p.second[i] + 0.05f * g * g;
      p.weight[i] -= 0.02f * (p.first[i] / (1 - std::pow(0.9f, t))) /
                     (std::sqrt(p.second[i] / (1 - std::pow(0.95f, t))) + 1e-8f);
    }
    return fails_at.count(steps++) == 0 ? VELO_OK : VELO_ERR_IO;
  }
  void roll_back() {
    ++rollbacks;
    for (auto& [number, each] : stages) each.now = each.before;
  }
  void forget() {
    ++forgotten;
    losses.back() = 0;
    cells.clear();
  }

  static velo_status act(void* me, velo_executor_call* call) {
    return static_cast<learner*>(me)->act(*call);
  }
  static velo_executor_validation validation() {
    velo_executor_validation made = VELO_EXECUTOR_VALIDATION_INIT;
    made.state_size = sizeof(double);
    made.measure = [](void* me, velo_stream, void* state) -> velo_status {
      *static_cast<double*>(state) = static_cast<learner*>(me)->sum_of_squares();
      return VELO_OK;
    };
    made.decide = [](void* me, const void* states, std::int32_t known, std::int32_t ranks,
                     double* factor) -> velo_status {
      *factor = static_cast<learner*>(me)->decide(static_cast<const double*>(states), known, ranks);
      return VELO_OK;
    };
    made.step = [](void* me, velo_stream, const velo_action* a, double factor,
                   std::int32_t final) -> velo_status {
      return static_cast<learner*>(me)->step(a->stage, factor, final != 0);
    };
    made.rollback = [](void* me, velo_stream) -> velo_status {
      static_cast<learner*>(me)->roll_back();
      return VELO_OK;
    };
    made.forget = [](void* me) -> velo_status {
      static_cast<learner*>(me)->forget();
      return VELO_OK;
    };
    return made;
  }
};

}  // namespace velo::testing
