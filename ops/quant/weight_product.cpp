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

namespace velo::ops {
namespace {

constexpr std::int64_t depth_block = 256, row_block = 256;
constexpr int panel_width = 48;

// ---- the reference ----

double value_of(element_type type, const void* p, std::int64_t i) {
  double value = 0;
  with_element_type(dtype_of(type), [&](auto element) {
    value = static_cast<double>(simd::to_float(static_cast<const decltype(element)*>(p)[i]));
  });
  return value;
}

double integer_at(const weight_matrix& w, std::int64_t index) {
  if (!w.int4) return static_cast<std::int8_t>(w.data[index]);
  const int four = w.data[index / 2] >> (index % 2 * 4) & 0xf;
  return four - (four & 8) * 2;
}

double weight_at(const weight_matrix& w, std::int64_t k, std::int64_t n) {
  const std::int64_t at = k / w.scales.group * w.scales.ld + n;
  const double offset =
      w.scales.offset == nullptr ? 0 : value_of(w.scales.type, w.scales.offset, at);
  return (integer_at(w, w.transposed ? n * w.k + k : k * w.n + n) + offset) *
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
    float *panel, *stored, *sums;
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
  void multiply_few(const float* x, std::int64_t ldx, const few_block& c) const;
  void take_panel(const own& mine, std::int64_t k, int steps, std::int64_t column, int width) const;
  void multiply_panel(const own& mine, const float* x, std::int64_t first_row, int rows,
                      std::int64_t column) const;
  void finish(const float* sums, std::int64_t ld, std::int64_t row, std::int64_t rows,
              std::int64_t column, std::int64_t columns) const {
    const float* bias = p_.bias == nullptr ? nullptr : p_.bias + column;
    with_element_type(dtype_of(p_.y_type), [&](auto element) {
      using T = decltype(element);
      kernels_.finish(finished_rows<T>{sums, ld, bias,
                                       static_cast<T*>(p_.y) + row * columns_ + column, columns_,
                                       rows, columns});
    });
  }

  const weight_product& p_;
  const weight_quant_kernels& kernels_;
  const gemm_kernels& gemm_;
  core::execution& on_;
  const std::int64_t depth_, columns_;
};

void weight_loops::multiply_few(const float* x, std::int64_t ldx, const few_block& c) const {
  const std::int64_t ld = p_.w.row_bytes();
  const weight_scales& scales = p_.w.scales;
  if (p_.w.transposed) {
    const std::uint8_t* weight = p_.w.data + c.column * ld;
    kernels_.by_rows(
        {x, ldx, c.rows, depth_, weight, ld, p_.w.int4, c.column, c.columns, scales, c.y, c.ld});
  } else {
    const std::uint8_t* weight = p_.w.data + (p_.w.int4 ? c.column / 2 : c.column);
    kernels_.by_columns({x, ldx, c.rows, depth_, weight, ld, p_.w.int4, c.column, c.columns, scales,
                         c.sums, c.y, c.ld});
  }
  // A sum is scaled as a whole here; where that is no number, although x is, each product has to
  // be.
  for (int r = 0; r < c.rows; ++r)
    if (!is_finite(c.y + r * c.ld, c.columns) && is_finite(x + r * ldx, depth_))
      for (std::int64_t j = 0; j < c.columns; ++j)
        if (float& y = c.y[r * c.ld + j]; !std::isfinite(y))
          y = static_cast<float>(element_at(p_, c.row + r, c.column + j));
  finish(c.y, c.ld, c.row, c.rows, c.column, c.columns);
}

void weight_loops::few() const {
  constexpr std::int64_t most = 4096 / few_rows, unit = 64;  // columns of a task
  const int m = static_cast<int>(p_.m), padded = m == 1 ? 1 : core::round_up(m, few_rows);
  const std::int64_t ldx = core::round_up(depth_, std::int64_t{16});
  auto* x = on_.scratch.take<float>(static_cast<std::size_t>(padded * ldx));
  widen_x(0, m, 0, depth_, x, ldx);
  std::fill_n(x + m * ldx, (padded - m) * ldx, 0.0f);
  if (p_.w.int4 && p_.w.transposed)
    for (int r = 0; r < m; ++r) kernels_.order_row(x + r * ldx, depth_);
  const std::int64_t share = core::ceil_div(columns_, std::int64_t{on_.threads.threads()});
  const std::int64_t block =
      std::clamp(core::round_up(share, unit), unit, m == 1 ? few_rows * most : most);
  const std::int64_t tasks = core::ceil_div(columns_, block);
  const std::int64_t floats = std::min(m, few_rows) * block;
  auto* memory = on_.scratch.take<float>(
      static_cast<std::size_t>(2 * std::int64_t{on_.threads.threads()} * floats));
  on_.threads.slices(p_.w.bytes() >> 16, tasks, [&](std::int64_t task, int thread) {
    const std::int64_t column = task * block, columns = std::min(block, columns_ - column);
    float* own_memory = memory + 2 * thread * floats;
    for (int row = 0; row < m; row += few_rows)
      multiply_few(x + row * ldx, ldx,
                   {row, column, columns, std::min(few_rows, m - row), own_memory,
                    own_memory + floats, block});
  });
}

// Dequantizes `steps` of the depth of a panel: rows of it as they are stored, or transposed.
void weight_loops::take_panel(const own& mine, std::int64_t k, int steps, std::int64_t column,
                              int width) const {
  const weight_matrix& w = p_.w;
  const int columns = static_cast<int>(std::min<std::int64_t>(width, columns_ - column));
  const std::int64_t ld = w.row_bytes();
  const auto byte_of = [&](std::int64_t row, std::int64_t element) {
    return w.data + row * ld + (w.int4 ? element / 2 : element);
  };
  const bool rows = w.transposed == p_.backward;
  if (!rows) {
    for (int j = 0; j < columns; ++j)
      kernels_.widen({byte_of(column + j, k), w.int4, mine.stored + j * depth_block, steps});
    gemm_.floats.transpose({mine.stored, depth_block, columns, steps,
                            reinterpret_cast<std::uint32_t*>(mine.panel), width, width});
  }
  kernels_.dequantize({rows ? byte_of(k, column) : nullptr, ld, w.int4, mine.panel, steps, width,
                       columns, w.scales, !p_.backward, k, column});
}

void weight_loops::multiply_panel(const own& mine, const float* x, std::int64_t first_row, int rows,
                                  std::int64_t column) const {
  const std::int64_t left = columns_ - column;
  const int width = core::round_up(static_cast<int>(std::min<std::int64_t>(left, panel_width)), 16);
  for (std::int64_t k = 0; k < depth_; k += depth_block) {
    const int steps = static_cast<int>(std::min(depth_block, depth_ - k));
    take_panel(mine, k, steps, column, width);
    micro_args m{};
    m.a = reinterpret_cast<const std::uint32_t*>(x + k * rows);
    m.a_row = depth_block, m.a_step = 1;
    m.b = reinterpret_cast<const std::uint32_t*>(mine.panel);
    m.b_step = width, m.words = steps, m.width = width;
    m.in_cache = true, m.first = k == 0;
    m.sums = mine.sums, m.ld_sums = panel_width;
    m.output.rows = rows;
    gemm_.multiply_floats(m);
  }
  if (depth_ == 0) std::memset(mine.sums, 0, sizeof(float) * row_block * panel_width);
  finish(mine.sums, panel_width, first_row, rows, column,
         std::min<std::int64_t>(panel_width, left));
}

void weight_loops::panels() const {
  constexpr std::int64_t block = depth_block * panel_width;
  constexpr std::int64_t own_floats = 2 * block + row_block * panel_width;
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
      float* own_memory = memory + thread * own_floats;
      multiply_panel({own_memory, own_memory + block, own_memory + 2 * block}, x, row, rows,
                     panel * panel_width);
    });
  }
}

}  // namespace

void multiply(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on) {
  if (p.m == 0 || p.columns() == 0) return;
  const core::scratch_scope scope(on.scratch);
  if (kernels.plain())
    on.threads(p.m, [&](std::int64_t row, int) { multiply_row(p, row); });
  else if (p.m <= 2 * few_rows && !p.backward)
    weight_loops(p, kernels, on).few();
  else
    weight_loops(p, kernels, on).panels();
}

}  // namespace velo::ops
