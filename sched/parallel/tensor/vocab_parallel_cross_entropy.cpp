// vocab_parallel_cross_entropy and its gradient: logits whose classes are cut between ranks.
//
// A rank reduces its classes to four numbers a token: the log-sum-exp, the logit of the target
// where it has it, else 0, whether it has it, and with smoothing its part of the mean logit. An
// all_gather brings those of all ranks to each, which combines them in rank order, so that all have
// the same bits. The gradient needs no exchange. Padded classes, from vocab_size on, count nowhere.
// Cost: one read of the logits, two with smoothing, and 16 bytes a token and rank; the gradient one
// read and one write.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/loss/cross_entropy.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "ops/replay/own_terms.hpp"
#include "sched/overlap/product.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;
using core::number;
using forward_args = velo_vocab_parallel_cross_entropy_args;
using gradient_args = velo_vocab_parallel_cross_entropy_backward_args;

struct loss_kernel {
  bool plain;
};
constexpr loss_kernel fused{false}, reference{true};
constexpr ops::kernel_entry entries[] = {{"fused", core::isa::scalar, &fused, VELO_DEVICE_CPU, 1},
                                         {"reference", core::isa::scalar, &reference}};
constexpr ops::kernel_list kernel_list{entries, 2};

struct problem {
  membership in;
  velo_dtype dtype;
  std::int64_t tokens, stride;  // stride: of a row of logits
  std::int64_t begin, n;        // classes of this rank, without padding
  std::int64_t vocab;           // classes of all ranks
  std::uint64_t signature;      // of what must be the same on all ranks
};

const ops::cross_entropy_kernels& kernels_for(core::isa isa) {
  const ops::kernel_entry* entry = ops::cross_entropy_kernel_list.entries;
  while (entry->isa > isa) ++entry;
  return *static_cast<const ops::cross_entropy_kernels*>(entry->kernels);
}

template <class Args>
problem problem_of(const Args& a) {
  const velo_tensor& logits = *a.logits;
  ops::require_rank(logits, "logits", 2, 2);
  ops::require_shape(*a.targets, "targets", 1, logits.shape);
  problem p{};
  p.in = membership_in(a.group, "args.group");
  p.dtype = logits.dtype;
  p.tokens = logits.shape[0], p.stride = logits.shape[1];
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (p.stride > most)
    fail(VELO_ERR_SHAPE, "args.logits.shape", concat("at most 2^40 classes"), number(p.stride));
  const std::int64_t rank = p.in.group == nullptr ? 0 : p.in.group->rank();
  const std::int64_t even = p.stride * p.in.size();
  p.begin = a.vocab_begin < 0 ? rank * p.stride : a.vocab_begin;
  p.vocab = a.vocab_size == 0 ? std::max(even, p.begin + p.stride) : a.vocab_size;
  std::uint64_t smoothing;
  std::memcpy(&smoothing, &a.label_smoothing, sizeof smoothing);
  p.signature = comm::mixed(static_cast<std::uint64_t>(p.vocab) + 1);
  p.signature = comm::mixed(p.signature + smoothing);
  p.signature = comm::mixed(p.signature + static_cast<std::uint64_t>(a.ignore_index));
  p.n = p.tokens == 0 ? 0 : std::clamp<std::int64_t>(p.vocab - p.begin, 0, p.stride);
  return p;
}

// The column of a target, or -1 where another rank has it.
std::int64_t own_class(std::int64_t target, const problem& p) {
  return target >= p.begin && target < p.begin + p.n ? target - p.begin : -1;
}

void infer(const forward_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a);
  outputs.set(a.loss, core::f32, 1, &p.tokens);
  outputs.set(a.lse, core::f32, 1, &p.tokens);
}

void infer_gradient(const gradient_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a);
  ops::require_shape(*a.dloss, "dloss", 1, &p.tokens);
  ops::require_shape(*a.lse, "lse", 1, &p.tokens);
  outputs.like(a.dlogits, *a.logits);
}

// ---- forward ----

// The numbers of a token on one rank: log-sum-exp, the target's logit, whether the rank has the
// target, and the rank's part of the mean logit.
struct class_part {
  float lse, hit, hits, mean;
};

comm::operation operation_of(const problem& p) {
  comm::operation what;
  what.function = "velo_vocab_parallel_cross_entropy";
  what.terms.kind = comm::collective::all_gather;
  what.terms.in_code = what.terms.out_code = VELO_DTYPE_FLOAT;
  what.terms.in_bits = what.terms.out_bits = 32;
  const std::int64_t count = p.tokens * static_cast<std::int64_t>(sizeof(class_part) / 4);
  what.terms.count = count;
  what.terms.require_same(p.signature);
  what.set_count(count);
  what.out_count = count * p.in.size();
  return what;
}

