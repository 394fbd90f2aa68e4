// The grid that suits the caches, and the one that gives many threads even shares.
#include "ops/gemm/tile_grid.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

using core::ceil_div;

// The largest part of B that is packed at a time.
constexpr std::int64_t phase_bytes = std::int64_t{32} << 20;

constexpr double most_imbalance = 1.15;

// The least number of tiles for the threads to share. More tiles read A and B more often, which
// slows small products, those on tile registers first.
int least_tiles(const grid_request& r) {
  constexpr double large = 1 << 30;  // multiplications
  if (r.work >= large) return 8;
  return r.on_tile_registers && r.work < large / 2 ? 2 : 4;
}

// The column tiles of a phase: an even number unless the row tiles make the number of tasks even.
std::int64_t columns_of_phase(const grid_request& r, const tile_grid& grid) {
  const std::int64_t bytes = std::max<std::int64_t>(r.panel_bytes * grid.tile_panels(), 1);
  std::int64_t columns = std::clamp<std::int64_t>(phase_bytes / bytes, 1, grid.column_tiles);
  if (grid.row_tiles % 2 != 0 && columns > 1 && columns < grid.column_tiles)
    columns &= ~std::int64_t{1};
  return columns;
}

tile_grid grid_for_caches(const grid_request& r) {
  constexpr int unit = 32;
  const std::int64_t units = ceil_div(r.m, unit);
  // A weight that one row of tiles reads is packed by its tasks and multiplied from L2. That is
  // worth tiles of twice the height, with A from L3.
  const int least = least_tiles(r);
  const bool one_row =
      !r.packed && !r.on_tile_registers && r.m <= 2 * r.most_rows && r.panels >= 2 * least;
  std::int64_t row_tiles = one_row ? 1 : ceil_div(units, r.most_rows / unit);
  std::int64_t column_tiles = ceil_div(r.panels, r.most_columns / r.panel);
  while (row_tiles * column_tiles < least) {  // halve the longer side: square tiles read least
    const std::int64_t rows = ceil_div(units, row_tiles) * unit;
    const std::int64_t columns = ceil_div(r.panels, column_tiles) * r.panel;
    const bool rows_split = rows > 2 * unit && !one_row, columns_split = columns > 2 * r.panel;
    if (rows_split && (rows >= columns || !columns_split)) {
      row_tiles *= 2;
    } else if (columns_split) {
      column_tiles *= 2;
    } else {
      break;
    }
  }
  if (row_tiles * column_tiles % 2 != 0 && row_tiles * column_tiles > 1) {
    if (column_tiles < r.panels) {
      ++column_tiles;
    } else if (row_tiles < units) {
      ++row_tiles;
    }
  }
  tile_grid grid{r.m, r.panels, unit, row_tiles, column_tiles, column_tiles};
  if (!r.packed && row_tiles > 1) grid.phase_columns = columns_of_phase(r, grid);
  return grid;
}

// The cost of a grid. An imbalance that is too large counts alone; otherwise the reads of tiles (a
// row and a column more are two lines of sums to a step) count, too.
double cost_of(const grid_request& r, const tile_grid& grid, int threads) {
  const double imbalance = grid.imbalance_bound(threads);
  if (imbalance > most_imbalance) return 1000 * imbalance;
  return imbalance * (1 + 2.0 / grid.tile_rows() + 2.0 / (grid.tile_panels() * r.panel));
}

