// Trains a small model on ranks that share it, and compares the outcome with one rank's: losses,
// gradient norms, and each tensor of the first step's gradient.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

using decoder::settings;

// Four layers and heads that neither 2 nor 4 tensor ranks divide, in f32; threads as ranks.
inline settings small_model() {
  settings s = small_settings("f32");
  s.model.hidden = 96, s.model.heads = 6, s.model.kv_heads = 3, s.model.inner = 110;
  s.model.layers = 4, s.model.vocab = 261;
  s.data.sequence = 50, s.data.batch = 4, s.data.accumulation = 4;
  s.run.threads = 1;
  s.run.transport = "local";
  // A cut rounds differently. At this rate the difference does not grow to 1e-5 in 50 steps.
  s.optimizer.learning_rate = 1e-3;
  return s;
}

struct outcome {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> gradients;  // of the first step
  bool operator==(const outcome& other) const {
    return losses == other.losses && norms == other.norms && gradients == other.gradients;
  }
};

inline std::map<std::string, std::vector<float>> gradients_in(const std::string& path,
                                                              const settings& s) {
  std::map<std::string, std::vector<float>> all;
  const decoder::safetensors_reader file(path);
  for (const decoder::weight_slice& each : decoder::weight_layout(s.model).slices) {
    std::vector<float>& values = all[each.name];
    values.resize(static_cast<std::size_t>(each.elements()));
    file.read({each.name, decoder::element::f32, each.shape,
               reinterpret_cast<std::byte*>(values.data())});
  }
  return all;
}

// Runs `job` with the trainer of each rank.
inline void on_trainers(const settings& s,
                        const std::function<void(decoder::member&, decoder::trainer&)>& job) {
  const std::string whole = some_text(60000);
  const decoder::corpus text =
      s.data.has_documents()
          ? decoder::split_documents(whole, decoder::line_ends(whole, {whole.size()}), 1 << 20)
          : decoder::split_text(whole, 1 << 20);
  decoder::on_all_ranks(s, {}, [&](decoder::member& rank) {
    split(rank, s);
    decoder::trainer one(rank, s, text);
    job(rank, one);
    return 0;
  });
}

inline void take_steps(decoder::member& rank, decoder::trainer& one, std::int64_t steps,
                       outcome& to) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto done = one.step();
    if (!rank.leads()) continue;
    to.losses.push_back(done->loss);
    to.norms.push_back(done->grad_norm);
  }
}

inline outcome train_for(std::int64_t steps, settings s) {
  const temporary folder;
  s.schedule.steps = steps;
  s.run.gradients = folder / "gradients.safetensors";
  outcome made;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    take_steps(rank, one, steps, made);
  });
  made.gradients = gradients_in(s.run.gradients, s);
  return made;
}

inline double norm_of(const std::vector<float>& x, const std::vector<float>& less) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double each = static_cast<double>(x[i]) - static_cast<double>(less[i]);
    sum += each * each;
  }
  return std::sqrt(sum);
}

inline void compare(const outcome& whole, const outcome& cut) {
  REQUIRE(cut.losses.size() == whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    CHECK(cut.losses[i] == Approx(whole.losses[i]).epsilon(1e-5).margin(0));
    CHECK(cut.norms[i] == Approx(whole.norms[i]).epsilon(1e-5).margin(0));
  }
  for (const auto& [name, expected] : whole.gradients) {
    INFO(name);
    const std::vector<float> zero(expected.size());
    const double norm = norm_of(expected, zero);
    CHECK(norm > 0);
    CHECK(norm_of(cut.gradients.at(name), expected) <= 1e-5 * norm);
  }
}
