// The gradient of context_parallel_attention against finite differences of its own forward pass:
// each number of queries, keys and values is moved by a step, on the rank that holds it, and the
// weighted sum of all ranks' outputs is followed. No formula of the gradient is used.
#include "tests/sched/parallel/context/attention_ranks.hpp"

using namespace velo::testing;

namespace {

constexpr int ranks = 2;
constexpr double step = 0x1p-6;

// sum(dout out) over all ranks, after a forward pass.
double objective(const local_ranks& all, const parts& mine) {
  all.require([&](const rank_of_group& me) { return mine[at(me.rank)]->forward(me, false); });
  double sum = 0;
  for (const auto& one : mine)
    one->out->each([&](auto b, auto row, auto head, auto i) {
      sum += one->out->get(b, row, head, i) * one->dout->get(b, row, head, i);
    });
  return sum;
}

// Compares every third number of a gradient with the difference over two steps. In f32 the sum is
// exact to some 1e-6, and the third derivative adds step^2 / 6.
void check_gradient(const local_ranks& all, const parts& mine, heads_of_rows& x,
                    const heads_of_rows& dx) {
  int number = 0;
  x.each([&](auto b, auto row, auto head, auto i) {
    if (number++ % 3 != 0) return;
    const double before = x.get(b, row, head, i);
    double sum[2];
    for (const int side : {0, 1}) {
      x.set(b, row, head, i, before + (side == 0 ? step : -step));
      sum[side] = objective(all, mine);
    }
    x.set(b, row, head, i, before);
    CHECK((sum[0] - sum[1]) / (2 * step) ==
          Approx(dx.get(b, row, head, i)).epsilon(1e-3).margin(3e-4));
  });
}

void check_case(const attention_case& of) {
  const local_ranks all(ranks);
  const whole_attention whole(of);
  const plan_of made(of);
  const parts mine = parts_of(of, whole, made.plan);
  all.require([&](const rank_of_group& me) { return mine[at(me.rank)]->run(me); });
  double most = 0;
  for (const auto& one : mine) {
    one->dk->each([&](auto... place) { most = std::max(most, std::abs(one->dk->get(place...))); });
    check_gradient(all, mine, *one->q, *one->dq);
    check_gradient(all, mine, *one->k, *one->dk);
    check_gradient(all, mine, *one->v, *one->dv);
  }
  CHECK(most > 0.05);  // far above the margin
}

}  // namespace

TEST_CASE("the gradient of shared attention is that of finite differences") {
  for (const velo_sequence_kind kind : {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES,
                                        VELO_SEQUENCE_ALL_GATHER, VELO_SEQUENCE_ADAPTIVE}) {
    INFO("kind " << kind);
    attention_case of = case_of(kind, ranks, 9, 2, kind == VELO_SEQUENCE_ULYSSES ? 0 : 1);
    check_case(of);
    of.ends = {4, 9};
    if (kind == VELO_SEQUENCE_RING) check_case(of);
  }
  attention_case sloped = case_of(VELO_SEQUENCE_ALL_GATHER, ranks, 9, 2);
  sloped.slopes = {0.25f, 0.5f};
  check_case(sloped);
}
