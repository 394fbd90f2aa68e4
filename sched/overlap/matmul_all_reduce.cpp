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

using problem = overlap_problem;

void infer(const velo_matmul_all_reduce_args& a, problem& p, ops::output_shapes& outputs) {
  p = problem_of(a.group, *a.x, *a.weight, a.transpose_weight != 0);
  set_product_shape(outputs, a.y, *a.x, p.product.n);
}

comm::operation operation_of(const problem& p) {
  comm::operation what;
  what.function = "velo_matmul_all_reduce";
  what.terms.kind = comm::collective::all_reduce;
  what.terms.reduction = VELO_REDUCE_SUM;
  what.terms.in_code = what.terms.out_code = p.dtype.code;
  what.terms.in_bits = what.terms.out_bits = p.dtype.bits;
  what.terms.scale = 1;
  what.in = what.out = p.product.c;
  what.terms.count = what.count = what.out_count = p.product.m * p.product.n;
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
      const int ranks = p_.group->size();
      auto* sources = turn.scratch.take<const void*>(static_cast<std::size_t>(ranks) * strips);
      for_strips(turn, end - taken_, [&](std::int64_t at, std::int64_t bytes) {
        const void** from = sources + at / strip_bytes() * ranks;
        for (int r = 0; r < ranks; ++r)
          from[r] = (r == p_.group->rank() ? y_ + taken_ : relay_.piece(r)) + at;
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
  if (p.group == nullptr) return multiply_all();
  comm::operation what = operation_of(p);
  what.kernel = comm::kernel_for(what.terms, comm::reductions_for(on.isa));
  p.group->serve(p.place, what, [&](comm::transport& link, core::arena& scratch) {
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
  return why_not_sliced(p, kernel);
}

void enter(const velo_matmul_all_reduce_args&, problem& p, core::stream& on,
           const ops::enqueue& put) {
  enter_group(p, operation_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.group != nullptr) p.group->drop(p.place, operation_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def matmul_all_reduce_operator =
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list);

}  // namespace velo::ops
