// Context-parallel attention under layouts beside those of context_parallel_attention_test.cpp:
// hybrids that are a ring or Ulysses; positions, caches and documents in rings of windows; masks of
// windows.
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

namespace {

// Rings by their windows, and hybrids by theirs, of so many ranks.
std::vector<attention_case> windowed(std::int64_t ranks, std::int64_t sequence,
                                     std::int64_t kv_heads) {
  std::vector<attention_case> all;
  for (const std::int64_t neighbors : {1, 2, 4})
    for (const std::int64_t window : {1, 2, 4}) {
      const std::int64_t ring = ranks / neighbors;
      if (ranks % neighbors != 0 || ring < 2 || (window > 1 && window >= ring)) continue;
      all.push_back(case_of(neighbors == 1 ? VELO_SEQUENCE_RING : VELO_SEQUENCE_HYBRID, ranks,
                            sequence, 4, kv_heads));
      all.back().desc.ulysses = neighbors, all.back().desc.window = window;
    }
  return all;
}

std::vector<std::uint8_t> sliding_window(std::int64_t sequence, std::int64_t width) {
  std::vector<std::uint8_t> mask(at(sequence * sequence));
  for (std::int64_t q = 0; q < sequence; ++q)
    for (std::int64_t k = 0; k < sequence; ++k)
      mask[at(q * sequence + k)] = k <= q && q - k < width ? 0 : 1;
  return mask;
}

}  // namespace

TEST_CASE("positions are those of the sequence in rings of windows and hybrids") {
  for (const int count : {4, 8}) {
    const local_ranks all(count);
    for (attention_case of : windowed(count, 45, 2))
      for (const bool root : {false, true})
        for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>(), {20, 21, 45}}) {
          INFO(count << " ranks, ulysses " << of.desc.ulysses << ", window " << of.desc.window
                     << (root ? ", roots" : "") << ", documents " << ends.size());
          of.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
          of.root = root, of.ends = ends;
          require_right(all, of);
        }
  }
}

TEST_CASE("what rings of windows keep for the gradient changes no bit") {
  for (const int count : {4, 8}) {
    const local_ranks all(count);
    for (const char* level : {"2", "1"}) {
      set_all(all, "level", level);
      for (attention_case of : windowed(count, 64, 4)) {
        INFO(count << " ranks, ulysses " << of.desc.ulysses << ", window " << of.desc.window);
        of.dtype = bf16;
        parts before;
        for (const velo_sequence_cache cache :
             {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL}) {
          of.desc.kv_cache = cache;
          parts now = results_of(all, of);
          const bool more = count / of.desc.ulysses > 3;  // than the last block and that before it
          for (std::size_t r = 0; r < before.size(); ++r) {
            CHECK(now[r]->same_bits(*before[r]));
            CHECK((now[r]->kept() > before[r]->kept()) == more);
          }
          before = std::move(now);
        }
      }
    }
  }
}

TEST_CASE("packed documents go round eight ranks") {
  const std::vector<std::int64_t> lists[] = {
      {256, 512, 640, 1024}, {256, 512, 768, 1024}, {768, 1024}, {512, 768, 1024}};
  const local_ranks all(8);
  for (const std::vector<std::int64_t>& ends : lists) {
    INFO("first end " << ends[0] << " of " << ends.size());
    attention_case of = case_of(VELO_SEQUENCE_RING, 8, 1024, 2, 1);
    of.ends = ends, of.packed = true;
    require_right(all, of);
  }
}

TEST_CASE("eight ranks compute a sliding window and a triangle in rounds") {
  const local_ranks all(8);
  const std::int64_t sequence = 256;
  for (const std::int64_t neighbors : {1, 2})
    for (const std::int64_t width : {std::int64_t{32}, sequence}) {
      attention_case of =
          case_of(neighbors == 1 ? VELO_SEQUENCE_ADAPTIVE : VELO_SEQUENCE_HYBRID_ADAPTIVE, 8,
                  sequence, 2, 1);
      of.desc.ulysses = neighbors, of.mask = sliding_window(sequence, width);
      INFO("neighbors " << neighbors << ", a window of " << width);
      require_right(all, of);
    }
}

TEST_CASE("hybrids that gather all heads of keys compute the attention of the whole sequence") {
  for (const int count : {4, 8}) {
    const local_ranks all(count);
    for (attention_case of : windowed(count, 45, 2)) {
      if (of.desc.ulysses == 1) continue;
      of.desc.kv_gather = 1;
      for (const velo_sequence_cache cache :
           {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL})
        for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>(), {2, 3, 45}}) {
          INFO(count << " ranks, ulysses " << of.desc.ulysses << ", window " << of.desc.window
                     << ", cache " << cache << ", documents " << ends.size());
          of.desc.kv_cache = cache, of.ends = ends;
          require_right(all, of);
        }
      of.desc.kind = VELO_SEQUENCE_HYBRID_ADAPTIVE, of.desc.window = 1;
      of.desc.kv_cache = VELO_SEQUENCE_CACHE_NONE;
      require_right(all, of);
    }
  }
}
