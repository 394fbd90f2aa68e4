// context_parallel_attention and its gradient against attention over the whole sequence: every kind
// of plan, ranks, dtypes, levels and ways; documents, masks, positions, dropout; ranks that
// disagree, and an abort.
#include <atomic>
#include <thread>

#include "comm/processes.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/parallel/context/described_plan.hpp"
#include "tests/sched/parallel/context/required_attention.hpp"

using namespace velo::testing;

namespace {

std::vector<std::uint8_t> mask_of(std::int64_t sequence, std::uint32_t seed) {
  std::vector<std::uint8_t> mask(at(sequence * sequence));
  cheap_random draw(seed);
  for (std::uint8_t& one : mask) one = draw() >> 30 == 0 ? 0 : 1;
  for (std::int64_t key = 0; key < sequence; ++key) mask[at(3 * sequence + key)] = 1;
  return mask;
}

// Kinds, cuts and contents for so many ranks.
std::vector<attention_case> cases_of(std::int64_t ranks) {
  std::vector<attention_case> all;
  const std::int64_t sequence = 8 * ranks + 3;
  for (const velo_sequence_kind kind : {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES,
                                        VELO_SEQUENCE_ALL_GATHER, VELO_SEQUENCE_ADAPTIVE}) {
    all.push_back(case_of(kind, ranks, sequence, ranks + 2));
    all.push_back(case_of(kind, ranks, sequence, 8, 4));
    all.push_back(case_of(kind, ranks, sequence, 8, 2));
    all.back().desc.causal = 0, all.back().batch = 2, all.back().value_width = 5;
    all.push_back(case_of(kind, ranks, sequence, 8));
    all.back().ends = {0, 5, 6, 6, sequence - 1, sequence, sequence};
    all.push_back(case_of(kind, ranks, sequence, 8, 8));
    all.back().mask = mask_of(sequence, static_cast<std::uint32_t>(ranks));
    all.push_back(case_of(kind, ranks, ranks == 1 ? 1 : ranks - 1, 9, 3));
  }
  for (const std::int64_t window : {2, 4})
    if (ranks % window == 0 && window < ranks) {
      all.push_back(case_of(VELO_SEQUENCE_RING, ranks, sequence, 4, 2));
      all.back().desc.window = window;
    }
  for (const std::int64_t u : {2, 3, 4})
    if (ranks % u == 0 && u < ranks) {
      all.push_back(case_of(VELO_SEQUENCE_HYBRID, ranks, sequence, 6, 3));
      all.back().desc.ulysses = u;
      all.back().batch = 2;
      all.push_back(case_of(VELO_SEQUENCE_HYBRID, ranks, sequence, 5));
      all.back().desc.ulysses = u;
      all.back().ends = {7, sequence};
      all.push_back(case_of(VELO_SEQUENCE_HYBRID_ADAPTIVE, ranks, sequence, 6, 3));
      all.back().desc.ulysses = u;
      all.back().batch = 2;
      all.push_back(case_of(VELO_SEQUENCE_HYBRID_ADAPTIVE, ranks, sequence, 8, 4));
      all.back().desc.ulysses = u;
      all.back().mask = mask_of(sequence, static_cast<std::uint32_t>(u));
    }
  return all;
}

}  // namespace

TEST_CASE("ranks compute the attention of the whole sequence, and its gradient, by every plan") {
  for (const int count : {1, 2, 3, 4, 6, 8}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    int index = 0;
    for (attention_case of : cases_of(count)) {
      of.dtype = index % 3 == 0 ? f32 : index % 3 == 1 ? bf16 : f16;
      INFO(count << " ranks, case " << index++ << ", kind " << of.desc.kind);
      require_right(all, of);
    }
  }
}

TEST_CASE("single rows of a block that all queries of another see have the same bits in any way") {
  const local_ranks all(2);
  attention_case of = case_of(VELO_SEQUENCE_ADAPTIVE, 2, 64, 2);
  for (std::int64_t q = 0; q < 64; ++q)
    for (std::int64_t k = 0; k < 64; ++k)
      of.mask.push_back(q / 32 == k / 32 || (q < 32 && k % 3 == 0) ? 0 : 1);
  for (const velo_dtype type : {f32, bf16}) {
    of.dtype = type;
    require_right(all, of);
  }
}

