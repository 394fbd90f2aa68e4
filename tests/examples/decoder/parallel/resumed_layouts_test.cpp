// Training goes on under any other layout from the bits that a checkpoint has.
#include <cstdlib>

#include "examples/decoder/pipeline/stage_plan.hpp"
#include "tests/examples/decoder/parallel/named_layouts.hpp"
#include "tests/examples/decoder/parallel/saved_model.hpp"

namespace {

// Whether ranks with these settings train the model of others, on the same text.
bool trains_the_same(const settings& one, const settings& other) {
  return one.model.tied == other.model.tied && one.model.kv_heads == other.model.kv_heads &&
         one.model.kv_share == other.model.kv_share && one.model.layers == other.model.layers &&
         one.data.documents == other.data.documents;
}

// Whether no stage begins with a layer that shares the keys of the one before it.
bool stages_have_keys(const settings& s) {
  if (s.parallel.pp == 1) return true;
  const decoder::stage_plan plan(s);
  for (int stage = 0; stage < plan.stages(); ++stage) {
    const decoder::stage_range held = plan.layers_of(stage);
    if (held.count() > 0 && s.model.shares_keys(held.first)) return false;
  }
  return true;
}

struct cut_model {
  const char* name;
  settings set;
};

// The model of `base` in each layout that trains it.
std::vector<cut_model> layouts_of(const settings& base) {
  std::vector<cut_model> all;
  for (const layout& each : layouts()) {
    settings s = base;
    each.set(s);
    s.run.ranks = each.ranks;
    if (trains_the_same(s, base) && stages_have_keys(s)) all.push_back({each.name, s});
  }
  return all;
}

}  // namespace

// bf16: an inner width of 110 cut in two puts two ranks' elements into a word of the file. With
// VELO_PRETRAIN_LONG every pair of layouts in each kind; else each layout begins once, in one kind,
// and another goes on.
TEST_CASE("a checkpoint of any layout has the same bits under any other, and training goes on") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::pair<const char*, std::int64_t> kinds[] = {{"f32", 0}, {"bf16", 0}, {"bf16", 2}};
  for (const auto& [type, kv_share] : kinds) {
    settings base = small_model();
    base.model.dtype = type;
    base.model.kv_share = kv_share;
    base.schedule.steps = 4;
    outcome whole;
    on_trainers(base, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      take_steps(rank, one, 4, whole);
    });
    const std::vector<cut_model> all = layouts_of(base);
    for (std::size_t from = 0; from < all.size(); ++from) {
      if (!is_long && kv_share == 0 && (from % 2 == 0) != (*type == 'f')) continue;
      const temporary folder;
      outcome made;
      on_trainers(all[from].set, [&](decoder::member& rank, decoder::trainer& one) {
        one.start();
        take_steps(rank, one, 2, made);
        save(rank, one, folder / "first");
      });
      for (std::size_t to = 0; to < all.size(); ++to) {
        if (!is_long && to != (from + 5) % all.size()) continue;
        INFO(type << ", from " << all[from].name << " to " << all[to].name);
        outcome on = made;
        on_trainers(all[to].set, [&](decoder::member& rank, decoder::trainer& one) {
          one.resume(decoder::checkpoint_reader(folder / "first"));
          save(rank, one, folder / "second");
          take_steps(rank, one, 2, on);
        });
        CHECK((contents_of(folder / "first") == contents_of(folder / "second")));
        REQUIRE(on.losses.size() == 4);
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(on.losses[i] ==
                Approx(whole.losses[i]).epsilon(*type == 'f' ? 1e-5 : 2e-2).margin(0));
      }
    }
  }
}
