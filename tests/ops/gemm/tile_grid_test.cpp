// The cut of products: every element in one tile, and even shares for few and for many threads.
#include "ops/gemm/tile_grid.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "ops/gemm/gemm_plan.hpp"

using namespace velo::ops;
using velo::core::isa;

namespace {

// The busiest thread's work over an even share, phase by phase, where every thread takes one run of
// a phase's tiles, as the pool assigns them.
double simulated_imbalance(const tile_grid& grid, int threads) {
  double busiest = 0, all = 0;
  for (std::int64_t first = 0; first < grid.column_tiles; first += grid.phase_columns) {
    const std::int64_t columns = std::min(grid.phase_columns, grid.column_tiles - first);
    const std::int64_t tasks = grid.row_tiles * columns;
    std::vector<double> work(static_cast<std::size_t>(threads));
    for (std::int64_t task = 0; task < tasks; ++task) {
      const std::int64_t row = task / columns, column = first + task % columns;
      const std::int64_t rows = grid.first_row(row + 1) - grid.first_row(row);
      const std::int64_t panels = grid.first_panel(column + 1) - grid.first_panel(column);
      const std::int64_t more = tasks % threads, share = tasks / threads;
      const std::int64_t in_longer = more * (share + 1);
      const std::int64_t thread =
          task < in_longer ? task / (share + 1) : more + (task - in_longer) / share;
      work[static_cast<std::size_t>(thread)] += static_cast<double>(rows * panels);
      all += static_cast<double>(rows * panels);
    }
    busiest += *std::max_element(work.begin(), work.end());
  }
  CHECK(all == static_cast<double>(grid.m * grid.panels));
  return busiest * threads / all;
}

struct shape {
  std::int64_t m, n, k;
};

// Products of language models: hidden sizes 768 to 4096, feed-forward up to 11008, 512 or 2048
// tokens.
const shape llm_shapes[] = {{512, 768, 768},    {512, 2048, 768},    {512, 768, 2048},
                            {512, 2048, 2048},  {512, 4096, 4096},   {512, 11008, 4096},
                            {512, 4096, 11008}, {2048, 768, 768},    {2048, 2048, 2048},
                            {2048, 4096, 4096}, {2048, 11008, 4096}, {2048, 4096, 11008}};

tile_grid grid_of(const shape& s, element_type type, bool packed, int threads,
                  const gemm_target& target) {
  gemm_problem p;
  p.m = s.m, p.n = s.n, p.k = s.k, p.type = type;
  p.lda = s.k, p.ldb = s.n, p.ldc = s.n;
  const packed_matrix pack(s.k, s.n, type, target);
  if (packed) p.packed_b = &pack;
  return gemm_plan(p, threads, target).grid;
}

}  // namespace

TEST_CASE("8, 64 and 192 threads get even shares of a language model's products") {
  for (int ways = 0; ways < 2 * static_cast<int>(isa::amx); ++ways) {
    const isa at = static_cast<isa>(ways / 2 + 1);
    for (const element_type type : {element_type::f32, element_type::bf16, element_type::f16}) {
      for (const shape& s : llm_shapes) {
        for (const int threads : {1, 2, 8, 64, 192}) {
          CAPTURE(ways, static_cast<int>(type), s.m, s.n, s.k, threads);
          const tile_grid grid = grid_of(s, type, ways % 2 != 0, threads, at);
          CHECK(simulated_imbalance(grid, threads) <= 1.15);
        }
      }
    }
  }
}

TEST_CASE("tiles of one and two threads are those that suit the caches") {
  const tile_grid one = grid_of({512, 4096, 4096}, element_type::f32, false, 1, isa::avx512);
  const tile_grid two = grid_of({512, 4096, 4096}, element_type::f32, false, 2, isa::avx512);
  CHECK(one.row_tiles == 1);
  CHECK(one.tile_panels() == 9);
  CHECK(two.column_tiles == one.column_tiles);
}

TEST_CASE("a product too small to wake many threads for is not cut for them") {
  const tile_grid one = grid_of({64, 96, 80}, element_type::f32, false, 1, isa::avx512);
  const tile_grid many = grid_of({64, 96, 80}, element_type::f32, false, 192, isa::avx512);
  CHECK(many.row_tiles * many.column_tiles == one.row_tiles * one.column_tiles);
}

TEST_CASE("odd sizes are cut so that every element lies in one tile") {
  for (const std::int64_t m : {1, 7, 9, 31, 65, 530, 1000}) {
    for (const std::int64_t n : {1, 17, 49, 700, 5000}) {
      for (const int threads : {1, 3, 64, 192}) {
        const tile_grid grid =
            grid_of({m, n, 3000}, element_type::f32, threads % 2 != 0, threads, isa::avx512);
        CAPTURE(m, n, threads);
        const double simulated = simulated_imbalance(grid, threads);  // and checks the sum
        CHECK(grid.imbalance(threads) == Approx(simulated));
        CHECK(grid.tile_rows() <= 512);
        CHECK(grid.tile_panels() * 48 <= 480);
      }
    }
  }
}