TEST_CASE("what a plan keeps for the gradient changes no bit, and takes the memory that it says") {
  for (const int count : {2, 4, 8}) {
    const local_ranks all(count);
    for (const bool hybrid : {false, true}) {
      if (hybrid && count == 2) continue;
      attention_case of =
          case_of(hybrid ? VELO_SEQUENCE_HYBRID : VELO_SEQUENCE_RING, count, 64, 4, 4);
      if (hybrid) of.desc.ulysses = 2;
      of.dtype = bf16;
      parts before;
      std::int64_t kept = 0;
      for (const velo_sequence_cache cache :
           {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL}) {
        of.desc.kv_cache = cache;
        parts now = results_of(all, of);
        for (std::size_t r = 0; r < before.size(); ++r) CHECK(now[r]->same_bits(*before[r]));
        const std::int64_t ring = hybrid ? count / 2 : count;
        // Beside the last block, and that before it, which travels anyway.
        if (cache != VELO_SEQUENCE_CACHE_NONE) CHECK((now[0]->kept() > kept) == (ring > 3));
        kept = now[0]->kept();
        before = std::move(now);
      }
    }
  }
  const local_ranks all(2);  // the last block alone: half the keys and values
  CHECK(results_of(all, case_of(VELO_SEQUENCE_RING, 2, 64, 4, 2))[0]->kept() == 2 * 32 * 2 * 8);
}

TEST_CASE("exchanges of heads that keep their own keys change no bit, and take less memory") {
  const std::int64_t width = 8;
  for (const int count : {2, 4})
    for (const std::int64_t gathers : {0, 1})
      for (const char* level : {"2", "1"}) {
        const local_ranks all(count);
        set_all(all, "level", level);
        attention_case of = case_of(VELO_SEQUENCE_ULYSSES, count, 16 * count, 8, 2);
        of.desc.kv_gather = gathers, of.dtype = bf16;
        parts before;
        const std::int64_t rows = 16 * count, key_heads = 1 + gathers,
                           queries = 2 * rows * 8 / count * width;  // with their outputs
        std::int64_t contents = 2;                                  // of keys and values
        for (const velo_sequence_cache cache :
             {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL}) {
          of.desc.kv_cache = cache;
          parts now = results_of(all, of);
          for (std::size_t r = 0; r < before.size(); ++r) CHECK(now[r]->same_bits(*before[r]));
          CHECK(now[0]->kept() == queries + contents-- * rows * key_heads * width);
          before = std::move(now);
        }
      }
}

namespace {

// The bytes of a content that ranks send in a pass of a plan.
std::int64_t sent_bytes(const attention_case& of, velo_sequence_pass pass,
                        velo_sequence_content what) {
  velo_sequence_desc desc = of.desc;
  if (!of.ends.empty()) desc.document_ends = of.ends.data();
  desc.document_count = static_cast<std::int64_t>(of.ends.size());
  if (!of.mask.empty()) desc.mask = of.mask.data();
  const described_plan plan(desc);
  std::int64_t sum = 0;
  for (const described_message& m : plan.messages(pass, VELO_SEQUENCE_SENT))
    if (m.is.content == what) sum += m.is.bytes;
  return sum;
}

// A layer that owns its keys, and one with other queries that attends to them: the second takes
// what the first has kept, and has the bits of one that exchanges them. Returns its results.
parts require_shared(const local_ranks& all, attention_case of) {
  const whole_attention whole(of);
  const plan_of own(of);
  parts exchanged = parts_of(of, whole, own.plan);
  of.desc.keys = VELO_SEQUENCE_KEYS_SHARED;
  const plan_of shared(of);
  const parts owner = parts_of(of, whole, shared.plan);
  of.desc.keys = VELO_SEQUENCE_KEYS_GIVEN;
  const plan_of given(of);
  parts taker = parts_of(of, whole, given.plan);
  for (std::size_t r = 0; r < taker.size(); ++r)
    for (attention_rank* one : {exchanged[r].get(), taker[r].get()}) one->scale_queries(-0.5);
  all.require([&](const rank_of_group& me) { return exchanged[at(me.rank)]->run(me); });
  all.require([&](const rank_of_group& me) {
    const auto rank = at(me.rank);
    const velo_status done = owner[rank]->forward(me);
    taker[rank]->take_keys_of(*owner[rank]);
    return done == VELO_OK ? taker[rank]->run(me) : done;
  });
  all.require(
      [&](const rank_of_group& me) { return owner[at(me.rank)]->gradient(me.stream, me.group); });
  for (std::size_t r = 0; r < taker.size(); ++r) {
    CHECK(taker[r]->same_bits(*exchanged[r]));
    if (of.keep_prob == 1) CHECK(owner[r]->error(whole) <= bound_of(of.dtype));
    CHECK(taker[r]->borders_kept());
  }
  return taker;
}

}  // namespace

