// The cut of a product's result into tiles, one task each: units of rows by panels of columns.
//
// Tiles first suit the caches. If the busiest thread would then get over 15 % more than its share
// (products with few rows on many processors), tiles are cut for even shares, and the cut whose
// tiles read least wins. Invariant: every unit and panel lies in one tile. An element's sum does
// not depend on its tile, so the cut may depend on the number of threads. Cost: about 50 ns;
// microseconds where shares have to be balanced.
#pragma once

#include <cstdint>

#include "core/round_up.hpp"

namespace velo::ops {

// The product to cut, and the number of threads.
struct grid_request {
  std::int64_t m, panels;       // rows, panels of columns
  int panel;                    // columns of a panel
  int least_unit;               // tasks begin at multiples of so many rows
  std::int64_t panel_bytes;     // of a packed panel over the whole depth
  bool packed;                  // B is packed before the product
  bool on_tile_registers;       // the product runs on tile registers
  double work;                  // multiplications in all
  int most_rows, most_columns;  // of a tile that suits the caches
  int threads;
};

struct tile_grid {
  std::int64_t m, panels;
  int row_unit;
  std::int64_t row_tiles, column_tiles;
  std::int64_t phase_columns;  // column tiles whose B is packed, and then multiplied, at a time

  // The first row and panel of a tile.
  std::int64_t first_row(std::int64_t tile) const {
    const std::int64_t row = units() * tile / row_tiles * row_unit;
    return row < m ? row : m;
  }
  std::int64_t first_panel(std::int64_t tile) const { return panels * tile / column_tiles; }

  // The largest tile, in rows and in panels.
  int tile_rows() const { return static_cast<int>(core::ceil_div(units(), row_tiles)) * row_unit; }
  int tile_panels() const { return static_cast<int>(core::ceil_div(panels, column_tiles)); }

  // The work of the busiest thread over an even share, where each thread takes one run of the tiles
  // of a phase; and an upper bound without a loop, which counts all tiles as the largest.
  double imbalance(int threads) const;
  double imbalance_bound(int threads) const;

 private:
  std::int64_t units() const { return core::ceil_div(m, row_unit); }
};

tile_grid choose_grid(const grid_request& request);

// The cut of one of several products that are multiplied in one region and pack B in their tasks:
// tall tiles, since each row of tiles packs B again, of at most so many multiplications while there
// are panels to divide.
tile_grid grid_among_others(const grid_request& request, double most_work);

}  // namespace velo::ops
