// The counts of a micro-batch, its capacity, and the choice among the choices of a full expert.
#include "sched/moe/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/tensor/dtype.hpp"

namespace velo::sched {

using core::at;

namespace {

// The score and the place of a choice, by which experts keep it, as ranks exchange them.
struct contender {
  std::int64_t place;
  std::int64_t score;  // the bits of a double; NaN counts as the lowest

  double value() const {
    double all;
    std::memcpy(&all, &score, sizeof all);
    return all;
  }
};
static_assert(sizeof(contender) == 16);

std::int64_t bits_of(double x) {
  std::int64_t all;
  std::memcpy(&all, &x, sizeof all);
  return all;
}

comm::operation gather_of(const char* function, const void* in, void* out) {
  comm::operation op;
  op.function = function;
  op.terms.kind = comm::collective::all_gather;
  op.terms.in_code = op.terms.out_code = core::i64.code;
  op.terms.in_bits = op.terms.out_bits = core::i64.bits;
  op.in = in, op.out = out;
  return op;
}

// The limit of one rank's choices.
class choice_limit {
 public:
  choice_limit(const limit_call& call, row_routes& routes, comm::transport* among,
               core::execution& on)
      : call_(call),
        routes_(routes),
        experts_(routes.layout().experts),
        among_(among),
        on_(on),
        ranks_(among == nullptr ? 1 : among->size()),
        rank_(among == nullptr ? 0 : among->rank()) {}

  void run() {
    exchange_counts();
    capacity_ = call_.rule.rows_for(tokens_, routes_.layout());
    routes_.set_capacity(capacity_);
    find_full();
    if (full_.empty()) return;
    list_own();
    if (call_.rule.keeps_first && !call_.order.placed)
      keep_in_order_of_ranks();
    else
      keep_best();
  }

 private:
  std::int64_t count(int rank, std::int64_t expert) const {
    return counts_[at(rank * (experts_ + 1) + expert)];
  }

  // [ranks][experts + 1]: the choices of each expert, and the tokens that have any.
  void exchange_counts() {
    const std::int64_t numbers = experts_ + 1;
    counts_.resize(at(ranks_ * numbers));
    if (among_ == nullptr || ranks_ == 1) {
      std::copy_n(routes_.own_counts(), numbers, counts_.data());
    } else {
      comm::operation op = counts_of(call_, routes_);
      op.out = counts_.data();
      op.out_count = ranks_ * numbers;
      among_->run(op, on_);
    }
    for (int rank = 0; rank < ranks_; ++rank) tokens_ += count(rank, experts_);
  }

  void find_full() {
    for (std::int64_t e = 0; e < experts_; ++e) {
      std::int64_t all = 0;
      for (int rank = 0; rank < ranks_; ++rank) all += count(rank, e);
      if (all > capacity_) full_.push_back(e);
    }
  }

  // The numbers of this rank's choices of full experts, by expert.
  void list_own() {
    constexpr std::int64_t not_full = -1;
    std::vector<std::int64_t> next(at(experts_), not_full);
    std::int64_t all = 0;
    for (const std::int64_t e : full_) {
      first_.push_back(all);
      next[at(e)] = all, all += count(rank_, e);
    }
    first_.push_back(all);
    own_.resize(at(all));
    const std::vector<std::int32_t>& choices = routes_.choices();
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (choices[i] >= 0 && next[at(choices[i])] != not_full)
        own_[at(next[at(choices[i])]++)] = static_cast<std::int32_t>(i);
  }

  void keep_in_order_of_ranks() {
    for (std::size_t f = 0; f < full_.size(); ++f) {
      std::int64_t left = capacity_;
      for (int rank = 0; rank < rank_; ++rank) left -= count(rank, full_[f]);
      for (std::int64_t i = first_[f] + std::max<std::int64_t>(left, 0); i < first_[f + 1]; ++i)
        routes_.drop(own_[at(i)]);
    }
  }

  contender contender_of(std::int32_t choice) const {
    const std::int64_t token = choice / routes_.layout().top_k;
    const choice_order& order = call_.order;
    // Fewer than 2^31 tokens are on a rank.
    const std::int64_t place =
        order.placed ? order.places[token] : (static_cast<std::int64_t>(rank_) << 32) + token;
    double score = call_.rule.keeps_first ? 0 : order.scores[choice];
    if (std::isnan(score)) score = -HUGE_VAL;
    return {place, bits_of(score)};
  }