TEST_CASE("a layer that shares keys takes what their owner has kept, with the same bits") {
  int index = 0;
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks all(count);
    for (attention_case of : cases_of(count))
      for (const velo_sequence_cache cache :
           {VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_CACHE_FULL}) {
        if (cache != VELO_SEQUENCE_CACHE_NONE && of.desc.kind > VELO_SEQUENCE_HYBRID) continue;
        of.dtype = index % 2 == 0 ? f32 : bf16, of.desc.kv_cache = cache;
        INFO(count << " ranks, case " << index << ", kind " << of.desc.kind << ", cache " << cache);
        set_all(all, "level", index++ % 3 == 0 ? "1" : "2");
        require_shared(all, of);
      }
  }
}

TEST_CASE("what an owner of keys keeps is not sent in the forward of a layer that shares them") {
  for (const std::int64_t ranks : {2, 3, 8})
    for (const std::int64_t window : {1, 4}) {
      if (window > 1 && ranks != 8) continue;
      attention_case of = case_of(VELO_SEQUENCE_RING, ranks, 64, 8, 2);
      of.desc.keys = VELO_SEQUENCE_KEYS_GIVEN, of.desc.window = window;
      const auto sent = [&](velo_sequence_cache cache, velo_sequence_content what) {
        of.desc.kv_cache = cache;
        return sent_bytes(of, VELO_SEQUENCE_FORWARD, what);
      };
      CHECK(sent(VELO_SEQUENCE_CACHE_FULL, VELO_SEQUENCE_K) == 0);
      CHECK(sent(VELO_SEQUENCE_CACHE_FULL, VELO_SEQUENCE_V) == 0);
      CHECK(sent(VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_K) == 0);
      // Without a cache the last block alone is there.
      const std::int64_t block = 64 * 2 * 8 * 4;
      CHECK(sent(VELO_SEQUENCE_CACHE_HALF, VELO_SEQUENCE_V) == (ranks - 2) * block);
      CHECK(sent(VELO_SEQUENCE_CACHE_NONE, VELO_SEQUENCE_K) == (ranks - 2) * block);
      of.desc.kv_cache = VELO_SEQUENCE_CACHE_FULL;
      CHECK(sent_bytes(of, VELO_SEQUENCE_GRADIENT, VELO_SEQUENCE_K) == 0);
      CHECK(sent_bytes(of, VELO_SEQUENCE_GRADIENT, VELO_SEQUENCE_DK) == (ranks - 1) * block);
    }
  attention_case of = case_of(VELO_SEQUENCE_ULYSSES, 4, 64, 8, 4);
  of.desc.keys = VELO_SEQUENCE_KEYS_GIVEN;
  CHECK(sent_bytes(of, VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_K) == 0);
  CHECK(sent_bytes(of, VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_V) == 0);
  CHECK(sent_bytes(of, VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_Q) > 0);
  of.desc.kv_cache = VELO_SEQUENCE_CACHE_FULL;  // its own alone, from before the exchange
  CHECK(sent_bytes(of, VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_K) > 0);
  // The keys that a layer takes are those that it reads.
  const local_ranks all(2);
  of = case_of(VELO_SEQUENCE_RING, 2, 64, 4, 2);
  const parts kept_by_taker = require_shared(all, of);
  for (const auto& one : kept_by_taker) CHECK(one->kept() == 0);
}

TEST_CASE("a forward that keeps nothing has the same output") {
  const local_ranks all(3);
  for (const velo_sequence_kind kind :
       {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER}) {
    const attention_case of = case_of(kind, 3, 50, 6, 3);
    const whole_attention whole(of);
    const plan_of made(of);
    const parts with = parts_of(of, whole, made.plan), without = parts_of(of, whole, made.plan);
    all.require([&](const rank_of_group& me) { return with[at(me.rank)]->forward(me); });
    all.require([&](const rank_of_group& me) { return without[at(me.rank)]->forward(me, false); });
    for (std::size_t r = 0; r < 3; ++r) CHECK(with[r]->out->same_bits(*without[r]->out));
  }
}

