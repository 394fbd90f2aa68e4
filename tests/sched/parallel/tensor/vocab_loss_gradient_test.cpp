// The gradient of vocab_parallel_cross_entropy against finite differences of its own forward pass,
// without a formula of the gradient; and a case that other systems test.
#include <numeric>
#include <random>

#include "tests/random.hpp"
#include "tests/sched/parallel/tensor/loss_ranks.hpp"

using namespace velo::testing;

namespace {

// The losses of all tokens, which all ranks have.
std::vector<double> losses_of(const local_ranks& all, const loss_ranks& now, const loss_case& of) {
  all.require(
      [&](const rank_of_group& me) { return now[at(me.rank)]->forward(me.stream, me.group); });
  std::vector<double> made;
  for (std::int64_t t = 0; t < of.tokens; ++t) made.push_back(now[0]->loss.get(t));
  return made;
}

// Adds to a class's logit of each token.
void move(loss_rank& rank, const loss_case& of, std::int64_t classes, std::int64_t v, double by) {
  for (std::int64_t t = 0; t < of.tokens; ++t)
    rank.logits.set(t * classes + v, rank.logits.get(t * classes + v) + by);
}

// A step moves a class of all tokens: a loss that also depends on another token's logits shows.
void check_differences(const loss_case& of) {
  constexpr double step = 0x1p-6;
  const auto count = static_cast<int>(of.columns.size());
  const local_ranks all(count);
  const loss_ranks now = ranks_of(of);
  losses_of(all, now, of);
  all.require([&](const rank_of_group& me) {
    return now[at(me.rank)]->gradient(me.stream, me.group, false);
  });
  for (int rank = 0; rank < count; ++rank) {
    const std::int64_t classes = of.columns[at(rank)];
    for (std::int64_t v = 0; v < classes; ++v) {
      loss_rank& one = *now[at(rank)];
      move(one, of, classes, v, step);
      const std::vector<double> more = losses_of(all, now, of);
      move(one, of, classes, v, -2 * step);
      const std::vector<double> less = losses_of(all, now, of);
      move(one, of, classes, v, step);
      for (std::int64_t t = 0; t < of.tokens; ++t) {
        INFO("rank " << rank << ", class " << v << ", token " << t);
        const double slope = (more[at(t)] - less[at(t)]) / (2 * step);
        CHECK(one.dlogits.get(t * classes + v) / one.dloss.get(t) == Approx(slope).margin(2e-4));
      }
    }
  }
}

}  // namespace

TEST_CASE("the gradient of a loss over cut classes is that of finite differences") {
  for (const double smoothing : {0.0, 0.1}) {
    loss_case of = even(2);
    of.smoothing = smoothing;
    INFO("smoothing " << smoothing);
    check_differences(of);
    of.columns = {19, 7};  // uneven, with padding, whose slope is 0
    of.targets[2] = of.ignored;
    check_differences(of);
  }
}

namespace {

// Normal logits times 1000, which f32 holds, of 10 sequences of 15 tokens; and one target a token.
struct scaled_case {
  explicit scaled_case(int tensor_ranks) : of(even(tensor_ranks, 8 * tensor_ranks)) {
    std::mt19937 draw(3123);
    std::normal_distribution<float> normal;
    of.tokens = 150;
    of.targets.clear();
    for (std::int64_t i = 0; i < of.tokens * of.vocab; ++i) logits.push_back(1000 * normal(draw));
    for (std::int64_t t = 0; t < of.tokens; ++t)
      of.targets.push_back(static_cast<std::int64_t>(draw() % static_cast<unsigned>(of.vocab)));
  }
  double logit(std::int64_t t, std::int64_t v) const {
    return static_cast<double>(logits[at(t * of.vocab + v)]);
  }
  double lse(std::int64_t t) const {
    double most = logit(t, 0), sum = 0;
    for (std::int64_t v = 1; v < of.vocab; ++v) most = std::max(most, logit(t, v));
    for (std::int64_t v = 0; v < of.vocab; ++v) sum += std::exp(logit(t, v) - most);
    return most + std::log(sum);
  }

  loss_case of;
  std::vector<float> logits;
};

// The mean loss, of f32 losses, and its gradient, of a rank of `tensor` neighbors.
void check_scaled(const scaled_case& wanted, const loss_rank& made, int position) {
  const loss_case& of = wanted.of;
  double mean = 0, expected = 0, worst = 0;
  for (std::int64_t t = 0; t < of.tokens; ++t) {
    const std::int64_t target = of.targets[at(t)];
    mean += made.loss.get(t) / static_cast<double>(of.tokens);
    expected += static_cast<double>(static_cast<float>(wanted.lse(t) - wanted.logit(t, target))) /
                static_cast<double>(of.tokens);
    for (std::int64_t v = 0; v < 8; ++v) {
      const std::int64_t name = 8 * position + v;
      const double p = std::exp(wanted.logit(t, name) - wanted.lse(t)) - (name == target ? 1 : 0);
      worst = std::max(worst, std::abs(made.dlogits.get(t * 8 + v) - p * made.dloss.get(t)));
    }
  }
  CHECK(std::abs(mean - expected) < 1e-6);
  CHECK(worst < 1e-6);
}

}  // namespace

// Megatron-LM's case, of seed 3123 (of this library's draw): tensor ranks 1 of 1, and 2 of each of
// 4 stages.
TEST_CASE("losses and gradients of logits scaled by 1000 are those of the whole within 1e-6") {
  for (const auto& [tensor, stages] : {std::pair(1, 1), {2, 4}}) {
    const local_ranks all(tensor * stages);
    const scaled_case wanted(tensor);
    std::vector<std::unique_ptr<loss_rank>> made;
    for (int rank = 0; rank < all.size(); ++rank) {
      made.push_back(std::make_unique<loss_rank>(wanted.of, rank % tensor));
      for (std::int64_t t = 0; t < wanted.of.tokens; ++t) {
        made.back()->dloss.set(t, 1 / static_cast<double>(wanted.of.tokens));
        for (std::int64_t v = 0; v < 8; ++v)
          made.back()->logits.set(t * 8 + v, wanted.logit(t, 8 * (rank % tensor) + v));
      }
    }
    all.require([&, neighbors = tensor](const rank_of_group& me) {
      std::vector<std::int32_t> members(at(neighbors));
      std::iota(members.begin(), members.end(), me.rank / neighbors * neighbors);
      velo_group part = nullptr;
      velo_status done =
          velo_group_create_part(me.group, members.data(), neighbors, nullptr, &part);
      if (done == VELO_OK) done = made[at(me.rank)]->forward(me.stream, part);
      if (done == VELO_OK) done = made[at(me.rank)]->gradient(me.stream, part, false);
      velo_group_destroy(part);
      return done;
    });
    for (int rank = 0; rank < all.size(); ++rank) {
      INFO("rank " << rank << " of " << all.size());
      check_scaled(wanted, *made[at(rank)], rank % tensor);
    }
  }
}