  void keep_best() {
    std::vector<contender> own;
    own.reserve(own_.size());
    for (const std::int32_t choice : own_) own.push_back(contender_of(choice));
    const std::vector<contender> all = exchange(own);
    std::vector<std::int64_t> next;  // by rank: its contenders for the next expert
    std::int64_t begin = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      next.push_back(begin);
      begin += contenders_of(rank);
    }
    for (std::size_t f = 0; f < full_.size(); ++f) keep_best_of(f, all, next);
  }

  std::int64_t contenders_of(int rank) const {
    std::int64_t all = 0;
    for (const std::int64_t e : full_) all += count(rank, e);
    return all;
  }

  std::vector<contender> exchange(const std::vector<contender>& own) const {
    if (ranks_ == 1) return own;
    std::vector<contender> all;
    comm::operation op = gather_of(call_.function, own.data(), nullptr);
    std::int64_t begin = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::int64_t words = 2 * contenders_of(rank);
      op.out_blocks.push_back({begin, words});
      begin += words;
    }
    all.resize(at(begin / 2));
    op.out = all.data(), op.out_count = begin;
    op.set_count(op.out_block(rank_).count);
    op.terms.counts = comm::hash_of(op.out_blocks);
    among_->run(op, on_);
    return all;
  }

  // Contenders that decide in the same way on all ranks: of equal ones the first in `all`, where
  // they lie by rank, token and choice.
  void keep_best_of(std::size_t f, const std::vector<contender>& all,
                    std::vector<std::int64_t>& next) {
    std::vector<std::int64_t> list;
    const std::int64_t own = next[at(rank_)];
    for (int rank = 0; rank < ranks_; ++rank)
      for (std::int64_t n = count(rank, full_[f]); n > 0; --n) list.push_back(next[at(rank)]++);
    const auto before = [&](std::int64_t a, std::int64_t b) {
      const contender &x = all[at(a)], &y = all[at(b)];
      if (x.value() != y.value()) return x.value() > y.value();
      return x.place != y.place ? x.place < y.place : a < b;
    };
    const auto dropped = list.begin() + capacity_;
    std::nth_element(list.begin(), dropped, list.end(), before);
    for (auto one = dropped; one != list.end(); ++one)
      if (*one >= own && *one < next[at(rank_)]) routes_.drop(own_[at(first_[f] + *one - own)]);
  }

  const limit_call& call_;
  row_routes& routes_;
  const std::int64_t experts_;
  comm::transport* const among_;
  core::execution& on_;
  const int ranks_, rank_;
  std::vector<std::int64_t> counts_;
  std::int64_t tokens_ = 0, capacity_ = 0;
  std::vector<std::int64_t> full_;   // experts with more choices than capacity
  std::vector<std::int64_t> first_;  // of each of them and behind the last, into own_
  std::vector<std::int32_t> own_;    // numbers of choices
};

}  // namespace

std::int64_t capacity_rule::rows_for(std::int64_t tokens, const expert_layout& of) const {
  if (by == measure::rows) return rows;
  // In the order of Megatron-LM's expression, so that roundings are its own.
  const double mean = static_cast<double>(tokens * of.top_k) / static_cast<double>(of.experts);
  const double wanted = std::ceil(mean * factor);
  const auto most = static_cast<double>(tokens);
  return std::min(std::max(rows, static_cast<std::int64_t>(std::min(wanted, most))), tokens);
}

std::uint64_t capacity_rule::hash() const {
  std::uint64_t all = comm::mixed(static_cast<std::uint64_t>(by) + (keeps_first ? 4u : 0u) +
                                  (alone ? 8u : 0u) + (pads ? 16u : 0u));
  all = comm::mixed(all + static_cast<std::uint64_t>(rows));
  return comm::mixed(all + static_cast<std::uint64_t>(bits_of(factor)));
}

comm::operation counts_of(const limit_call& call, const row_routes& routes) {
  const expert_layout& of = routes.layout();
  comm::operation op = gather_of(call.function, routes.own_counts(), nullptr);
  op.set_count(of.experts + 1);
  op.terms.count = of.experts + 1;
  op.terms.require_same(comm::mixed(call.rule.hash() + static_cast<std::uint64_t>(of.top_k) * 2 +
                                    (call.order.placed ? 1u : 0u)));
  return op;
}

void limit_choices(const limit_call& call, row_routes& routes, comm::transport* among,
                   core::execution& on) {
  choice_limit(call, routes, among, on).run();
}

}  // namespace velo::sched