// The first target that is neither a class nor ignored.
std::optional<std::int64_t> wrong_target(const velo_tensor& given, std::int64_t vocab,
                                         std::int64_t ignored) {
  const ops::index_reader targets(given);
  for (std::int64_t t = 0; t < given.shape[0]; ++t)
    if (targets[t] != ignored && (targets[t] < 0 || targets[t] >= vocab)) return t;
  return std::nullopt;
}

[[noreturn]] void refuse_target(const velo_tensor& given, std::int64_t token, std::int64_t vocab) {
  fail(VELO_ERR_ARGUMENT, "args.targets", concat("indices in [0, ", vocab, ")"),
       concat(ops::index_reader(given)[token], " in element ", token));
}

template <class T>
void reduce_rows(const forward_args& a, const problem& p, bool plain, class_part* parts,
                 core::execution& turn) {
  const auto& kernels = kernels_for(plain ? core::isa::scalar : turn.isa);
  const ops::index_reader targets(*a.targets);
  const bool smooths = a.label_smoothing != 0;
  float* shares = nullptr;  // of the mean
  if (smooths) {
    shares = turn.scratch.take<float>(static_cast<std::size_t>(p.n));
    std::fill_n(shares, p.n, 1 / static_cast<float>(p.vocab));
  }
  const ops::row_slices slices =
      ops::slice_rows(p.tokens, p.stride * static_cast<std::int64_t>(sizeof(T)));
  turn.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const T* row = ops::data<const T>(a.logits) + t * p.stride;
      const std::int64_t own = own_class(targets[t], p);
      class_part& to = parts[t];
      to.lse = p.n == 0 ? -HUGE_VALF : kernels.log_sum_exp(ops::cross_entropy_row<T>{row, p.n});
      to.hit = own >= 0 ? simd::to_float(row[own]) : 0.0f;
      to.hits = own >= 0 ? 1.0f : 0.0f;
      to.mean = smooths ? static_cast<float>(kernels.weighted_sum(
                              ops::cross_entropy_weighted_row<T>{row, shares, p.n}))
                        : 0.0f;
    }
  });
}

// The log-sum-exp of all ranks' classes, in rank order.
double joined(const class_part* parts, std::int64_t ranks, std::int64_t step) {
  double largest = -HUGE_VAL, sum = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const auto lse = static_cast<double>(parts[r * step].lse);
    if (std::isnan(lse)) return lse;
    largest = std::max(largest, lse);
  }
  if (std::isinf(largest)) return largest;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const double below = static_cast<double>(parts[r * step].lse) - largest;
    sum += below == 0 ? 1 : std::exp(below);
  }
  return largest + std::log(sum);
}

// The first token whose target no rank has, or several ranks have.
std::optional<std::int64_t> lost_target(const forward_args& a, const problem& p,
                                        const class_part* all) {
  const ops::index_reader targets(*a.targets);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    float hits = 0;
    for (std::int64_t r = 0; r < p.in.size(); ++r) hits += all[t + r * p.tokens].hits;
    if (targets[t] != a.ignore_index && hits != 1) return t;
  }
  return std::nullopt;
}

// all: the parts of all tokens, rank after rank.
void write_loss(const forward_args& a, const problem& p, const class_part* all, std::int64_t t,
                std::int64_t target) {
  const std::int64_t ranks = p.in.size();
  const double whole = joined(all + t, ranks, p.tokens), e = a.label_smoothing;
  double hit = 0, mean = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    hit += static_cast<double>(all[t + r * p.tokens].hit);
    mean += static_cast<double>(all[t + r * p.tokens].mean);
  }
  double value = (1 - e) * (whole - hit);
  if (e != 0) value += e * (whole - mean);
  if (a.lse != nullptr) ops::data<float>(a.lse)[t] = static_cast<float>(whole);
  if (a.loss != nullptr)
    ops::data<float>(a.loss)[t] = target == a.ignore_index ? 0.0f : static_cast<float>(value);
}

void write_losses(const forward_args& a, const problem& p, const class_part* all,
                  core::execution& turn) {
  const ops::index_reader targets(*a.targets);
  constexpr std::int64_t some = 256;
  turn.threads.slices(core::ceil_div(p.tokens, some), [&](std::int64_t task, int) {
    const std::int64_t last = std::min((task + 1) * some, p.tokens);
    for (std::int64_t t = task * some; t < last; ++t) write_loss(a, p, all, t, targets[t]);
  });
}