TEST_CASE("positions and dropout are those of the whole sequence, whatever the cut") {
  const auto kinds = {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER,
                      VELO_SEQUENCE_ADAPTIVE};
  for (const int count : {1, 2, 4}) {
    const local_ranks all(count);
    for (const velo_sequence_kind kind : kinds)
      for (const bool root : {false, true}) {
        attention_case of = case_of(kind, count, 41, 4, 2);
        of.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
        of.root = root;
        require_right(all, of);
        of.ends = {20, 41};
        require_right(all, of);
      }
  }
  // Dropout: against one rank, whose decisions are fusion_attention's.
  attention_case one = case_of(VELO_SEQUENCE_RING, 1, 41, 4, 2);
  one.keep_prob = 0.75, one.batch = 2;
  const local_ranks alone(1), four(4);
  const parts whole = results_of(alone, one);
  for (const velo_sequence_kind kind : kinds) {
    attention_case of = one;
    of.desc.kind = kind, of.desc.cp = 4;
    for (const auto& part : results_of(four, of))
      for (const auto& [mine, all] :
           {std::pair{&part->out, &whole[0]->out}, std::pair{&part->dq, &whole[0]->dq},
            std::pair{&part->dk, &whole[0]->dk}, std::pair{&part->dv, &whole[0]->dv}})
        CHECK(part->error(**mine, **all) <= 1e-5);
  }
}

TEST_CASE("one rank drops what fusion_attention drops") {
  const live_context context;
  attention_case of = case_of(VELO_SEQUENCE_RING, 1, 37, 4, 2);
  of.keep_prob = 0.6;
  const whole_attention whole(of);
  const plan_of made(of);
  attention_rank part(of, whole, made.plan, 0);
  const rank_of_group me{context, context.inline_stream(), nullptr, 0, 1};
  REQUIRE(part.run(me) == VELO_OK);
  const heads_of_rows out(f32, 1, 37, 4, 8);
  const velo_tensor q = part.q->view(), k = part.k->view(), v = part.v->view(), y = out.view();
  velo_fusion_attention_args args = VELO_FUSION_ATTENTION_ARGS_INIT;
  args.query = &q, args.key = &k, args.value = &v, args.attention_out = &y;
  args.scale = of.scale(), args.keep_prob = of.keep_prob, args.seed = 5, args.offset = 3;
  args.sparse_mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  REQUIRE(velo_fusion_attention(me.stream, &args) == VELO_OK);
  CHECK(part.error(*part.out, out) <= 1e-6);
}

TEST_CASE("without a plan the ranks of a group are a causal ring") {
  for (const int count : {1, 2, 3}) {
    const local_ranks all(count);
    const attention_case of = case_of(VELO_SEQUENCE_RING, count, 12 * count, 4, 2);
    const whole_attention whole(of);
    const plan_of made(of);
    parts now;
    for (int rank = 0; rank < count; ++rank) {
      now.push_back(std::make_unique<attention_rank>(of, whole, made.plan, rank));
      now.back()->forget_plan();
    }
    all.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
    for (const auto& one : now) CHECK(one->error(whole) <= 1e-5);
  }
}

TEST_CASE("processes and ranks on two hosts carry plans out with the bits of threads") {
  std::vector<attention_case> cases = cases_of(4);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].dtype = i % 2 == 0 ? f32 : bf16;
  const local_ranks threads(4);
  const ranks_on_hosts hosts("0011");
  for (const attention_case& of : cases) {
    const whole_attention whole(of);
    const plan_of made(of);
    const parts by_threads = parts_of(of, whole, made.plan),
                by_hosts = parts_of(of, whole, made.plan);
    threads.require([&](const rank_of_group& me) { return by_threads[at(me.rank)]->run(me); });
    hosts.require([&](const rank_of_group& me) { return by_hosts[at(me.rank)]->run(me); });
    for (std::size_t r = 0; r < 4; ++r) CHECK(by_hosts[r]->same_bits(*by_threads[r]));
  }
  for (const std::uint64_t buffer : {8 << 10, 512 << 10}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;
    ranks.start_all(4, desc, [&](const rank_of_group& me) {
      velo_status done = VELO_OK;
      std::int64_t right = 1;
      for (const attention_case& of : cases) {
        const whole_attention whole(of);
        const plan_of made(of);
        attention_rank part(of, whole, made.plan, me.rank);
        if (done == VELO_OK) done = part.run(me);
        right = right != 0 && part.error(whole) <= bound_of(of.dtype) ? 1 : 0;
      }
      return ending_of(done, right);
    });
    for (const ending& one : ranks.wait()) {
      CHECK_OK(one);
      CHECK(one.value == 1);
    }
  }
}

