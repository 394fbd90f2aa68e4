// generate_mask and alibi_slopes as operators: which columns a row shows, and the slopes.
#include "ops/attention/generate_mask.hpp"

#include <algorithm>
#include <cmath>

#include "core/round_up.hpp"
#include "ops/attention/engine/attention_window.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_attention.h"

namespace velo::ops {
namespace {

using core::fail;

constexpr std::int64_t open_side = 2147483647, constant = 2048, prefix_rows = 1024;

struct mask_problem {
  std::int64_t rows, keys;
  std::int64_t limit;  // of positions
  bool window;         // rows of a window, else of a constant
};

// Modes 1 and 5 read a mask of the caller's own.
bool has_own_mask(std::int64_t mode) {
  return mode == VELO_ATTENTION_SPARSE_MODE_ALL_MASK || mode == VELO_ATTENTION_SPARSE_MODE_PREFIX;
}

// positions' shape with the columns appended.
struct mask_shape {
  int rank;
  std::int64_t sizes[max_rank];
  mask_shape(const velo_tensor& positions, std::int64_t keys) : rank(positions.ndim + 1) {
    for (int i = 0; i < positions.ndim; ++i) sizes[i] = positions.shape[i];
    sizes[rank - 1] = keys;
  }
};

void infer(const velo_generate_mask_args& a, mask_problem& p, output_shapes& outputs) {
  require_rank(*a.positions, "positions", 0, max_rank - 1);
  if (has_own_mask(a.sparse_mode)) {
    fail(VELO_ERR_ARGUMENT, "args.sparse_mode", "full, or a mode with a constant of its own",
         core::number(a.sparse_mode));
  }
  p = {numel(*a.positions), a.keys, open_side, a.sparse_mode == VELO_ATTENTION_SPARSE_MODE_FULL};
  if (!p.window) {
    const bool tall = a.sparse_mode == VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED;
    p.limit = constant + (tall ? prefix_rows : 0);
    if (p.keys > constant) {
      fail(VELO_ERR_ARGUMENT, "args.keys", "at most 2048 in modes with a constant",
           core::number(p.keys));
    }
  }
  const mask_shape mask(*a.positions, p.keys);
  outputs.set(a.mask, u8, mask.rank, mask.sizes);
}

// The columns that a row shows.
mask_row row_of(const velo_generate_mask_args& a, const mask_problem& p, std::int64_t position) {
  mask_row row{};
  row.columns = p.keys;
  std::int64_t first = 0, last = position + 1;
  if (p.window) {
    if (a.pre_tokens != open_side) first = position - a.pre_tokens;
    last = a.next_tokens == open_side ? p.keys : position + a.next_tokens + 1;
  } else if (position >= constant) {
    last = constant / 2;
  }
  row.first = std::clamp<std::int64_t>(first, 0, p.keys);
  row.last = std::clamp<std::int64_t>(last, row.first, p.keys);
  return row;
}

void run(const velo_generate_mask_args& a, const mask_problem& p,
         const generate_mask_kernels& kernels, core::execution& on) {
  require_indices(*a.positions, "positions", p.limit);
  const index_reader positions(*a.positions);
  auto* mask = data<std::uint8_t>(a.mask);
  const row_slices slices = slice_rows(p.rows, p.keys);
  const bool bypass = bypass_cache(mask, p.rows, p.keys, on);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t i = first; i < first + slices.count(task); ++i) {
      mask_row row = row_of(a, p, positions[i]);
      row.to = mask + i * p.keys;
      row.bypass = bypass;
      kernels.fill(row);
    }
  });
}

// ---- slopes ----

struct slopes_problem {
  std::int64_t power;  // the largest power of two up to the heads
};

void infer_slopes(const velo_alibi_slopes_args& a, slopes_problem& p, output_shapes& outputs) {
  p.power = 1;
  while (2 * p.power <= a.head_num) p.power *= 2;
  outputs.set(a.slopes, f32, a.heads->ndim, a.heads->shape);
}

void run_slopes(const velo_alibi_slopes_args& a, const slopes_problem& p,
                const generate_mask_kernels&, core::execution&) {
  require_indices(*a.heads, "heads", a.head_num);
  const index_reader heads(*a.heads);
  auto* slopes = data<float>(a.slopes);
  const auto power = static_cast<double>(p.power);
  for (std::int64_t i = 0; i < numel(*a.heads); ++i) {
    const std::int64_t h = heads[i];
    const double exponent = h < p.power ? 8 * static_cast<double>(h + 1)
                                        : 4 * static_cast<double>(2 * (h - p.power) + 1);
    slopes[i] = static_cast<float>(std::exp2(-exponent / power));
  }
}

}  // namespace

extern const operator_def generate_mask_operator = define<infer, run>(generate_mask_kernel_list);
extern const operator_def alibi_slopes_operator =
    define<infer_slopes, run_slopes>(generate_mask_kernel_list);

}  // namespace velo::ops
