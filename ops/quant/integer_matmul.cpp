// The loops of products of int8 by int8.
#include "ops/quant/integer_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/activation/pointwise.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/kernels_at.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t row_block = 256;
constexpr std::int64_t sums_of_block = row_block * integer_columns;

void apply(int function, const pointwise_kernels& activations, float* values, std::int64_t count) {
  if (function >= 0)
    activations.forward[function](pointwise_slice<float>{values, values, count, false});
}

std::int8_t rounded(float x) {
  if (std::isnan(x)) return 0;
  return static_cast<std::int8_t>(std::nearbyint(std::clamp(x, -128.0f, 127.0f)));
}

std::int64_t weight_ld(const integer_matmul& p) {
  return p.ld != 0 ? p.ld : p.transposed ? p.k : p.n;
}
std::int8_t weight_at(const integer_matmul& p, std::int64_t k, std::int64_t n) {
  if (p.packed != nullptr) return p.packed->at(k, n);
  return p.w[(p.transposed ? n : k) * weight_ld(p) + (p.transposed ? k : n)];
}

// A row in plain loops. Sums and what scales them are exact, or rounded as the kernels round.
void multiply_row(const integer_matmul& p, std::int64_t row) {
  const pointwise_kernels& activations =
      kernels_at<pointwise_kernels>(pointwise_kernel_list, core::isa::scalar);
  for (std::int64_t j = 0; j < p.n; ++j) {
    std::uint32_t sum = p.bias == nullptr ? 0 : static_cast<std::uint32_t>(p.bias[j]);
    for (std::int64_t i = 0; i < p.k; ++i)
      sum += static_cast<std::uint32_t>(p.x[row * p.k + i] * weight_at(p, i, j));
    float value = static_cast<float>(static_cast<std::int32_t>(sum)) * p.scale[j];
    if (p.row_scale != nullptr) value *= p.row_scale[row];
    apply(p.function, activations, &value, 1);
    const std::int64_t at = row * p.n + j;
    if (p.to_int8) {
      static_cast<std::int8_t*>(p.y)[at] = rounded(value);
      continue;
    }
    with_element_type(dtype_of(p.y_type), [&](auto element) {
      simd::assign(static_cast<decltype(element)*>(p.y)[at], static_cast<double>(value));
    });
  }
}

class integer_loops {
 public:
  integer_loops(const integer_matmul& p, const integer_product_kernels& kernels,
                core::execution& on)
      : p_(p),
        kernels_(kernels),
        activations_(kernels_at<pointwise_kernels>(pointwise_kernel_list, kernels.isa)),
        on_(on),
        padded_(core::round_up(p.k, std::int64_t{kernels.depth_unit})),
        // a line more, so that rows do not fall into the same sets of the cache
        ld_(core::round_up(padded_ * kernels.element_bytes, std::int64_t{64}) + 64) {}

  void run() const;

 private:
  // Memory of one thread.
  struct own {
    std::uint32_t* panel;
    std::int32_t* sums;
    float* values;
  };

  // Words of the panel that a thread packs.
  std::int64_t panel_words() const {
    return p_.packed != nullptr ? 0 : padded_ * kernels_.element_bytes / 4 * integer_columns;
  }
  const std::uint32_t* panel_at(std::int64_t column, int columns, std::uint32_t* mine,
                                std::int32_t* start) const;
  void multiply_panel(const own& mine, const char* left, std::int64_t row, int rows,
                      std::int64_t column) const;

  const integer_matmul& p_;
  const integer_product_kernels& kernels_;
  const pointwise_kernels& activations_;
  core::execution& on_;
  const std::int64_t padded_, ld_;
};

// The panel from `column` on, packed to `mine` where the weight is plain.
const std::uint32_t* integer_loops::panel_at(std::int64_t column, int columns, std::uint32_t* mine,
                                             std::int32_t* start) const {
  if (p_.packed != nullptr) {
    const std::int64_t q = column / integer_columns;
    std::copy_n(p_.packed->start(q), integer_columns, start);
    return p_.packed->panel(q);
  }
  const std::int64_t ld = weight_ld(p_);
  kernels_.take_panel({p_.w + (p_.transposed ? column * ld : column), ld, p_.transposed, p_.k,
                       padded_, columns, mine, start});
  return mine;
}

