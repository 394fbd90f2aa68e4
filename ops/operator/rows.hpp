// How row-wise operators cut their work: into slices of whole rows whose number depends on the
// problem alone.
//
// A slice is large enough to hide the cost of a task and small enough to balance threads.
// `bypass_cache` decides whether an output is written by streaming stores, which bypass the cache:
// worth 1.2-1.4x when it cannot stay in the last level, and a loss when it can.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/round_up.hpp"
#include "core/stream/execution.hpp"

namespace velo::ops {

struct row_slices {
  std::int64_t rows;      // all of them
  std::int64_t per_task;  // rows of a slice; the last may have fewer
  std::int64_t tasks() const { return core::ceil_div(rows, per_task); }
  std::int64_t begin(std::int64_t task) const { return task * per_task; }
  std::int64_t count(std::int64_t task) const { return std::min(per_task, rows - begin(task)); }
};

// Slices of about 64 KiB of the widest operand.
inline row_slices slice_rows(std::int64_t rows, std::int64_t row_bytes) {
  const std::int64_t fitting = (std::int64_t{64} << 10) / std::max<std::int64_t>(row_bytes, 1);
  return {rows, std::clamp<std::int64_t>(fitting, 1, 4096)};
}

// Cuts rows into at most `most` slices of at least `least` rows. Reductions over rows keep one
// partial result a slice.
inline row_slices slice_rows_into(std::int64_t rows, std::int64_t most, std::int64_t least) {
  return {rows, std::max<std::int64_t>({least, core::ceil_div(rows, most), 1})};
}

// Cuts elements into blocks, for operators without rows; a multiple of every vector width.
inline row_slices slice_elements(std::int64_t count) {
  return {count, std::int64_t{1} << 14};
}

// Streaming stores need whole vectors at aligned addresses in every row. An output as large as the
// last level leaves no room there for what it is made of.
inline bool bypass_cache(const void* output, std::int64_t rows, std::int64_t row_bytes,
                         const core::execution& on) {
  return rows * row_bytes >= on.caches.l3 && row_bytes % 64 == 0 &&
         reinterpret_cast<std::uintptr_t>(output) % 64 == 0;
}

}  // namespace velo::ops