TEST_CASE("queues keep the order of plans and collectives") {
  const local_ranks all(3);
  const attention_case of = case_of(VELO_SEQUENCE_RING, 3, 40, 4, 2);
  const whole_attention whole(of);
  const plan_of made(of);
  const parts now = parts_of(of, whole, made.plan);
  std::vector<velo_stream> queues;
  for (int rank = 0; rank < 3; ++rank) queues.push_back(all.context(rank).new_stream());
  all.require([&](const rank_of_group& me) {
    rank_of_group queued = me;
    queued.stream = queues[at(me.rank)];
    velo_status done = VELO_OK;
    for (int i = 0; i < 5 && done == VELO_OK; ++i) {
      done = now[at(me.rank)]->run(queued);
      if (done == VELO_OK) done = velo_group_barrier(queued.stream, me.group);
      // The next run has new memory for what it saves.
      if (done == VELO_OK) done = velo_stream_synchronize(queued.stream);
    }
    return done;
  });
  for (const auto& one : now) CHECK(one->error(whole) <= 1e-5);
}

TEST_CASE("ranks with another plan, way or size all hear of it before a row moves") {
  const attention_case ring = case_of(VELO_SEQUENCE_RING, 3, 48, 6, 3);
  attention_case other = ring, gathered = ring, wide = ring, dropped = ring, shared = ring;
  dropped.keep_prob = 0.5;
  shared.desc.keys = VELO_SEQUENCE_KEYS_SHARED;
  other.desc.kv_cache = VELO_SEQUENCE_CACHE_FULL;
  gathered.desc.kind = VELO_SEQUENCE_ALL_GATHER;
  wide.value_width = 16;
  for (const attention_case* odd :
       {&std::as_const(other), &std::as_const(gathered), &std::as_const(wide),
        &std::as_const(dropped), &std::as_const(shared), &ring}) {
    const local_ranks all(3);
    if (odd == &ring) REQUIRE(velo_config_set(all.context(2), "level", "1") == VELO_OK);
    const whole_attention whole(ring), odd_whole(*odd);
    const plan_of made(ring), odd_plan(*odd);
    parts now = parts_of(ring, whole, made.plan);
    now[2] = std::make_unique<attention_rank>(*odd, odd_whole, odd_plan.plan, 2);
    const parts before = parts_of(ring, whole, made.plan);
    for (const call_record& one :
         all.run([&](const rank_of_group& me) { return now[at(me.rank)]->forward(me); }))
      CHECK(one.code == VELO_ERR_PEER);
    for (std::size_t r = 0; r < 2; ++r) CHECK(now[r]->out->same_bits(*before[r]->out));
  }
}

TEST_CASE("a forward on one rank beside a gradient on another ends the call of every rank") {
  for (const velo_sequence_kind kind :
       {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER})
    for (const char* level : {"2", "1", "0"}) {
      const local_ranks all(4);
      set_all(all, "level", level);
      const attention_case of = case_of(kind, 4, 64, 4, 4);
      const whole_attention whole(of);
      const plan_of made(of);
      const parts now = parts_of(of, whole, made.plan);
      all.require([&](const rank_of_group& me) { return now[at(me.rank)]->forward(me); });
      for (const call_record& one : all.run([&](const rank_of_group& me) {
             return me.rank == 0 ? now[0]->forward(me)
                                 : now[at(me.rank)]->gradient(me.stream, me.group);
           }))
        CHECK(one.code == VELO_ERR_PEER);
    }
}

TEST_CASE("a batch of no sequences is nothing, forward and gradient") {
  for (const velo_sequence_kind kind :
       {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER})
    for (const char* level : {"2", "1", "0"}) {
      const local_ranks all(2);
      set_all(all, "level", level);
      attention_case of = case_of(kind, 2, 8, 4, 4);
      of.batch = 0;
      results_of(all, of);
    }
}

