// How the result of a product is cut into tiles, one task each: units of rows by panels of columns.
//
// Tiles first suit the caches. Where the busiest of the threads would then get over 15 % more than
// its share (products with few rows on many processors), they are cut so that shares are even, and
// of such cuts the one is taken whose tiles read least. Invariant: every unit and panel lies in one
// tile. An element's sum does not depend on its tile, so the cut may depend on the number of
// threads. Cost: about 50 ns; microseconds where shares have to be evened out.
#pragma once

#include <cstdint>

namespace velo::ops {

// What is cut, and for whom.
struct grid_request {
  std::int64_t m, panels;       // rows, panels of columns
  int panel;                    // columns of a panel
  int least_unit;               // of rows, that a task can begin at
  std::int64_t panel_bytes;     // of a panel, packed, over the whole depth
  bool packed;                  // beforehand, not as part of the product
  bool on_tiles;                // of the processor
  double work;                  // multiplications in all
  int most_rows, most_columns;  // of a tile that suits the caches
  int threads;
};

struct tile_grid {
  std::int64_t m, panels;
  int row_unit;
  std::int64_t row_tiles, column_tiles;
  std::int64_t phase_columns;  // column tiles of B that are packed, and then multiplied, at a time

  // Where tiles begin.
  std::int64_t first_row(std::int64_t tile) const {
    const std::int64_t row = units() * tile / row_tiles * row_unit;
    return row < m ? row : m;
  }
  std::int64_t first_panel(std::int64_t tile) const { return panels * tile / column_tiles; }

  // The largest tile, in rows and in panels.
  int tile_rows() const { return static_cast<int>(parts(units(), row_tiles)) * row_unit; }
  int tile_panels() const { return static_cast<int>(parts(panels, column_tiles)); }

  // The work of the busiest thread over an even share, where each thread takes one run of the tiles
  // of a phase; and a bound of it that takes all tiles for the largest and no loop over them.
  double imbalance(int threads) const;
  double imbalance_bound(int threads) const;

 private:
  static std::int64_t parts(std::int64_t all, std::int64_t count) {
    return (all + count - 1) / count;
  }
  std::int64_t units() const { return parts(m, row_unit); }
};

tile_grid choose_grid(const grid_request& request);

}  // namespace velo::ops