void reduce_classes(const forward_args& a, const problem& p, bool plain, class_part* parts,
                    core::execution& on) {
  in_turn(on, [&](core::execution& turn) {
    ops::with_element_type(
        p.dtype, [&](auto element) { reduce_rows<decltype(element)>(a, p, plain, parts, turn); });
  });
}

void run(const forward_args& a, const problem& p, const loss_kernel& kernel, core::execution& on) {
  // A rank with a wrong target takes part all the same, since its peers wait for it.
  const auto wrong = wrong_target(*a.targets, p.vocab, a.ignore_index);
  std::optional<std::int64_t> lost;
  const auto compute = [&](core::arena& scratch, auto&& exchange) {
    const std::int64_t ranks = p.in.size();
    auto* own = scratch.take<class_part>(static_cast<std::size_t>(p.tokens));
    reduce_classes(a, p, kernel.plain, own, on);
    const class_part* all = own;
    if (ranks > 1) {
      auto* gathered = scratch.take<class_part>(static_cast<std::size_t>(p.tokens * ranks));
      exchange(own, gathered);
      all = gathered;
    }
    lost = lost_target(a, p, all);
    if (!wrong && !lost) in_turn(on, [&](core::execution& turn) { write_losses(a, p, all, turn); });
  };
  if (p.in.group == nullptr) {
    in_turn(on, [&](core::execution& turn) {
      compute(turn.scratch, [](const class_part*, class_part*) {});
    });
  } else {
    const comm::operation what = operation_of(p);
    p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
      compute(scratch, [&](const class_part* own, class_part* gathered) {
        comm::operation gather = what;
        gather.in = own, gather.out = gathered;
        link.run(gather, on);
      });
    });
  }
  if (wrong) refuse_target(*a.targets, *wrong, p.vocab);
  if (lost)
    fail(VELO_ERR_ARGUMENT, "args.vocab_begin", concat("classes that one rank each has"),
         concat("class ", ops::index_reader(*a.targets)[*lost], " of none or several"));
}

void enter(const forward_args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", operation_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, operation_of(p));
}

// A loss is the difference of a log-sum-exp and a logit.
double terms_of(const forward_args& a) {
  const auto classes = static_cast<double>(std::max<std::int64_t>(a.logits->shape[1], 1));
  return ops::largest_magnitude(*a.logits) + std::log(classes);
}

// ---- gradient ----

template <class T>
void write_gradient(const gradient_args& a, const problem& p, const loss_kernel& kernel,
                    core::execution& on) {
  const auto& kernels = kernels_for(kernel.plain ? core::isa::scalar : on.isa);
  const ops::index_reader targets(*a.targets);
  const double e = a.label_smoothing;
  float* spread = nullptr;
  if (e != 0) {
    spread = on.scratch.take<float>(static_cast<std::size_t>(p.n));
    std::fill_n(spread, p.n, static_cast<float>(e / static_cast<double>(p.vocab)));
  }
  const auto row_bytes = p.stride * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = ops::data<T>(a.dlogits) != ops::data<const T>(a.logits) &&
                      ops::bypass_cache(ops::data<T>(a.dlogits), p.tokens, row_bytes, on);
  const ops::row_slices slices = ops::slice_rows(p.tokens, row_bytes);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      T* out = ops::data<T>(a.dlogits) + t * p.stride;
      const bool counts = targets[t] != a.ignore_index && p.n > 0;
      const std::int64_t kept = counts ? p.n : 0;
      std::memset(out + kept, 0, sizeof(T) * static_cast<std::size_t>(p.stride - kept));
      if (!counts) continue;
      kernels.backward(ops::cross_entropy_backward_row<T>{
          ops::data<const T>(a.logits) + t * p.stride, out, p.n, own_class(targets[t], p),
          ops::data<const float>(a.lse)[t], ops::data<const float>(a.dloss)[t], bypass, spread,
          static_cast<float>(1 - e), 1.0f});
    }
  });
}

void run_gradient(const gradient_args& a, const problem& p, const loss_kernel& kernel,
                  core::execution& on) {
  if (const auto wrong = wrong_target(*a.targets, p.vocab, a.ignore_index))
    refuse_target(*a.targets, *wrong, p.vocab);
  ops::with_element_type(
      p.dtype, [&](auto element) { write_gradient<decltype(element)>(a, p, kernel, on); });
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def vocab_parallel_cross_entropy_operator = with_terms<sched::terms_of>(
    define_waiting<sched::infer, sched::run, nullptr, sched::enter, sched::drop>(
        sched::kernel_list));
extern const operator_def vocab_parallel_cross_entropy_backward_operator =
    define<sched::infer_gradient, sched::run_gradient>(sched::kernel_list);

}  // namespace velo::ops