// The best grid over every number of column tiles in a phase and some numbers of tasks a thread.
tile_grid grid_for_threads(const grid_request& r, int threads, tile_grid best) {
  constexpr int counts = 4;  // of tasks a thread to try
  const std::int64_t units = ceil_div(r.m, r.least_unit);
  const std::int64_t phases =
      r.packed ? 1 : std::max<std::int64_t>(ceil_div(r.panels * r.panel_bytes, phase_bytes), 1);
  const auto tall = [&](std::int64_t rows) {  // the tasks of a single row of tiles pack B
    return rows == 1 && !r.packed && !r.on_tile_registers ? 2 * r.most_rows : r.most_rows;
  };
  double least = cost_of(r, best, threads);
  for (std::int64_t columns = 1; columns <= r.panels; ++columns) {
    const std::int64_t tasks = ceil_div(r.m, r.most_rows) * columns;
    const std::int64_t first = ceil_div(tasks, threads);
    for (std::int64_t count = first; count < first + counts; ++count) {
      const std::int64_t rows = std::min(count * threads / columns, units);
      if (rows == 0) continue;
      const bool alone = r.packed || rows == 1;
      const std::int64_t all = alone ? columns : columns * phases;
      const tile_grid grid{r.m, r.panels, r.least_unit, rows, all, columns};
      if (all > r.panels || grid.tile_rows() > tall(rows) ||
          grid.tile_panels() * r.panel > r.most_columns)
        continue;
      const double cost = cost_of(r, grid, threads);
      if (cost < least) {
        least = cost;
        best = grid;
      }
    }
  }
  return best;
}

}  // namespace

double tile_grid::imbalance(int threads) const {
  std::int64_t busiest = 0;
  for (std::int64_t first = 0; first < column_tiles; first += phase_columns) {
    const std::int64_t columns = std::min(phase_columns, column_tiles - first);
    const std::int64_t tasks = row_tiles * columns, longer = tasks % threads;
    std::int64_t most = 0, task = 0;
    for (int thread = 0; thread < threads; ++thread) {
      std::int64_t work = 0;
      const std::int64_t end = task + tasks / threads + (thread < longer ? 1 : 0);
      for (; task < end; ++task) {
        const std::int64_t row = task / columns, column = first + task % columns;
        work +=
            (first_row(row + 1) - first_row(row)) * (first_panel(column + 1) - first_panel(column));
      }
      most = std::max(most, work);
    }
    busiest += most;
  }
  return static_cast<double>(busiest * threads) / static_cast<double>(m * panels);
}

double tile_grid::imbalance_bound(int threads) const {
  const std::int64_t tile = std::int64_t{tile_panels()} * (tile_rows() / row_unit);
  std::int64_t busiest = 0;
  for (std::int64_t first = 0; first < column_tiles; first += phase_columns) {
    const std::int64_t columns = std::min(phase_columns, column_tiles - first);
    busiest += ceil_div(row_tiles * columns, threads) * tile;
  }
  return static_cast<double>(busiest * threads) / static_cast<double>(units() * panels);
}

tile_grid choose_grid(const grid_request& request) {
  grid_request r = request;
  r.m = std::max<std::int64_t>(r.m, 1);
  r.panels = std::max<std::int64_t>(r.panels, 1);
  const tile_grid grid = grid_for_caches(r);
  // Less work, some 5 us, is not worth waking a thread.
  constexpr double least_work = 1 << 18;
  const double worth = r.work / least_work;
  const int threads = worth < r.threads ? static_cast<int>(worth) : r.threads;
  if (threads < 2 || grid.imbalance_bound(threads) <= most_imbalance ||
      grid.imbalance(threads) <= most_imbalance)
    return grid;
  return grid_for_threads(r, threads, grid);
}

tile_grid grid_among_others(const grid_request& r, double most_work) {
  constexpr int unit = 32;
  const std::int64_t m = std::max<std::int64_t>(r.m, 1);
  const std::int64_t panels = std::max<std::int64_t>(r.panels, 1);
  const int most_rows = r.on_tile_registers ? r.most_rows : 2 * r.most_rows;
  const std::int64_t rows = ceil_div(ceil_div(m, unit), most_rows / unit);
  std::int64_t columns = ceil_div(panels, r.most_columns / r.panel);
  const double work = r.work / static_cast<double>(rows);
  if (work > most_work * static_cast<double>(panels)) {
    columns = panels;
  } else if (work > most_work * static_cast<double>(columns)) {
    columns = static_cast<std::int64_t>(work / most_work) + 1;
  }
  return {m, panels, unit, rows, std::min(columns, panels), std::min(columns, panels)};
}

}  // namespace velo::ops
