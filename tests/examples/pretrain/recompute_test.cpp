// What the backward pass makes again: every kind gives the same bits, and keeps less.
#include "recompute.hpp"

#include <catch2/catch.hpp>

#include "context.hpp"
#include "temporary.hpp"
#include "trainer.hpp"

using namespace pretrain;

namespace {

constexpr std::int64_t steps = 3;

struct trained {
  std::vector<float> losses;
  std::string state;          // weights, masters and moments
  std::uint64_t activations;  // most bytes at a time
  double peak, promise;
};

settings tiny_model(const char* dtype) {
  settings s;
  s.model.hidden = 64, s.model.inner = 192, s.model.layers = 5, s.model.dtype = dtype;
  s.data.sequence = 48, s.data.batch = 3, s.data.accumulation = 2;
  s.run.threads = 2;
  return s;
}

trained train(const settings& s) {
  run_memory memory;
  const velo::context context = make_context(s.run, memory);
  const corpus text = split_text(some_text(60000), 1 << 20);
  trainer t(memory, context, s, text);
  const auto promise = static_cast<double>(t.promise(s.memory));
  t.start();
  for (std::int64_t i = 0; i < steps; ++i) t.step();
  const velo_pool_stats now = memory.stats();
  trained result = {t.losses(), "", now.purpose_peak[VELO_PURPOSE_ACTIVATION],
                    static_cast<double>(now.bytes_peak), promise};
  for (const named_tensor& each : t.weights().training_files())
    result.state.append(static_cast<const char*>(each.data), each.bytes());
  for (const named_tensor& each : t.weights().files())
    result.state.append(static_cast<const char*>(each.data), each.bytes());
  return result;
}

}  // namespace

TEST_CASE("losses and weights have the same bits whatever is made again, and less is kept") {
  struct row {
    const char* kind;
    std::int64_t layers;
    double most;  // of what is kept without
  };
  const row rows[] = {{"full", 0, 0.5},       {"block", 0, 0.5},       {"block", 2, 0.8},
                      {"uniform", 0, 0.5},    {"uniform", 2, 0.7},     {"uniform", 5, 1.01},
                      {"selective", 0, 0.99}, {"activation", 0, 0.95}, {"activation", 3, 0.98},
                      {"norm", 0, 0.95},      {"norm", 1, 0.99}};
  for (const char* dtype : {"bf16", "f32"}) {
    settings s = tiny_model(dtype);
    const trained usual = train(s);
    REQUIRE(usual.losses.size() == steps);
    CHECK(usual.peak == Approx(usual.promise).epsilon(0.02));
    for (const row& each : rows) {
      INFO(each.kind << " of " << each.layers << " layers in " << dtype);
      s.memory.recompute = each.kind;
      s.memory.recompute_layers = each.layers;
      const trained other = train(s);
      CHECK(other.losses == usual.losses);
      CHECK((other.state == usual.state));
      CHECK(other.peak == Approx(other.promise).epsilon(0.02));
      CHECK(static_cast<double>(other.activations) <
            each.most * static_cast<double>(usual.activations));
    }
  }
}
