// Experts with a capacity: which choices they drop, the gradients of those that they keep, and that
// both are the same on any ranks.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/examples/decoder/parallel/named_layouts.hpp"

namespace {

// Experts that drop choices in every step: the first layers' routers prefer some of them.
settings small_limited(double factor) {
  settings s = small_model();
  s.model.experts = 4, s.model.experts_per_token = 2, s.model.expert_inner = 38;
  s.model.balance_loss = 0.1;
  s.model.capacity_factor = factor;
  return s;
}

const std::vector<layout>& limited_layouts() {
  static const std::vector<layout> all = {
      {"two copies", 2, [](settings&) {}},
      {"ep 2 over copies that share the optimizer", 2,
       [](settings& s) { s.parallel.ep = 2, s.run.zero = true; }},
      {"ep 2 in two copies", 4, [](settings& s) { s.parallel.ep = 2; }},
      {"ep 2 over tp 2 with all rows, all recomputed", 2,
       [](settings& s) { s.parallel.tp = s.parallel.ep = 2, s.memory.recompute = "full"; }},
      {"cp 2", 2, [](settings& s) { s.parallel.cp = 2; }},
      {"pp 2 by zbh1, ep 2", 4,
       [](settings& s) { s.parallel.pp = s.parallel.ep = 2, s.parallel.pipeline = "zbh1"; }},
      {"pp 2 by dualpipev, tp 2", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.tp = 2, s.parallel.pipeline = "dualpipev";
         s.parallel.sequence_parallel = true;
       }},
      {"tp 2 that cut each expert, ep 2 over cp 2", 4,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = s.parallel.ep = 2, s.parallel.etp = 0;
         s.parallel.sequence_parallel = true;
       }},
      {"tp 2, pp 2, cp 2, ep 2", 8, [](settings& s) {
         s.parallel.tp = s.parallel.pp = s.parallel.cp = s.parallel.ep = 2;
         s.parallel.sequence_parallel = true;
       }}};
  return all;
}

}  // namespace

// VELO_PRETRAIN_LONG: 20 steps.
TEST_CASE("experts drop the same choices on any ranks, with the losses and gradients of one") {
  const std::int64_t steps = std::getenv("VELO_PRETRAIN_LONG") != nullptr ? 20 : 3;
  for (const char* drop : {"probability", "position"})
    for (const bool pad : {false, true}) {
      settings whole = small_limited(0.9);
      whole.model.capacity_drop = drop, whole.model.capacity_pad = pad;
      const outcome expected = train_for(steps, whole);
      for (const layout& each : limited_layouts()) {
        INFO(drop << ", padded " << pad << ", " << each.name);
        settings cut = whole;
        each.set(cut);
        cut.run.ranks = each.ranks;
        compare(expected, train_for(steps, cut));
      }
    }
}

// The first rows of documents are alike, so only rounding orders their weights.
TEST_CASE("documents drop the same choices by position on any ranks, and none for padding") {
  settings whole = small_limited(0.8);
  whole.model.capacity_drop = "position";
  whole.data.documents = "lines";
  const outcome expected = train_for(3, whole);
  settings cut = whole;
  cut.parallel.tp = cut.parallel.cp = cut.parallel.ep = 2, cut.parallel.sequence_parallel = true;
  cut.run.ranks = 4;
  compare(expected, train_for(3, cut));
}

TEST_CASE("a capacity that nobody exceeds changes no bit, a smaller one does") {
  settings s = small_limited(0);
  const outcome whole = train_for(2, s);
  s.model.capacity_factor = 4;
  CHECK(train_for(2, s) == whole);
  s.model.capacity_pad = true;
  CHECK(train_for(2, s) == whole);
  s.model.capacity_factor = 0.5;
  const outcome padded = train_for(2, s);
  CHECK(padded.losses != whole.losses);
  s.model.capacity_pad = false;
  CHECK(train_for(2, s) == padded);
  s.model.capacity_drop = "position";
  CHECK(train_for(2, s).losses != padded.losses);
}

TEST_CASE("with a capacity of each rank's own tokens ranks drop others") {
  settings s = small_limited(0.8);
  const outcome whole = train_for(2, s);
  s.model.capacity_by_rank = true;
  CHECK(train_for(2, s) == whole);
  s.run.ranks = 2, s.parallel.ep = 2;
  const outcome cut = train_for(2, s);
  CHECK(cut.losses != whole.losses);
  CHECK(cut.losses.front() == Approx(whole.losses.front()).epsilon(1e-2));
  s.model.capacity_pad = true;
  CHECK(train_for(2, s) == cut);
}

// The balance loss of a model of one layer adds the same to the router's gradient whatever is
// dropped, since it counts choices before that.
TEST_CASE("the balance loss counts the choices that are dropped") {
  const auto gate_of = [](double factor, double balance) {
    settings s = small_limited(factor);
    s.model.layers = 1, s.model.balance_loss = balance;
    return train_for(1, s).gradients.at("model.layers.0.block_sparse_moe.gate.weight");
  };
  const std::vector<float> all = gate_of(0, 0.1), without = gate_of(0, 0), kept = gate_of(0.3, 0.1),
                           kept_without = gate_of(0.3, 0);
  CHECK(all != kept);
  double square = 0, wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double wanted = all[i] - without[i], got = kept[i] - kept_without[i];
    square += wanted * wanted, wrong += (wanted - got) * (wanted - got);
  }
  CHECK(square > 0);
  CHECK(wrong <= 1e-8 * square);
}
