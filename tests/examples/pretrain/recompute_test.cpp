// What the backward pass makes again: every kind gives the same bits, and keeps less.
#include <catch2/catch.hpp>

#include "trained.hpp"

using namespace pretrain;

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
    settings s = small_settings(dtype);
    const trained usual = train(s);
    REQUIRE(usual.losses.size() == 3);
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
