// capacity: the places that an expert needs on any rank so that no gate drops a choice.
//
// Ranks exchange the largest of their counts, of which all take the maximum. With a history the
// capacity is a prediction of it, which is set anew after a number of calls, so that buffers seldom
// change their sizes. The history is the caller's: nothing is kept here. Cost: one read of the
// counts, and an all_gather of 8 bytes.
#include <algorithm>

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
  what.terms.count = 1;
  what.terms.require_same(p.signature);
  what.set_count(1);
  what.out_count = p.in.size();
  return what;
}

// ceil(mean of the observed maxima + margin).
std::int64_t predicted(const std::int64_t* history, std::int64_t size, std::int64_t margin) {
  const std::int64_t kept = std::min(size - first_observed, history[calls_made]);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < kept; ++i) sum += history[first_observed + i];
  return core::ceil_div(sum, kept) + margin;
}

// Takes an observed maximum into the history; returns the prediction for this call.
std::int64_t observe(const args& a, std::int64_t observed) {
  auto* history = ops::data<std::int64_t>(a.history);
  const std::int64_t size = a.history->shape[0];
  std::int64_t& calls = history[calls_made];
  if (calls == 0) history[prediction] = a.initial;
  const std::int64_t now = history[prediction];
  history[first_observed + calls % (size - first_observed)] = observed;
  ++calls;
  if (calls % a.period == 0) history[prediction] = predicted(history, size, a.margin);
  return now;
}

void require_numbers(const velo_tensor* of, const char* argument) {
  if (of == nullptr) return;
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto* numbers = ops::data<const std::int64_t>(of);
  for (std::int64_t i = 0; i < of->shape[0]; ++i) {
    if (numbers[i] >= 0 && numbers[i] <= most) continue;
    fail(VELO_ERR_ARGUMENT, argument, "numbers from 0 to 2^40",
         core::concat(numbers[i], " in element ", i));
  }
}

void run(const args& a, const problem& p, const capacity_kernel&, core::execution& on) {
  const auto* counts = ops::data<const std::int64_t>(a.counts);
  const std::int64_t experts = a.counts->shape[0];
  std::int64_t observed = experts == 0 ? 0 : *std::max_element(counts, counts + experts);
  if (p.in.group != nullptr) {
    comm::operation what = operation_of(p);
    p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
      const std::int64_t ranks = p.in.size(), own = observed;
      auto* all = scratch.take<std::int64_t>(static_cast<std::size_t>(ranks));
      what.in = &own, what.out = all;
      link.run(what, on);
      observed = *std::max_element(all, all + ranks);
    });
  }
  // A rank with wrong numbers has taken part all the same, since its peers wait for it.
  require_numbers(a.counts, "args.counts");
  require_numbers(a.history, "args.history");
  std::int64_t capacity = observed;
  if (a.history != nullptr) capacity = std::max(observed, observe(a, observed));
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
