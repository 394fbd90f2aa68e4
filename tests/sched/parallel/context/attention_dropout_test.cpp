// Dropout in context_parallel_attention where groups have some heads (tensor parallelism) or some
// sequences (data parallelism) of a whole: masks, outputs and gradients are those of the whole.
#include "core/simd/philox.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/context/attention_ranks.hpp"

using namespace velo::testing;

namespace {

// What a group has of the whole's sequences and key heads.
struct share {
  std::int64_t batch, batches, key_head, key_heads;
};

constexpr auto kinds = {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES, VELO_SEQUENCE_ALL_GATHER,
                        VELO_SEQUENCE_ADAPTIVE};

// Three sequences of six heads that read three key heads, on so many ranks a group.
attention_case whole_case(velo_sequence_kind kind, std::int64_t ranks) {
  attention_case of = case_of(kind, ranks, 22, 6, 3);
  of.batch = 3, of.keep_prob = 0.7;
  return of;
}

attention_case case_of_share(const attention_case& whole, const share& of) {
  attention_case mine = whole;
  const std::int64_t each = whole.desc.heads / whole.key_heads();
  mine.batch = of.batches, mine.desc.kv_heads = of.key_heads;
  mine.desc.heads = of.key_heads * each;
  mine.dropout_origin = {of.batch, of.key_head * each};
  mine.dropout_extents = {whole.batch, whole.desc.heads};
  return mine;
}

// A group with its share of the whole's tensors.
class share_of_ranks {
 public:
  share_of_ranks(const attention_case& whole_case, const whole_attention& whole, const share& of)
      : of_(of),
        each_(whole_case.desc.heads / whole_case.key_heads()),
        case_(case_of_share(whole_case, of)),
        mine_(case_),
        made_(case_) {
    take(mine_.q, whole.q, each_), take(mine_.dout, whole.dout, each_);
    take(mine_.k, whole.k, 1), take(mine_.v, whole.v, 1);
    ranks = parts_of(case_, mine_, made_.plan);
  }
  void run(const local_ranks& all) {
    all.require([&](const rank_of_group& me) { return ranks[at(me.rank)]->run(me); });
  }
  // The largest difference of a rank's tensor from the whole's, which has `each` heads a key head.
  double error(const attention_rank& rank, const heads_of_rows& mine, const heads_of_rows& whole,
               std::int64_t each) const {
    double worst = 0;
    mine.each([&](auto b, auto row, auto head, auto i) {
      worst = std::max(
          worst, std::abs(mine.get(b, row, head, i) - whole.get(b + of_.batch, rank.rows()[at(row)],
                                                                head + of_.key_head * each, i)));
    });
    return worst;
  }
  std::int64_t each() const { return each_; }

  parts ranks;

 private:
  void take(heads_of_rows& to, const heads_of_rows& from, std::int64_t each) const {
    to.each([&](auto b, auto row, auto head, auto i) {
      to.set(b, row, head, i, from.get(b + of_.batch, row, head + of_.key_head * each, i));
    });
  }

  const share of_;
  const std::int64_t each_;
  const attention_case case_;
  whole_attention mine_;
  const plan_of made_;
};

// Results of a share against those of one rank that has the whole.
void require_whole(const local_ranks& all, const attention_case& of, const whole_attention& numbers,
                   const attention_rank& whole, const share& part) {
  INFO("kind " << of.desc.kind << ", sequences from " << part.batch << ", key heads from "
               << part.key_head);
  share_of_ranks mine(of, numbers, part);
  mine.run(all);
  for (const auto& rank : mine.ranks) {
    CHECK(mine.error(*rank, *rank->out, *whole.out, mine.each()) <= 1e-5);
    CHECK(mine.error(*rank, *rank->dq, *whole.dq, mine.each()) <= 1e-5);
    CHECK(mine.error(*rank, *rank->dk, *whole.dk, 1) <= 1e-5);
    CHECK(mine.error(*rank, *rank->dv, *whole.dv, 1) <= 1e-5);
  }
}

// Uneven shares: of the heads, of the sequences, of both.
constexpr share shares[] = {{0, 3, 0, 1}, {0, 3, 1, 2}, {0, 1, 0, 3}, {1, 2, 0, 3},
                            {0, 1, 0, 1}, {0, 1, 1, 2}, {1, 2, 0, 1}, {1, 2, 1, 2}};

}  // namespace

TEST_CASE("groups that have some heads or sequences drop what the whole drops") {
  attention_case one = whole_case(VELO_SEQUENCE_RING, 1);
  const whole_attention numbers(one);
  const plan_of made(one);
  const parts whole = parts_of(one, numbers, made.plan);
  const local_ranks alone(1), two(2);
  alone.require([&](const rank_of_group& me) { return whole[0]->run(me); });
  for (const char* level : {"2", "1", "0"}) {
    INFO("level " << level);
    set_all(two, "level", level);
    for (const velo_sequence_kind kind : kinds)
      for (const share& part : shares)
        require_whole(two, whole_case(kind, 2), numbers, *whole[0], part);
  }
}

TEST_CASE("masks of heads and rows that are cut are those of the whole's indices") {
  const local_ranks two(2);
  const auto rule = velo::simd::dropout_of(1 - 0.7, 5, 3);  // the fields of attention_rank
  for (const velo_sequence_kind kind : kinds) {
    attention_case of = whole_case(kind, 2);
    const std::int64_t rows = of.desc.sequence;
    of.value_width = rows;
    whole_attention numbers(of);
    // With values of the identity an output is a row of probabilities: 0 where one is dropped.
    numbers.v.each([&](auto b, auto row, auto head, auto i) {
      numbers.v.set(b, row, head, i, row == i ? 1 : 0);
    });
    for (const share& part : shares) {
      share_of_ranks mine(of, numbers, part);
      mine.run(two);
      for (const auto& rank : mine.ranks) {
        std::int64_t wrong = 0;
        rank->out->each([&](auto b, auto row, auto head, auto key) {
          const std::int64_t query = rank->rows()[at(row)], all = (b + part.batch) * of.desc.heads +
                                                                  head +
                                                                  part.key_head * mine.each();
          const auto index = static_cast<std::uint64_t>((all * rows + query) * rows + key);
          const bool kept = key <= query && velo::simd::dropout_multiplier(rule, index) != 0;
          wrong += kept != (rank->out->get(b, row, head, key) != 0);
        });
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("ranks of a group that give other places all hear of it") {
  const attention_case whole = whole_case(VELO_SEQUENCE_RING, 2);
  const whole_attention numbers(whole);
  share_of_ranks mine(whole, numbers, shares[6]);
  const share_of_ranks before(whole, numbers, shares[6]);
  attention_case elsewhere = case_of_share(whole, shares[6]);
  elsewhere.dropout_origin[0] = 0;
  const whole_attention odd(elsewhere);
  const plan_of made(elsewhere);
  mine.ranks[1] = std::make_unique<attention_rank>(elsewhere, odd, made.plan, 1);
  const local_ranks two(2);
  for (const call_record& one :
       two.run([&](const rank_of_group& me) { return mine.ranks[at(me.rank)]->forward(me); }))
    CHECK(one.code == VELO_ERR_PEER);
  CHECK(mine.ranks[0]->out->same_bits(*before.ranks[0]->out));
}
