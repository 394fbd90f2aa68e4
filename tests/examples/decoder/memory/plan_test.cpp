// Activations at the addresses of a memory plan: the same bits, every buffer where it was planned,
// no more memory at the peak than without, and as much from the system: the recorded step leaves
// holes that are too small for the arena, up to 4 % in these models of a few MB.
#include <catch2/catch.hpp>

#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

TEST_CASE("with a plan losses and weights have the same bits, and no more is in use") {
  const temporary t;
  for (const char* dtype : {"bf16", "f32"})
    for (const char* recompute : {"none", "uniform", "selective", "norm"})
      for (const char* away : {"off", "host", "disk"}) {
        INFO(dtype << ", " << recompute << ", " << away);
        settings s = small_settings(dtype);
        s.memory.swap_dir = t.path;
        s.memory.recompute = recompute;
        s.memory.recompute_layers = recompute == std::string("uniform") ? 2 : 0;
        s.memory.swap_activations = s.memory.swap_optimizer = away;
        const trained usual = train(s, 5);
        s.memory.plan = true;
        const trained planned = train(s, 5);
        CHECK(planned.losses == usual.losses);
        CHECK((planned.state == usual.state));
        CHECK(planned.peak <= usual.peak);
        CHECK(planned.reserved <= 1.05 * usual.reserved);
        CHECK(planned.last.mode == VELO_PLAN_REPLAY);
        CHECK(planned.last.allocations > 0);
        CHECK(planned.last.matched == planned.last.allocations);
        CHECK((planned.last.missing == 0 && planned.last.bytes_live == 0));
      }
}
