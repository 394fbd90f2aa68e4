// The loops of products with quantized weights.
#include "ops/quant/weight_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "ops/operator/definition.hpp"
#include "ops/quant/bf16_weight_product.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t depth_block = 256, row_block = 512;
constexpr int panel_width = 48;

// ---- the reference ----

double value_of(element_type type, const void* p, std::int64_t i) {
  double value = 0;
  with_element_type(dtype_of(type), [&](auto element) {
    value = static_cast<double>(simd::to_float(static_cast<const decltype(element)*>(p)[i]));
  });
  return value;
}

double integer_at(const weight_matrix& w, std::int64_t row, std::int64_t element) {
  const std::uint8_t byte = *w.byte_of(row, element);
  if (!w.int4) return static_cast<std::int8_t>(byte);
  const int four = byte >> (element % 2 * 4) & 0xf;
  return four - (four & 8) * 2;
}

double weight_at(const weight_matrix& w, std::int64_t k, std::int64_t n) {
  const std::int64_t at = k / w.scales.group * w.scales.ld + n;
  const double offset =
      w.scales.offset == nullptr ? 0 : value_of(w.scales.type, w.scales.offset, at);
  return ((w.transposed ? integer_at(w, n, k) : integer_at(w, k, n)) + offset) *
         value_of(w.scales.type, w.scales.scale, at);
}

// An element without its bias.
double element_at(const weight_product& p, std::int64_t row, std::int64_t j) {
  double sum = 0;
  for (std::int64_t i = 0; i < p.depth(); ++i)
    sum += value_of(p.x_type, p.x, row * p.depth() + i) *
           (p.backward ? weight_at(p.w, j, i) : weight_at(p.w, i, j));
  return sum;
}

void multiply_row(const weight_product& p, std::int64_t row) {
  for (std::int64_t j = 0; j < p.columns(); ++j) {
    const double bias = p.bias == nullptr ? 0 : static_cast<double>(p.bias[j]);
    const double sum = element_at(p, row, j) + bias;
    with_element_type(dtype_of(p.y_type), [&](auto element) {
      simd::assign(static_cast<decltype(element)*>(p.y)[row * p.columns() + j], sum);
    });
  }
}

// ---- the kernels ----

bool is_finite(const float* x, std::int64_t n) {
  return std::all_of(x, x + n, [](float one) { return std::isfinite(one); });
}

bool has_finite_row(const weight_product& p, std::int64_t row) {
  for (std::int64_t i = 0; i < p.depth(); ++i)
    if (!std::isfinite(value_of(p.x_type, p.x, row * p.depth() + i))) return false;
  return true;
}

// A block of the result: up to few_rows rows, columns [column, column + columns).
struct few_block {
  std::int64_t row, column, columns;
  int rows;
  float *sums, *y;  // [rows][ld], float32
  std::int64_t ld;
};

class weight_loops {
 public:
  weight_loops(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on)
      : p_(p),
        kernels_(kernels),
        gemm_(gemm_kernels_for(kernels.isa)),
        on_(on),
        depth_(p.depth()),
        columns_(p.columns()) {}

  void few() const;
  void panels() const;

 private:
  // Memory of one thread.
  struct own {
    float *panel, *stored, *sums, *result;
  };
  // Rows of x in blocks of the depth: [depth / depth_block][rows][depth_block].
  struct block_of_rows {
    const float* values;
    index_range rows;
  };

  const char* x_at(std::int64_t row, std::int64_t column) const {
    return static_cast<const char*>(p_.x) + (row * depth_ + column) * element_bytes(p_.x_type);
  }
  void widen_x(std::int64_t first, int rows, std::int64_t k, std::int64_t count, float* to,
               std::int64_t ld) const {
    gemm_.reorders(p_.x_type, element_type::f32)
        .rows({x_at(first, k), depth_, rows, static_cast<int>(count),
               reinterpret_cast<std::uint32_t*>(to), ld,
               core::round_up(static_cast<int>(count), 16)});
  }
  void multiply_by_columns(const float* x, std::int64_t ldx, const few_block& c) const;
  void multiply_few(const float* x, std::int64_t ldx, const few_block& c) const;
  std::int64_t few_columns(int m) const;
  void few_of(std::int64_t first, int m, float* x, float* memory) const;
  void take_panel(const own& mine, std::int64_t k, int steps, std::int64_t column, int width) const;
  bool scales_sums() const;
  void multiply_steps(const own& mine, const block_of_rows& x, std::int64_t k, int steps,
                      bool first, const index_range& columns) const;
  void multiply_panel(const own& mine, const block_of_rows& x, std::int64_t column) const;
  const weight_product& p_;
  const weight_quant_kernels& kernels_;
  const gemm_kernels& gemm_;
  core::execution& on_;
  const std::int64_t depth_, columns_;
};

