// matmul_all_reduce: y = sum over ranks of x @ op(weight), every rank's product rounded to y's dtype.
//
// Sliced: some rows are multiplied, then shown to the other ranks; while the next rows are multiplied
// the others show theirs, so that a rank waits for one that is slower only at the end, and all threads
// of a rank copy and combine. Every rank combines all elements, in the order of the ranks: the same
// bits everywhere, and those of product and collective one after the other. What the copies cost is
// not hidden where every processor multiplies: two ranks of one thread on two processors take as long
// as product and collective do.
#include <algorithm>

#include "core/round_up.hpp"
#include "sched/overlap/product.hpp"
#include "velo/ops_overlap.h"

namespace velo::sched {
namespace {

struct problem : overlap_problem {
  membership in;
};

void infer(const velo_matmul_all_reduce_args& a, problem& p, ops::output_shapes& outputs) {
  static_cast<overlap_problem&>(p) = problem_of(*a.x, *a.weight, a.transpose_weight != 0);
  p.in = membership_in(a.group, "args.group");
  std::int64_t shape[ops::max_rank];
  std::copy(a.x->shape, a.x->shape + a.x->ndim, shape);
  shape[a.x->ndim - 1] = p.product.n;
  outputs.set(a.y, p.dtype, a.x->ndim, shape);
}

comm::operation reduction_of(const problem& p) {
  comm::operation what = operation_of(p, comm::collective::all_reduce, p.product.m * p.product.n,
                                      "velo_matmul_all_reduce");
  what.in = what.out = p.product.c;
  return what;
}

// One call of the sliced kernel.
class sliced_run {
 public:
  sliced_run(const problem& p, const comm::operation& what, comm::relay& relay, core::execution& on)
      : p_(p),
        what_(what),
        relay_(relay),
        on_(on),
        y_(static_cast<char*>(p.product.c)),
        bytes_(what.in_bytes()) {}

  void run(core::arena& scratch) {
    const sliced_product product(p_.product, scratch, on_);
    const std::int64_t m = p_.product.m, rows = rows_of_a_slice();
    for (std::int64_t first = 0; first < m; first += rows) {
      const std::int64_t end = std::min(m, first + rows);
      in_turn(on_, [&](core::execution& turn) { product.multiply(first, end - first, turn); });
      while (shown_ < bytes_ && (piece_end(shown_) <= end * row_bytes())) show();
    }
    if (bytes_ == 0) relay_.await_place();  // to meet the others, as with elements
    while (taken_ < shown_) take();
    relay_.finish();
  }

 private:
  std::int64_t row_bytes() const { return p_.product.n * what_.in_size(); }
  std::int64_t piece_end(std::int64_t begin) const {
    return std::min(bytes_, begin + relay_.room());
  }

  // As many as fill two places, but not so few that products are slow.
  std::int64_t rows_of_a_slice() const {
    constexpr std::int64_t least = 64;
    const std::int64_t fitting = 2 * relay_.room() / std::max<std::int64_t>(row_bytes(), 1);
    return std::max(least, fitting / 32 * 32);
  }

  void show() {
    if (shown_ - taken_ == relay_.places * relay_.room()) take();
    relay_.await_place();
    const std::int64_t end = piece_end(shown_);
    in_turn(on_, [&](core::execution& turn) {
      const comm::reduction_kernels& kernels = comm::reductions_for(turn.isa);
      for_strips(turn, end - shown_, [&](std::int64_t at, std::int64_t bytes) {
        kernels.copy_around_cache({y_ + shown_ + at, relay_.place() + at, bytes});
      });
    });
    relay_.show();
    shown_ = end;
  }

  void take() {
    relay_.await_piece();
    const std::int64_t end = piece_end(taken_);
    in_turn(on_, [&](core::execution& turn) {
      const int ranks = p_.in.group->size();
      auto* sources = turn.scratch.take<const void*>(static_cast<std::size_t>(ranks) * strips);
      for_strips(turn, end - taken_, [&](std::int64_t at, std::int64_t bytes) {
        const void** from = sources + at / strip_bytes() * ranks;
        for (int r = 0; r < ranks; ++r)
          from[r] = (r == p_.in.group->rank() ? y_ + taken_ : relay_.piece(r)) + at;
        what_.kernel({from, ranks, y_ + taken_ + at, bytes / what_.in_size(), 1, false});
      });
    });
    relay_.release();
    taken_ = end;
  }

  // A piece is copied by all threads of the rank, each a strip of it.
  static constexpr std::int64_t strips = 8;
  std::int64_t strip_bytes() const { return core::round_up(relay_.room() / strips, 64); }
  template <class Body>
  void for_strips(const core::execution& turn, std::int64_t bytes, const Body& body) const {
    const std::int64_t strip = strip_bytes();
    turn.threads.slices((bytes + strip - 1) / strip, [&](std::int64_t task, int) {
      body(task * strip, std::min(strip, bytes - task * strip));
    });
  }

  const problem& p_;
  const comm::operation& what_;
  comm::relay& relay_;
  core::execution& on_;
  char* const y_;
  const std::int64_t bytes_;
  std::int64_t shown_ = 0, taken_ = 0;
};

void run(const velo_matmul_all_reduce_args& a, const problem& inferred,
         const overlap_kernel& kernel, core::execution& on) {
  problem p = inferred;
  p.product.a = ops::data<const void>(a.x), p.product.b = ops::data<const void>(a.weight);
  p.product.c = ops::data<void>(a.y);
  const auto multiply_all = [&] {
    in_turn(on, [&](core::execution& turn) { multiply(p.product, kernel.how, turn); });
  };
  if (p.in.group == nullptr) return multiply_all();
  comm::operation what = reduction_of(p);
  what.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.in.group->serve(p.in.place, what, [&](comm::transport& link, core::arena& scratch) {
    if (kernel.how == overlap_kernel::way::sliced) {
      what.terms.counts = 2;
      const auto relay = link.begin_relay(what, on);
      sliced_run(p, what, *relay, on).run(scratch);
    } else {
      multiply_all();
      link.run(what, on);
    }
  });
}

const char* reject(const velo_matmul_all_reduce_args&, const problem& p,
                   const ops::kernel_entry& kernel) {
  const bool sliced =
      static_cast<const overlap_kernel*>(kernel.kernels)->how == overlap_kernel::way::sliced;
  if (sliced && p.in.size() == 1) return "the group has one rank";
  if (sliced && !p.in.group->has_relay()) return "the transport of the group sends no pieces";
  return nullptr;
}

void enter(const velo_matmul_all_reduce_args&, problem& p, core::stream& on,
           const ops::enqueue& put) {
  enter_group(p.in, "args.group", reduction_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.place, reduction_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def matmul_all_reduce_operator =
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::sliced_kernel_list);

}  // namespace velo::ops
