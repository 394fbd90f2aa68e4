// Context-parallel attention under layouts beside those of context_parallel_attention_test.cpp:
// hybrids that are a ring or Ulysses.
#include "tests/sched/parallel/context/required_attention.hpp"

using namespace velo::testing;

namespace {

// A hybrid's ranks, and those of the kind that it is, have the same bits, and may join one call.
void require_same_plan(const local_ranks& all, const attention_case& hybrid,
                       velo_sequence_kind kind) {
  attention_case plain = hybrid;
  plain.desc.kind = kind, plain.desc.ulysses = 1;
  const whole_attention whole(plain);
  const plan_of one(hybrid), other(plain);
  const parts by_hybrid = results_of(all, hybrid), by_plain = results_of(all, plain);
  parts mixed = parts_of(plain, whole, other.plan);
  mixed[0] = std::make_unique<attention_rank>(plain, whole, one.plan, 0);
  all.require([&](const rank_of_group& me) { return mixed[at(me.rank)]->run(me); });
  for (std::size_t r = 0; r < mixed.size(); ++r) {
    CHECK(by_hybrid[r]->same_bits(*by_plain[r]));
    CHECK(mixed[r]->same_bits(*by_plain[r]));
    CHECK(by_hybrid[r]->kept() == by_plain[r]->kept());
  }
}

}  // namespace

TEST_CASE("ranks compute a hybrid of one neighbor as the ring, and of one ring rank as ulysses") {
  for (const char* level : {"2", "1"}) {
    const local_ranks all(4);
    set_all(all, "level", level);
    for (const velo_sequence_cache kept :
         {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL})
      for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>(), {7, 7, 35}}) {
        attention_case of = case_of(VELO_SEQUENCE_HYBRID, 4, 35, 8, 2);
        of.desc.kv_cache = kept, of.ends = ends, of.dtype = bf16;
        for (of.desc.window = 1; of.desc.window < 4; of.desc.window *= 2)
          require_same_plan(all, of, VELO_SEQUENCE_RING);
        of.desc.window = 1, of.desc.ulysses = 4;
        for (of.desc.kv_gather = 0; of.desc.kv_gather < 2; ++of.desc.kv_gather)
          require_same_plan(all, of, VELO_SEQUENCE_ULYSSES);
      }
    attention_case of = case_of(VELO_SEQUENCE_HYBRID_ADAPTIVE, 4, 35, 8, 2);
    require_same_plan(all, of, VELO_SEQUENCE_ADAPTIVE);
    of.desc.ulysses = 4;
    results_of(all, of);
  }
}