// The columns of a pack lie in panels.
void weight_loops::multiply_by_columns(const float* x, std::int64_t ldx, const few_block& c) const {
  const std::int64_t most = p_.w.in_panels ? pack_columns : c.columns;
  for (std::int64_t j = 0; j < c.columns; j += most)
    kernels_.by_columns({x, ldx, c.rows, depth_, p_.w.byte_of(0, c.column + j), p_.w.row_bytes(),
                         p_.w.int4, c.column + j, std::min(most, c.columns - j), p_.w.scales,
                         c.sums + j, c.y + j, c.ld});
}

void weight_loops::multiply_few(const float* x, std::int64_t ldx, const few_block& c) const {
  if (p_.w.transposed) {
    kernels_.by_rows({x, ldx, c.rows, depth_, p_.w.byte_of(c.column, 0), p_.w.row_bytes(),
                      p_.w.int4, c.column, c.columns, p_.w.scales, c.y, c.ld});
  } else {
    multiply_by_columns(x, ldx, c);
  }
  const index_range columns{c.column, c.column + c.columns};
  for (int r = 0; r < c.rows; ++r) recompute_overflowed(p_, c.row + r, columns, c.y + r * c.ld);
  finish_sums(p_, kernels_, c.y, c.ld, {c.row, c.row + c.rows}, columns);
}

// All rows, row_block at a time.
void weight_loops::few() const {
  const int most = static_cast<int>(std::min(p_.m, row_block));
  const int padded = most == 1 ? 1 : core::round_up(most, few_rows);
  auto* x = on_.scratch.take<float>(
      static_cast<std::size_t>(padded * core::round_up(depth_, std::int64_t{16})));
  const std::int64_t floats = std::min(most, few_rows) * few_columns(most);
  auto* memory = on_.scratch.take<float>(
      static_cast<std::size_t>(2 * std::int64_t{on_.threads.threads()} * floats));
  for (std::int64_t row = 0; row < p_.m; row += row_block)
    few_of(row, static_cast<int>(std::min(row_block, p_.m - row)), x, memory);
}

// The columns of a task.
std::int64_t weight_loops::few_columns(int m) const {
  const std::int64_t unit = p_.w.in_panels ? pack_columns : 64;
  const std::int64_t most = core::round_up(std::int64_t{4096 / few_rows}, unit);
  const std::int64_t share = core::ceil_div(columns_, std::int64_t{on_.threads.threads()});
  return std::clamp(core::round_up(share, unit), unit, m == 1 ? few_rows * most : most);
}

void weight_loops::few_of(std::int64_t first, int m, float* x, float* memory) const {
  const std::int64_t ldx = core::round_up(depth_, std::int64_t{16});
  widen_x(first, m, 0, depth_, x, ldx);
  const int padded = m == 1 ? 1 : core::round_up(m, few_rows);
  std::fill_n(x + m * ldx, (padded - m) * ldx, 0.0f);
  if (p_.w.int4 && p_.w.transposed)
    for (int r = 0; r < m; ++r) kernels_.order_row(x + r * ldx, depth_);
  const std::int64_t block = few_columns(m), floats = std::min(m, few_rows) * block;
  on_.threads.slices(p_.w.bytes() * core::ceil_div(m, few_rows) >> 16,
                     core::ceil_div(columns_, block), [&](std::int64_t task, int thread) {
                       const std::int64_t column = task * block;
                       const std::int64_t columns = std::min(block, columns_ - column);
                       float* own_memory = memory + 2 * thread * floats;
                       for (int row = 0; row < m; row += few_rows)
                         multiply_few(x + row * ldx, ldx,
                                      {first + row, column, columns, std::min(few_rows, m - row),
                                       own_memory, own_memory + floats, block});
                     });
}

// Whether the weight lies as it is multiplied: then sums are scaled instead of weights, as for a
// few rows, and have the same bits.
bool weight_loops::scales_sums() const {
  return !p_.w.transposed && !p_.backward;
}

// Dequantizes `steps` of the depth of a panel: rows of it as they are stored, or transposed.
void weight_loops::take_panel(const own& mine, std::int64_t k, int steps, std::int64_t column,
                              int width) const {
  const weight_matrix& w = p_.w;
  const int columns = static_cast<int>(std::min<std::int64_t>(width, columns_ - column));
  const bool rows = w.transposed == p_.backward;
  if (!rows) {
    for (int j = 0; j < columns; ++j)
      kernels_.widen({w.byte_of(column + j, k), w.int4, mine.stored + j * depth_block, steps});
    gemm_.floats.transpose({mine.stored, depth_block, columns, steps,
                            reinterpret_cast<std::uint32_t*>(mine.panel), width, width});
  }
  weight_scales scales = w.scales;
  if (scales_sums()) scales.scale = nullptr;
  kernels_.dequantize({rows ? w.byte_of(k, column) : nullptr, w.row_bytes(), w.int4, mine.panel,
                       steps, width, columns, scales, !p_.backward, k, column});
}