TEST_CASE("an abort in the middle of a plan ends every rank's call, and names the rank") {
  for (const auto& [kind, level] :
       {std::pair{VELO_SEQUENCE_RING, "2"}, std::pair{VELO_SEQUENCE_ULYSSES, "2"},
        std::pair{VELO_SEQUENCE_ALL_GATHER, "2"}, std::pair{VELO_SEQUENCE_RING, "1"},
        std::pair{VELO_SEQUENCE_ULYSSES, "1"}, std::pair{VELO_SEQUENCE_RING, "0"}}) {
    const local_ranks all(3);
    set_all(all, "level", level);
    const attention_case of = case_of(kind, 3, 64, 4, 4);
    const whole_attention whole(of);
    const plan_of made(of);
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    std::thread aborts([&] {
      while (calls < 5 && !over) std::this_thread::yield();
      velo_group_abort(all.group(2));
    });
    const std::vector<call_record> ends = all.run([&](const rank_of_group& me) {
      for (;; ++calls) {  // the tensors of a failed call go with it
        attention_rank part(of, whole, made.plan, me.rank);
        const velo_status done = part.run(me);
        if (done != VELO_OK) return done;
      }
    });
    over = true;
    aborts.join();
    for (const call_record& one : ends) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 2);
    }
  }
}

TEST_CASE("random plans compute the attention of the whole sequence") {
  const char* wanted = std::getenv("VELO_ATTENTION_PLANS");
  const int count = wanted == nullptr ? 60 : std::atoi(wanted);
  cheap_random draw(11);
  const auto up_to = [&](std::uint32_t most) {
    return static_cast<std::int64_t>(draw() % (most + 1));
  };
  for (int i = 0; i < count; ++i) {
    const std::int64_t cp = 1 + up_to(7), kv = 1 + up_to(3);
    attention_case of =
        case_of(static_cast<velo_sequence_kind>(up_to(5)), cp, up_to(70), kv * (1 + up_to(3)), kv);
    velo_sequence_desc& d = of.desc;
    d.causal = up_to(3) == 0 ? 0 : 1;
    d.kv_cache = 0;
    if (d.kind == VELO_SEQUENCE_HYBRID || d.kind == VELO_SEQUENCE_HYBRID_ADAPTIVE) {
      for (const std::int64_t u : {8, 4, 3, 2})
        if (cp % u == 0 && u <= d.heads && up_to(3) != 0) d.ulysses = u;
    }
    if (d.kind == VELO_SEQUENCE_ULYSSES && d.heads < cp) d.heads *= cp, d.kv_heads = d.heads;
    if (d.kind == VELO_SEQUENCE_RING || d.kind == VELO_SEQUENCE_HYBRID) {
      const std::int64_t ring = cp / d.ulysses;
      for (const std::int64_t window : {2, 3})
        if (ring % window == 0 && window < ring && up_to(1) == 0) d.window = window;
    }
    if (d.kind <= VELO_SEQUENCE_HYBRID) d.kv_cache = static_cast<velo_sequence_cache>(up_to(2));
    if (up_to(2) == 0 && d.sequence > 4) {
      of.mask = mask_of(d.sequence, draw());
    } else if (up_to(1) == 0) {
      for (std::int64_t end = 0; end < d.sequence;)
        of.ends.push_back(end = std::min(d.sequence, end + up_to(20)));
      if (of.ends.empty()) of.ends.push_back(0);
    }
    if (up_to(3) == 0)
      for (std::int64_t h = 0; h < d.heads; ++h)
        of.slopes.push_back(0.5f / static_cast<float>(1 + up_to(15)));
    of.root = up_to(1) == 0;
    of.batch = 1 + up_to(1), of.value_width = 3 + up_to(9);
    if ((d.kind == VELO_SEQUENCE_ULYSSES && cp > 1) || d.ulysses > 1) d.kv_gather = up_to(1);
    if (d.kv_cache != 0 && up_to(1) == 0) {  // a layer of several
      d.layers = 2 + up_to(4), d.layer = up_to(1);
      d.kv_interval = 1;
    }
    INFO("plan " << i << ", kind " << d.kind << ", cp " << cp << ", sequence " << d.sequence
                 << ", heads " << d.heads << ", kv_heads " << d.kv_heads << ", ulysses "
                 << d.ulysses << ", window " << d.window << ", causal " << d.causal << ", slopes "
                 << of.slopes.size() << (of.root ? " by roots" : "") << ", documents "
                 << of.ends.size() << ", mask " << of.mask.size() << ", batch " << of.batch
                 << ", gathered " << d.kv_gather << ", layer " << d.layer);
    const local_ranks all(static_cast<int>(cp));
    const parts direct = results_of(all, of);
    set_all(all, "level", "1");
    const parts sent = results_of(all, of);
    for (std::size_t r = 0; r < sent.size(); ++r) CHECK(sent[r]->same_bits(*direct[r]));
    set_all(all, "level", i % 2 == 0 ? "1" : "2");
    require_shared(all, of);
  }
}
