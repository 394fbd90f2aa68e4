// Messages to experts that travel while something else is computed leave the bits of every step as
// they are, in every layout; and they do travel meanwhile.
#include <catch2/catch.hpp>

#include "tests/examples/decoder/parallel/named_layouts.hpp"
#include "tests/examples/decoder/parallel/saved_model.hpp"

namespace {

settings small_experts() {
  settings s = small_model();
  s.model.experts = 4, s.model.experts_per_token = 3, s.model.expert_inner = 38;
  s.model.balance_loss = 0.1;
  s.parallel.ep = 2;
  return s;
}

const std::vector<layout>& overlapped_layouts() {
  static const std::vector<layout> all = {
      {"copies", 2, [](settings&) {}},
      {"a shared expert, dense layers before", 2,
       [](settings& s) { s.model.shared_experts = 2, s.model.dense_layers = 1; }},
      {"a shared expert over tp 2 with rows cut, all recomputed", 4,
       [](settings& s) {
         s.parallel.tp = 2, s.parallel.sequence_parallel = true;
         s.model.shared_experts = 1, s.memory.recompute = "full";
       }},
      {"pp 2 by dualpipev, a shared expert, a dense layer, capacity", 4,
       [](settings& s) {
         s.parallel.pp = 2, s.parallel.pipeline = "dualpipev";
         s.model.shared_experts = 1, s.model.dense_layers = 1, s.model.capacity_factor = 1.25;
       }},
      {"copies that share the optimizer, in bf16", 4,
       [](settings& s) { s.run.zero = true, s.model.dtype = "bf16"; }},
      {"tp 2", 2, [](settings& s) { s.parallel.tp = 2, s.parallel.sequence_parallel = true; }},
      {"tp 2 with all rows", 4, [](settings& s) { s.parallel.tp = 2; }},
      {"cp 2, documents", 2, [](settings& s) { s.parallel.cp = 2, s.data.documents = "lines"; }},
      {"all recomputed", 2, [](settings& s) { s.memory.recompute = "full"; }},
      {"rows of experts recomputed, swapped", 2,
       [](settings& s) { s.memory.recompute = "mlp", s.memory.swap_activations = "host"; }},
      {"pp 2", 4, [](settings& s) { s.parallel.pp = 2; }},
      {"pp 2 by zbh1", 4, [](settings& s) { s.parallel.pp = 2, s.parallel.pipeline = "zbh1"; }},
      {"pp 2 by dualpipev", 4,
       [](settings& s) { s.parallel.pp = 2, s.parallel.pipeline = "dualpipev"; }},
      {"pp 2 by dualpipev, tp 2 with all rows, mlp recomputed", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.tp = 2, s.parallel.pipeline = "dualpipev";
         s.memory.recompute = "mlp";
       }},
      {"pp 2 by dualpipev, uneven stages, tied", 4,
       [](settings& s) {
         s.parallel.pp = 2, s.parallel.pipeline = "dualpipev";
         s.parallel.stage_layers = "2,0,1,1", s.model.tied = true;
       }},
      {"pp 2 interleaved, cp 2, the optimizer shared", 8, [](settings& s) {
         s.parallel.pp = s.parallel.cp = s.parallel.vpp = 2;
         s.parallel.pipeline = "interleaved", s.run.zero = true;
       }}};
  return all;
}

bool has_pairs(const settings& s) {
  return s.parallel.pipeline == "dualpipev" || s.parallel.pipeline == "interleaved";
}

}  // namespace

TEST_CASE("messages beside what is computed leave the bits of every loss and gradient") {
  for (const layout& each : overlapped_layouts()) DYNAMIC_SECTION(each.name) {
      settings s = small_experts();
      each.set(s);
      s.run.ranks = each.ranks;
      const outcome expected = train_for(3, s);
      for (const char* kind : {"shared", "fused"}) {
        if (*kind == 'f' && !has_pairs(s)) continue;
        INFO(kind);
        s.parallel.expert_overlap = kind;
        CHECK(train_for(3, s) == expected);
      }
    }
}