// Adds `steps` of the depth from k on, all of them in a block of x and, of sums, in a group.
void weight_loops::multiply_steps(const own& mine, const block_of_rows& x, std::int64_t k,
                                  int steps, bool first, const index_range& columns) const {
  const int width = core::round_up(static_cast<int>(columns.size()), 16);
  take_panel(mine, k, steps, columns.begin, width);
  const std::int64_t within = k % depth_block;
  micro_args m{};
  m.a = reinterpret_cast<const std::uint32_t*>(x.values + (k - within) * x.rows.size() + within);
  m.a_row = depth_block, m.a_step = 1;
  m.b = reinterpret_cast<const std::uint32_t*>(mine.panel);
  m.b_step = width, m.words = steps, m.width = width;
  m.in_cache = true, m.first = first;
  m.sums = mine.sums, m.ld_sums = panel_width;
  m.output.rows = static_cast<int>(x.rows.size());
  gemm_.multiply_floats(m);
}

void weight_loops::multiply_panel(const own& mine, const block_of_rows& x,
                                  std::int64_t column) const {
  const index_range columns{column, std::min(columns_, column + panel_width)};
  const std::int64_t rows = x.rows.size(), group = scales_sums() ? p_.w.scales.group : depth_;
  bool all_finite = true;
  for (std::int64_t k = 0, next = 0; k < depth_; k = next) {
    next = std::min({depth_, (k / depth_block + 1) * depth_block, (k / group + 1) * group});
    multiply_steps(mine, x, k, static_cast<int>(next - k), k % group == 0, columns);
    if (!scales_sums() || (next < depth_ && next % group != 0)) continue;
    const std::int64_t at = k / group;
    all_finite &= kernels_.add_group({mine.sums, mine.result, panel_width, rows, columns.size(),
                                      p_.w.scales, at * p_.w.scales.ld + column, at > 0});
  }
  float* result = scales_sums() ? mine.result : mine.sums;
  if (depth_ == 0) std::memset(result, 0, sizeof(float) * row_block * panel_width);
  if (!all_finite)
    for (std::int64_t i = 0; i < rows; ++i)
      recompute_overflowed(p_, x.rows.begin + i, columns, result + i * panel_width);
  finish_sums(p_, kernels_, result, panel_width, x.rows, columns);
}

void weight_loops::panels() const {
  constexpr std::int64_t block = depth_block * panel_width, sums = row_block * panel_width;
  constexpr std::int64_t own_floats = 2 * block + 2 * sums;
  const std::int64_t panels = core::ceil_div(columns_, std::int64_t{panel_width});
  const std::int64_t blocks = core::ceil_div(depth_, depth_block);
  const std::int64_t most_rows = std::min(p_.m, row_block);
  auto* x = on_.scratch.take<float>(static_cast<std::size_t>(most_rows * blocks * depth_block));
  auto* memory =
      on_.scratch.take<float>(static_cast<std::size_t>(on_.threads.threads() * own_floats));
  for (std::int64_t row = 0; row < p_.m; row += row_block) {
    const int rows = static_cast<int>(std::min(row_block, p_.m - row));
    on_.threads.slices(rows * depth_ >> 14, blocks, [&](std::int64_t q, int) {
      const std::int64_t k = q * depth_block;
      widen_x(row, rows, k, std::min(depth_block, depth_ - k), x + k * rows, depth_block);
    });
    on_.threads(panels, [&](std::int64_t panel, int thread) {
      float* mine = memory + thread * own_floats;
      multiply_panel({mine, mine + block, mine + 2 * block, mine + 2 * block + sums},
                     {x, {row, row + rows}}, panel * panel_width);
    });
  }
}

}  // namespace

void recompute_overflowed(const weight_product& p, std::int64_t row, index_range columns,
                          float* sums) {
  if (is_finite(sums, columns.size()) || !has_finite_row(p, row)) return;
  for (std::int64_t j = columns.begin; j < columns.end; ++j)
    if (float& sum = sums[j - columns.begin]; !std::isfinite(sum))
      sum = static_cast<float>(element_at(p, row, j));
}

void finish_sums(const weight_product& p, const weight_quant_kernels& kernels, const float* sums,
                 std::int64_t ld, index_range rows, index_range columns) {
  const std::int64_t n = p.columns();
  const float* bias = p.bias == nullptr ? nullptr : p.bias + columns.begin;
  with_element_type(dtype_of(p.y_type), [&](auto element) {
    using T = decltype(element);
    T* y = static_cast<T*>(p.y) + rows.begin * n + columns.begin;
    kernels.finish(finished_rows<T>{sums, ld, bias, y, n, rows.size(), columns.size()});
  });
}

void multiply(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on) {
  if (p.m == 0 || p.columns() == 0) return;
  const core::scratch_scope scope(on.scratch);
  if (kernels.plain())
    on.threads(p.m, [&](std::int64_t row, int) { multiply_row(p, row); });
  else if (!p.backward && (p.m <= most_few_rows || (p.row_invariant && p.w.transposed)))
    weight_loops(p, kernels, on).few();
  else if (multiplies_as_bf16(p, kernels))
    multiply_as_bf16(p, kernels, on);
  else
    weight_loops(p, kernels, on).panels();
}

}  // namespace velo::ops
