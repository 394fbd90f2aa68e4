// rope_frequencies as an operator: the frequencies of each scaling, and the rows of the tables.
//
// The scalings are those of transformers' modeling_rope_utils, in double.
#include "ops/rope/rope_frequencies.hpp"

#include <algorithm>
#include <cmath>

#include "core/round_up.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_rope.h"

namespace velo::ops {
namespace {

using args = velo_rope_frequencies_args;

constexpr double pi = 3.14159265358979323846;
constexpr std::int64_t most_positions = std::int64_t{1} << 24;  // whose angles are exact enough

struct frequencies_problem {
  std::int64_t rows, pairs;
};

void refuse(const char* field, const char* expected, double got) {
  core::fail(VELO_ERR_ARGUMENT, field, expected, core::text("%.17g", got));
}

void require_attributes(const args& a) {
  if (a.dim % 2 != 0) refuse("args.dim", "an even number", static_cast<double>(a.dim));
  if (a.scaling == VELO_ROPE_SCALING_DYNAMIC && a.dim < 4)
    refuse("args.dim", "at least 4, because scaling is dynamic", static_cast<double>(a.dim));
  if (a.scaling == VELO_ROPE_SCALING_LLAMA3 && a.high_freq_factor <= a.low_freq_factor)
    refuse("args.high_freq_factor", "more than low_freq_factor", a.high_freq_factor);
}

void infer(const args& a, frequencies_problem& p, output_shapes& outputs) {
  require_rank(*a.positions, "positions", 0, max_rank - 1);
  require_attributes(a);
  p = {numel(*a.positions), a.dim / 2};
  std::int64_t sizes[max_rank];
  const int rank = a.positions->ndim;
  std::copy_n(a.positions->shape, rank, sizes);
  sizes[rank] = a.dim;
  outputs.set(a.cos, f32, rank + 1, sizes);
  outputs.set(a.sin, f32, rank + 1, sizes);
  outputs.set(a.frequencies, f32, 1, &p.pairs);
}

// The feature that turns so many times in the original length.
double feature_of(const args& a, double turns) {
  const double length = static_cast<double>(a.original_length), dim = static_cast<double>(a.dim);
  return dim * std::log(length / (turns * 2 * pi)) / (2 * std::log(a.theta));
}

// The share of 1 / factor in each frequency grows from 0 to 1 between two features.
void scale_by_turns(const args& a, double* f, std::int64_t pairs) {
  double low = feature_of(a, a.beta_fast), high = feature_of(a, a.beta_slow);
  if (a.truncate != 0) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(a.dim - 1));
  if (low == high) high += 0.001;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / a.factor * ramp + f[i] * (1 - ramp);
  }
}

void scale_by_wavelength(const args& a, double* f, std::int64_t pairs) {
  const double length = static_cast<double>(a.original_length);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double turns = length * f[i] / (2 * pi);
    const double share = (turns - a.low_freq_factor) / (a.high_freq_factor - a.low_freq_factor);
    const double kept = std::clamp(share, 0.0, 1.0);
    f[i] = (1 - kept) * f[i] / a.factor + kept * f[i];
  }
}

double theta_of(const args& a, std::int64_t length) {
  if (a.scaling != VELO_ROPE_SCALING_DYNAMIC || length <= a.original_length) return a.theta;
  const double dim = static_cast<double>(a.dim);
  const double grown = static_cast<double>(length) / static_cast<double>(a.original_length);
  return a.theta * std::pow(a.factor * grown - (a.factor - 1), dim / (dim - 2));
}

void find_frequencies(const args& a, std::int64_t length, double* f, std::int64_t pairs) {
  const double theta = theta_of(a, length);
  for (std::int64_t i = 0; i < pairs; ++i)
    f[i] = std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(a.dim));
  if (a.scaling == VELO_ROPE_SCALING_LINEAR)
    for (std::int64_t i = 0; i < pairs; ++i) f[i] /= a.factor;
  if (a.scaling == VELO_ROPE_SCALING_YARN) scale_by_turns(a, f, pairs);
  if (a.scaling == VELO_ROPE_SCALING_LLAMA3) scale_by_wavelength(a, f, pairs);
}

double factor_of_tables(const args& a) {
  if (a.scaling != VELO_ROPE_SCALING_YARN) return 1;
  if (a.attention_factor != 0) return a.attention_factor;
  const double growth = 0.1 * std::log(a.factor);
  return (growth * a.mscale + 1) / (growth * a.mscale_all_dim + 1);
}

void run(const args& a, const frequencies_problem& p, const rope_frequencies_kernels& kernels,
         core::execution& on) {
  require_indices(*a.positions, "positions", most_positions);
  const index_reader positions(*a.positions);
  std::int64_t length = 0;
  for (std::int64_t i = 0; i < p.rows; ++i) length = std::max(length, positions[i] + 1);
  const std::int64_t padded = core::ceil_div(p.pairs, frequency_block) * frequency_block;
  auto* f = on.scratch.take<double>(static_cast<std::size_t>(padded));
  find_frequencies(a, length, f, p.pairs);
  std::fill(f + p.pairs, f + padded, 0.0);
  if (a.frequencies != nullptr)
    std::transform(f, f + p.pairs, data<float>(a.frequencies),
                   [](double x) { return static_cast<float>(x); });
  const double factor = factor_of_tables(a);
  const row_slices slices =
      slice_rows(p.rows, 2 * a.dim * static_cast<std::int64_t>(sizeof(float)));
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t i = first; i < first + slices.count(task); ++i)
      kernels.table_row({static_cast<double>(positions[i]), f, p.pairs, factor,
                         data<float>(a.cos) + i * a.dim, data<float>(a.sin) + i * a.dim,
                         a.mode == VELO_ROTARY_MODE_INTERLEAVED});
  });
}

}  // namespace

extern const operator_def rope_frequencies_operator =
    define<infer, run>(rope_frequencies_kernel_list);

}  // namespace velo::ops
