// capacity: the places that an expert needs on any rank so that no gate drops a choice.
//
// Ranks exchange the largest of their counts and their prediction, and all take the maxima. With a
// history the capacity is a prediction of the maximum, which is set anew after a number of calls,
// so that buffers seldom change their sizes. The history is the caller's: nothing is kept here.
// Invariant: all ranks get one capacity, or, where the numbers of one are wrong, none. Cost: one
// read of the counts, and an all_gather of 16 bytes.
#include <algorithm>

#include "core/failure.hpp"
#include "sched/overlap/product.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using args = velo_capacity_args;
using core::fail;

struct capacity_kernel {};
constexpr capacity_kernel plain{};
constexpr ops::kernel_entry entries[] = {{"reference", core::isa::scalar, &plain}};
constexpr ops::kernel_list kernels{entries, 1};

struct problem {
  membership in;
  std::uint64_t signature;
};

// The entries of a history before its observed maxima.
enum : std::int64_t { calls_made, prediction, first_observed };

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  ops::require_rank(*a.counts, "counts", 1, 1);
  if (a.history != nullptr) {
    ops::require_rank(*a.history, "history", 1, 1);
    if (a.history->shape[0] <= first_observed)
      fail(VELO_ERR_SHAPE, "args.history.shape", "at least 3 numbers",
           ops::shape_name(1, a.history->shape));
    outputs.like(a.history, *a.history);
  }
  outputs.set(a.capacity, core::i64, 0, nullptr);
  p.in = membership_in(a.group, "args.group");
  p.signature = a.history == nullptr ? 1 : static_cast<std::uint64_t>(a.history->shape[0]);
  for (const std::int64_t one : {a.tokens, a.initial, a.period, a.margin})
    p.signature = comm::mixed(p.signature + static_cast<std::uint64_t>(one) + 1);
}

comm::operation operation_of(const problem& p) {
  comm::operation what;
  what.function = "velo_capacity";
  what.terms.kind = comm::collective::all_gather;
  what.terms.in_code = what.terms.out_code = VELO_DTYPE_INT;
  what.terms.in_bits = what.terms.out_bits = 64;
  what.terms.count = 2;
  what.terms.require_same(p.signature);
  what.set_count(2);
  what.out_count = 2 * p.in.size();
  return what;
}

constexpr std::int64_t largest = std::int64_t{1} << 40;  // of any number here

// What ranks exchange. A rank with wrong numbers takes part all the same, since its peers wait for
// it, and says so by a negative maximum.
struct rank_numbers {
  static constexpr std::int64_t wrong = -1;

  std::int64_t observed;   // the largest count
  std::int64_t predicted;  // 0 without a history

  void take(const rank_numbers& of) {
    observed = std::max(observed, of.observed), predicted = std::max(predicted, of.predicted);
  }
};
static_assert(sizeof(rank_numbers) == 16);

bool is_right(std::int64_t number) {
  return number >= 0 && number <= largest;
}
bool has_right_numbers(const velo_tensor& of) {
  const auto* numbers = ops::data<const std::int64_t>(&of);
  return std::all_of(numbers, numbers + of.shape[0], is_right);
}

void require_numbers(const velo_tensor* of, const char* argument) {
  if (of == nullptr) return;
  const auto* numbers = ops::data<const std::int64_t>(of);
  for (std::int64_t i = 0; i < of->shape[0]; ++i) {
    if (is_right(numbers[i])) continue;
    fail(VELO_ERR_ARGUMENT, argument, "numbers from 0 to 2^40",
         core::concat(numbers[i], " in element ", i));
  }
}

rank_numbers numbers_of(const args& a) {
  if (!has_right_numbers(*a.counts) || (a.history != nullptr && !has_right_numbers(*a.history)))
    return {rank_numbers::wrong, 0};
  const auto* counts = ops::data<const std::int64_t>(a.counts);
  rank_numbers all{0, 0};
  for (std::int64_t e = 0; e < a.counts->shape[0]; ++e)
    all.observed = std::max(all.observed, counts[e]);
  if (a.history == nullptr) return all;
  const auto* history = ops::data<const std::int64_t>(a.history);
  all.predicted = history[calls_made] == 0 ? a.initial : history[prediction];
  return all;
}

[[noreturn]] void fail_for(int rank) {
  core::failure of;
  of.code = VELO_ERR_PEER, of.rank = rank;
  core::copy_text(of.argument, sizeof of.argument, "args.group");
  core::copy_text(of.expected, sizeof of.expected, "numbers from 0 to 2^40 on each rank");
  core::copy_text(of.got, sizeof of.got, core::concat("others on rank ", rank).buffer);
  throw of;
}

// What ranks agree on, and the first one with wrong numbers, or -1.
struct agreement {
  rank_numbers numbers{0, 0};
  int wrong_rank = -1;
};

agreement agree(const rank_numbers* all, int ranks) {
  agreement made;
  for (int rank = ranks - 1; rank >= 0; --rank)
    if (all[rank].observed == rank_numbers::wrong)
      made.wrong_rank = rank;
    else
      made.numbers.take(all[rank]);
  return made;
}

// ceil(mean of the observed maxima + margin). The mean of parts, since their sum may overflow.
std::int64_t predict(const std::int64_t* history, std::int64_t size, std::int64_t margin) {
  const std::int64_t kept = std::min(size - first_observed, history[calls_made]);
  std::int64_t mean = 0, rest = 0;  // rest: of the division by kept, below it
  for (std::int64_t i = 0; i < kept; ++i) {
    const std::int64_t one = history[first_observed + i];
    mean += one / kept, rest += one % kept;
    if (rest >= kept) rest -= kept, ++mean;
  }
  return std::min(mean + (rest > 0 ? 1 : 0) + margin, largest);
}

// Takes what ranks agreed on into the history.
void observe(const args& a, const rank_numbers& agreed) {
  auto* history = ops::data<std::int64_t>(a.history);
  const std::int64_t size = a.history->shape[0];
  std::int64_t& calls = history[calls_made];
  history[prediction] = agreed.predicted;
  history[first_observed + calls % (size - first_observed)] = agreed.observed;
  calls = std::min(calls + 1, largest);
  if (calls % a.period == 0) history[prediction] = predict(history, size, a.margin);
}

void run(const args& a, const problem& p, const capacity_kernel&, core::execution& on) {
  const rank_numbers own = numbers_of(a);
  agreement made = agree(&own, 1);
  if (p.in.group != nullptr) {
    comm::operation what = operation_of(p);
    p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
      auto* all = scratch.take<rank_numbers>(static_cast<std::size_t>(p.in.size()));
      what.in = &own, what.out = all;
      link.run(what, on);
      made = agree(all, p.in.size());
    });
  }
  require_numbers(a.counts, "args.counts");
  require_numbers(a.history, "args.history");
  if (made.wrong_rank >= 0) fail_for(made.wrong_rank);
  const rank_numbers& agreed = made.numbers;
  std::int64_t capacity = std::max(agreed.observed, agreed.predicted);
  if (a.history != nullptr) observe(a, agreed);
  if (a.tokens != 0) capacity = std::min(capacity, a.tokens);
  *ops::data<std::int64_t>(a.capacity) = capacity;
}

void enter(const args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", operation_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, operation_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def capacity_operator =
    define_waiting<sched::infer, sched::run, nullptr, sched::enter, sched::drop>(sched::kernels);

}  // namespace velo::ops
