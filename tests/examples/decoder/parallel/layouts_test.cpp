// A model that ranks share, by tensors, rows of windows, stages and copies, trains as a whole one
// does.
#include <cstdlib>
#include <tuple>

#include "tests/examples/decoder/parallel/named_layouts.hpp"

// VELO_PRETRAIN_LONG: 50 steps.
TEST_CASE("ranks that share a model have the losses and gradients of one rank") {
  const std::int64_t steps = std::getenv("VELO_PRETRAIN_LONG") != nullptr ? 50 : 3;
  // By what changes the losses.
  using key = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::string>;
  static std::map<key, outcome> wholes;
  for (const layout& each : layouts()) DYNAMIC_SECTION(each.name) {
      settings cut = small_model();
      each.set(cut);
      settings whole = cut;
      whole.parallel = {};
      whole.run.zero = false;
      cut.run.ranks = each.ranks;
      const decoder::model_settings& m = cut.model;
      outcome& expected = wholes[{m.tied, m.kv_heads, m.kv_share, m.layers, cut.data.documents}];
      if (expected.losses.empty()) expected = train_for(steps, whole);
      compare(expected, train_for(steps, cut));
    }
}
