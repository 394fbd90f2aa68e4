// How a weight of int8 or int4 gets into its panels.
#include "ops/quant/packed_weight.hpp"

#include <algorithm>
#include <cstring>

namespace velo::ops {
namespace {

constexpr std::int64_t rows_of_task = 256;  // of a panel; even

}  // namespace

// Rows [first, last) of a panel of `columns`, and where its columns are stored, `ld` bytes between
// rows.
struct packed_weight::part {
  const std::uint8_t* from;
  std::int64_t ld, first, last, columns;
  std::uint8_t* panel;
  std::int64_t row_bytes;

  void copy_rows(std::int64_t bytes) const {
    for (std::int64_t i = first; i < last; ++i)
      std::memcpy(panel + i * row_bytes, from + i * ld, static_cast<std::size_t>(bytes));
  }
  void transpose_bytes() const {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = first; i < last; ++i) panel[i * row_bytes + j] = from[j * ld + i];
  }
  // Two columns and two rows at a time; the depth of a weight with pairs along it is even.
  void transpose_pairs() const {
    for (std::int64_t j = 0; j < columns; j += 2)
      for (std::int64_t i = first; i < last; i += 2) {
        const unsigned one = from[j * ld + i / 2];
        const unsigned next = j + 1 < columns ? from[(j + 1) * ld + i / 2] : 0u;
        std::uint8_t* to = panel + i * row_bytes + j / 2;
        to[0] = static_cast<std::uint8_t>((one & 0xf) | (next & 0xf) << 4);
        to[row_bytes] = static_cast<std::uint8_t>(one >> 4 | (next & 0xf0));
      }
  }
};

void packed_weight::update(const void* weight, std::int64_t ld, bool transposed,
                           const core::parallel& threads) const {
  const auto bytes_of = [&](std::int64_t elements) { return int4_ ? elements / 2 : elements; };
  const auto* stored = static_cast<const std::uint8_t*>(weight);
  const std::int64_t tasks_of_panel = core::ceil_div(k_, rows_of_task);
  threads.slices(panels() * k_ * row_bytes() >> 14, panels() * tasks_of_panel,
                 [&](std::int64_t task, int) {
                   const std::int64_t q = task / tasks_of_panel, column = q * pack_columns;
                   const std::int64_t first = task % tasks_of_panel * rows_of_task;
                   const part p{stored + (transposed ? column * bytes_of(ld) : bytes_of(column)),
                                bytes_of(ld),
                                first,
                                std::min(k_, first + rows_of_task),
                                std::min(pack_columns, n_ - column),
                                data_ + q * k_ * row_bytes(),
                                row_bytes()};
                   if (!transposed)
                     p.copy_rows(bytes_of(p.columns));
                   else if (int4_)
                     p.transpose_pairs();
                   else
                     p.transpose_bytes();
                 });
}

}  // namespace velo::ops