void integer_loops::multiply_panel(const own& mine, const char* left, std::int64_t row, int rows,
                                   std::int64_t column) const {
  const int columns = static_cast<int>(std::min<std::int64_t>(integer_columns, p_.n - column));
  alignas(64) std::int32_t start[integer_columns], bias[integer_columns] = {};
  alignas(64) float scale[integer_columns] = {};
  std::copy_n(p_.scale + column, columns, scale);
  if (p_.bias != nullptr) std::copy_n(p_.bias + column, columns, bias);
  const std::uint32_t* panel = panel_at(column, columns, mine.panel, start);
  kernels_.multiply({left, ld_, rows, panel, padded_, start, mine.sums});
  kernels_.scale({mine.sums, bias, scale, p_.row_scale == nullptr ? nullptr : p_.row_scale + row,
                  mine.values, rows});
  apply(p_.function, activations_, mine.values, std::int64_t{rows} * integer_columns);
  const std::int64_t first = row * p_.n + column;
  if (p_.to_int8)
    return kernels_.round(
        {mine.values, static_cast<std::int8_t*>(p_.y) + first, p_.n, rows, columns});
  with_element_type(dtype_of(p_.y_type), [&](auto element) {
    using T = decltype(element);
    kernels_.finish(finished_rows<T>{mine.values, integer_columns, nullptr,
                                     static_cast<T*>(p_.y) + first, p_.n, rows, columns});
  });
}

void integer_loops::run() const {
  const std::int64_t panels = core::ceil_div(p_.n, std::int64_t{integer_columns});
  const std::int64_t most_rows =
      core::round_up(std::min(p_.m, row_block), std::int64_t{integer_rows});
  auto* left = on_.scratch.take<char>(static_cast<std::size_t>(most_rows * ld_));
  const std::int64_t own_words =
      core::round_up(panel_words() + 2 * sums_of_block, std::int64_t{16});
  auto* memory =
      on_.scratch.take<std::uint32_t>(static_cast<std::size_t>(on_.threads.threads() * own_words));
  for (std::int64_t row = 0; row < p_.m; row += row_block) {
    const int rows = static_cast<int>(std::min(row_block, p_.m - row));
    const int strips = core::ceil_div(rows, integer_rows);
    on_.threads.slices(rows * p_.k >> 16, strips, [&](std::int64_t strip, int) {
      const std::int64_t first = strip * integer_rows;
      const int count = static_cast<int>(std::min<std::int64_t>(integer_rows, rows - first));
      kernels_.take_left({p_.x + (row + first) * p_.k, p_.k, count, left + first * ld_, ld_});
    });
    on_.threads.slices(
        (rows + 16) * p_.n * p_.k >> 18, panels, [&](std::int64_t panel, int thread) {
          std::uint32_t* mine = memory + thread * own_words;
          auto* sums = reinterpret_cast<std::int32_t*>(mine + panel_words());
          if (kernels_.load_tiles != nullptr) kernels_.load_tiles();
          multiply_panel({mine, sums, reinterpret_cast<float*>(sums + sums_of_block)}, left, row,
                         rows, panel * integer_columns);
          if (kernels_.release_tiles != nullptr) kernels_.release_tiles();
        });
  }
}

}  // namespace

void multiply(const integer_matmul& p, const integer_product_kernels& kernels,
              core::execution& on) {
  if (p.m == 0 || p.n == 0) return;
  const core::scratch_scope scope(on.scratch);
  if (kernels.plain())
    on.threads(p.m, [&](std::int64_t row, int) { multiply_row(p, row); });
  else
    integer_loops(p, kernels, on).run();
}

}  // namespace velo::ops
