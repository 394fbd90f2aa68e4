// The tiles of several products as one sequence, and the even shares of it.
#include "ops/gemm/gemm_groups.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <new>

#include "ops/gemm/tiled_product.hpp"

namespace velo::ops {
namespace {

double size(std::int64_t x) {
  return static_cast<double>(x);
}

// Multiplications of a product, rows filled up to micro-panels. A row of B costs about as much as
// multiplying sixteen where it is packed first, two where it is read alone.
double cost_of(const gemm_problem& p, bool reads_b) {
  const std::int64_t row_of_b = p.packed_b != nullptr ? 2 : 16;
  const std::int64_t rows = reads_b ? p.m + 2 : round_up(p.m, micro_rows) + row_of_b;
  return size(rows) * size(p.n) * size(p.k + 1);
}

bool is_empty(const gemm_problem& p) {
  return p.m == 0 || p.n == 0;
}

// The products that have elements, and where each one's tasks and costs begin in the sequence.
class sequence {
 public:
  sequence(const gemm_problem* problems, std::int64_t count, int threads, core::arena& scratch,
           const gemm_target& target);

  void run(const core::parallel& threads) const;

 private:
  void plan(const gemm_problem* problems, std::int64_t count, int threads, core::arena& scratch,
            const gemm_target& target);
  std::int64_t first_tile(std::int64_t share) const;
  void multiply(std::int64_t share, int thread) const;

  // The product among whose tasks, by their beginnings, `task` is.
  static std::int64_t product_of(const std::int64_t* firsts, std::int64_t count,
                                 std::int64_t task) {
    return std::upper_bound(firsts, firsts + count, task) - firsts - 1;
  }

  gemm_plan* plans_;
  tiled_product* products_;
  std::int64_t count_ = 0, shares_;
  std::int64_t *packing_, *tiles_;  // the first task of each product, and the number of all
  double* costs_;                   // of the products before each one, and of all
};

sequence::sequence(const gemm_problem* problems, std::int64_t count, int threads,
                   core::arena& scratch, const gemm_target& target) {
  const auto places = static_cast<std::size_t>(count) + 1;
  products_ = scratch.take<tiled_product>(places);
  packing_ = scratch.take<std::int64_t>(places);
  tiles_ = scratch.take<std::int64_t>(places);
  costs_ = scratch.take<double>(places);
  plan(problems, count, threads, scratch, target);
  packing_[0] = tiles_[0] = 0;
  costs_[0] = 0;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_empty(problems[i])) continue;
    packing_[at + 1] = packing_[at] + products_[at].packing_tasks();
    tiles_[at + 1] = tiles_[at] + products_[at].tiles();
    costs_[at + 1] = costs_[at] + cost_of(problems[i], plans_[at].reads_b);
    ++at;
  }
  // Less work, some 5 us, is not worth waking a thread.
  constexpr double least_work = 1 << 18;
  shares_ =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(costs_[at] / least_work), 1, threads);
}

void sequence::plan(const gemm_problem* problems, std::int64_t count, int threads,
                    core::arena& scratch, const gemm_target& target) {
  constexpr double tiles_a_thread = 4;
  double work = 0;
  for (std::int64_t i = 0; i < count; ++i) work += cost_of(problems[i], false);
  plans_ = scratch.take<gemm_plan>(static_cast<std::size_t>(count));
  std::size_t shared = 0, own = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_empty(problems[i])) continue;
    const std::int64_t left = shared_a_bytes - static_cast<std::int64_t>(shared);
    const auto* made = new (plans_ + count_++)
        gemm_plan(problems[i], work / (tiles_a_thread * threads), left, target);
    shared += made->shared_a;
    own = std::max(own, made->own);
  }
  auto* memory = static_cast<char*>(scratch.take(shared));
  auto* own_memory = static_cast<char*>(scratch.take(own * static_cast<std::size_t>(threads)));
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_empty(problems[i])) continue;
    new (products_ + at) tiled_product(problems[i], plans_[at], {memory, own_memory, own}, target);
    memory += plans_[at++].shared_a;
  }
}

void sequence::run(const core::parallel& threads) const {
  if (count_ == 0) return;
  if (packing_[count_] != 0) {
    threads(packing_[count_], [&](std::int64_t task, int) {
      const std::int64_t i = product_of(packing_, count_ + 1, task);
      products_[i].pack(task - packing_[i]);
    });
  }
  threads(shares_, [&](std::int64_t share, int thread) { multiply(share, thread); });
}

// The first tile whose middle, in cost, lies in the share or behind it.
std::int64_t sequence::first_tile(std::int64_t share) const {
  if (share == shares_) return tiles_[count_];
  const double from = costs_[count_] * size(share) / size(shares_);
  const std::int64_t i =
      std::min(std::upper_bound(costs_, costs_ + count_ + 1, from) - costs_ - 1, count_ - 1);
  const std::int64_t tiles = tiles_[i + 1] - tiles_[i];
  const double a_tile = (costs_[i + 1] - costs_[i]) / size(tiles);
  const std::int64_t before = std::llround((from - costs_[i]) / a_tile);
  return tiles_[i] + std::clamp<std::int64_t>(before, 0, tiles);
}

void sequence::multiply(std::int64_t share, int thread) const {
  const std::int64_t end = first_tile(share + 1);
  std::int64_t tile = first_tile(share);
  if (tile >= end) return;
  std::int64_t i = product_of(tiles_, count_ + 1, tile);
  for (; tile < end; ++tile) {
    while (tile >= tiles_[i + 1]) ++i;
    products_[i].multiply(tile - tiles_[i], thread);
  }
}

}  // namespace

void gemm_groups(const gemm_problem* problems, std::int64_t count, const core::parallel& threads,
                 core::arena& scratch, const gemm_target& target) {
  assert(std::all_of(problems, problems + count, [&](const gemm_problem& p) {
    return p.type == problems->type && p.c_layout == matrix_layout::rows &&
           p.epilogue.addends.matrices == nullptr && p.epilogue.copies == nullptr &&
           p.epilogue.gate.finish == nullptr && p.rows_of_a.write == nullptr;
  }));
  sequence(problems, count, threads.threads(), scratch, target).run(threads);
}

}  // namespace velo::ops
