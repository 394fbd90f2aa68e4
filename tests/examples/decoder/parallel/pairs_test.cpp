// Layouts that together have each pair of choices train as one rank does.
//
// A pair of values is in a layout that pretrain's own checks accept, or in the list of impossible
// pairs, with the words of pretrain's refusal.
#include <cstdlib>
#include <exception>
#include <tuple>

#include "tests/examples/decoder/parallel/impossible_pairs.hpp"
#include "tests/examples/decoder/parallel/pair_covering.hpp"

namespace {

using Catch::Matchers::Contains;
using namespace pairs;

bool is_long() {
  return std::getenv("VELO_PRETRAIN_LONG") != nullptr;
}

std::set<pair_of_values> impossible() {
  std::set<pair_of_values> all;
  for (const impossible_pairs& row : all_impossible_pairs())
    for (const auto& [pair, refused] : row.all()) all.insert(pair);
  return all;
}

// What one rank makes of the same model and text.
class references {
 public:
  explicit references(std::int64_t steps) : steps_(steps) {}
  const outcome& of(const settings& cut) {
    const auto found = all_.find(key(cut));
    if (found != all_.end()) return found->second;
    settings alone = small_model();
    alone.model = cut.model, alone.data = cut.data, alone.optimizer = cut.optimizer;
    return all_.emplace(key(cut), train_for(steps_, alone)).first->second;
  }

 private:
  using kind =
      std::tuple<std::string, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  static kind key(const settings& s) {
    return {s.data.documents, s.model.tied,     s.model.kv_share,
            s.model.heads,    s.model.kv_heads, s.data.accumulation};
  }

  const std::int64_t steps_;
  std::map<kind, outcome> all_;
};

// A layout that fails leaves the others to be tried.
void compare_layout(references& whole, const chosen& which, std::int64_t steps) {
  INFO(text_of(which));
  const settings cut = std::get<settings>(layout_of(which));
  try {
    compare(whole.of(cut), train_for(steps, cut));
  } catch (const std::exception& failed) {
    FAIL_CHECK(failed.what());
  }
}

}  // namespace

// Cuts of 8 ranks, algorithms, orders, recompute and what else changes the work: each value of each
// beside each value of each other, as far as they fit together. VELO_PRETRAIN_LONG: 20 steps of
// all; else 2 of some.
TEST_CASE("pairs of cuts, orders and recompute have the losses and gradients of one rank") {
  const std::int64_t steps = is_long() ? 20 : 2;
  references whole(steps);
  const covering all(is_long() ? 1000 : 16, impossible());
  CHECK(all.layouts.size() >= 16);
  for (const pair_of_values& each : all.without)
    FAIL_CHECK("no layout has " << name_of(each.second) << " and " << name_of(each.first));
  for (const chosen& which : all.layouts) compare_layout(whole, which, steps);
}

// VELO_PRETRAIN_LONG: nor does any layout near it have the pair.
TEST_CASE("pairs of cuts that are called impossible are refused for the reason of their row") {
  std::set<pair_of_values> seen;
  for (const impossible_pairs& row : all_impossible_pairs())
    for (const auto& [pair, refused] : row.all()) {
      INFO(name_of(pair.second) << " and " << name_of(pair.first));
      CHECK(seen.insert(pair).second);
      const auto made = layout_of(refused);
      REQUIRE(std::holds_alternative<std::string>(made));
      CHECK_THAT(std::get<std::string>(made), Contains(row.words));
      if (is_long()) CHECK(text_of(found_near(with_both(pair), pair, 2)).empty());
    }
}
