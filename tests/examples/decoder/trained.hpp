// The results of a few steps of a small model, to be compared bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/train/trainer.hpp"
#include "tests/examples/decoder/temporary.hpp"

struct trained {
  std::vector<float> losses;
  std::string state;                                // weights, masters and moments
  std::uint64_t activations, gradients, optimizer;  // most bytes at a time
  double peak, predicted;                           // of all memory
  double reserved;                                  // most bytes from the system
  double stored = 0;                                // bytes that went out to be swapped
  velo_plan_step last = {};                         // of a memory plan, if there is one
  // Of all steps together.
  velo_recompute_stats recomputed = VELO_RECOMPUTE_STATS_INIT;
};

inline void add_contents(std::string& to, const decoder::named_tensor& of) {
  if (of.data != nullptr) {
    to.append(static_cast<const char*>(of.data), of.bytes());
    return;
  }
  decoder::each_piece(of, [&](std::int64_t first, std::int64_t count) {
    std::vector<float> words(static_cast<std::size_t>(count));
    of.give(first, count, words.data());
    to.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(float));
  });
}

inline decoder::settings small_settings(const char* dtype) {
  decoder::settings s;
  s.model.hidden = 64, s.model.inner = 192, s.model.layers = 5, s.model.dtype = dtype;
  s.data.sequence = 48, s.data.batch = 3, s.data.accumulation = 2;
  s.run.threads = 2;
  return s;
}

inline trained train(const decoder::settings& s, std::int64_t steps = 3) {
  using namespace decoder;
  member one(s);
  const corpus text = split_text(some_text(60000), 1 << 20);
  trainer t(one, s, text);
  trained result;
  result.predicted = static_cast<double>(t.peak_bytes(s.memory));
  const velo_recompute_stats before = one.memory().recomputed();
  t.start();
  for (std::int64_t i = 0; i < steps; ++i) t.step();
  result.losses = t.losses();
  const velo_pool_stats now = one.memory().stats();
  result.activations = now.purpose_peak[VELO_PURPOSE_ACTIVATION];
  result.gradients = now.purpose_peak[VELO_PURPOSE_GRADIENT];
  result.optimizer = now.purpose_peak[VELO_PURPOSE_OPTIMIZER];
  result.peak = static_cast<double>(now.bytes_peak);
  result.reserved = static_cast<double>(now.bytes_reserved_peak);
  if (one.memory().plan()) result.last = one.memory().plan().step();
  result.recomputed = one.memory().recomputed();
  result.recomputed.releases -= before.releases;
  result.recomputed.restores -= before.restores;
  for (const swapper* each : {t.swapped_activations(), t.swapped_optimizer()})
    if (each != nullptr) result.stored += each->total().out;
  const checkpoint saved = t.state("{}");
  for (const auto* all : {&saved.weights, &saved.state})
    for (const named_tensor& each : *all) add_contents(result.state, each);
  return result;
}
