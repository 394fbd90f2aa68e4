// Results of ranks that share a sequence are rounded once: their mean error is that of one rank,
// however many ranks their sums have passed.
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/context/attention_ranks.hpp"

using namespace velo::testing;

namespace {

struct errors {
  double out, dq, dk, dv;  // root mean squares
};

errors errors_of(const attention_case& of) {
  const whole_attention whole(of);
  const velo_sequence_plan plan = of.plan();
  const local_ranks all(static_cast<int>(of.desc.cp));
  std::vector<std::unique_ptr<attention_rank>> parts;
  for (int rank = 0; rank < all.size(); ++rank)
    parts.push_back(std::make_unique<attention_rank>(of, whole, plan, rank));
  set_all(all, "level", "1");  // messages, as between hosts
  all.require([&](const rank_of_group& me) { return parts[at(me.rank)]->run(me); });
  const auto error = [&](auto mine, const heads_of_rows& wanted) {
    double sum = 0, count = 0;
    for (const auto& part : parts)
      (*part.*mine)->each([&](auto b, auto row, auto head, auto i) {
        const double apart =
            (*part.*mine)->get(b, row, head, i) - wanted.get(b, part->rows()[at(row)], head, i);
        sum += apart * apart, ++count;
      });
    return std::sqrt(sum / count);
  };
  const errors made{error(&attention_rank::out, whole.out), error(&attention_rank::dq, whole.dq),
                    error(&attention_rank::dk, whole.dk), error(&attention_rank::dv, whole.dv)};
  velo_sequence_plan_destroy(plan);
  return made;
}

}  // namespace

TEST_CASE("results of attention in 16 bits err as one rank's do, after any number of hops") {
  for (const velo_dtype dtype : {bf16, f16})
    for (const velo_sequence_kind kind :
         {VELO_SEQUENCE_RING, VELO_SEQUENCE_ALL_GATHER, VELO_SEQUENCE_ULYSSES}) {
      INFO("kind " << kind << ", " << int{dtype.code} << "." << int{dtype.bits});
      attention_case of = case_of(kind, 1, 96, 8, 8);
      of.desc.causal = 0, of.dtype = dtype;
      const errors one = errors_of(of);
      of.desc.cp = 8;
      const errors eight = errors_of(of);
      CHECK(eight.out <= 1.15 * one.out);
      CHECK(eight.dq <= 1.15 * one.dq);
      CHECK(eight.dk <= 1.15 * one.dk);
      CHECK(eight.dv <= 1.15 * one.dv);
    }
}
