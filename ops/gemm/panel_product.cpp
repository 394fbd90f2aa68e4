// Products of rows of A by panels of B, in vector or tile registers.
#include "ops/gemm/panel_product.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

// Columns [column, column + columns) of one panel; its rows are `step` words apart.
struct panel_part {
  const std::uint32_t* b;
  int column, columns;
  std::int64_t step;
};

void multiply_on_tile_registers(const product_form& form, const panel_product& x,
                                const panel_part& part) {
  tile_panel panel{};
  panel.a = static_cast<const char*>(x.a);
  panel.a_row = x.a_row * 4;
  panel.a_step = 64;
  panel.a_strip = tile_side * panel.a_row;
  panel.b = reinterpret_cast<const char*>(part.b);
  panel.width = static_cast<int>(part.step);
  panel.rows = x.rows;
  panel.steps = x.words / 16;
  panel.sums = x.c + part.column;
  panel.ld_sums = x.ldc;
  panel.square = tile_side * x.ldc;
  panel.first = !x.add;
  form.kernels.tiles->multiply(panel);
}

void multiply_in_registers(const product_form& form, const panel_product& x,
                           const panel_part& part) {
  const micro_kernel multiply = form.kernels.multiply(form.compute);
  micro_args m{};
  m.a = static_cast<const std::uint32_t*>(x.a);
  m.a_row = x.a_row;
  m.a_step = 1;
  m.b = part.b;
  m.b_step = part.step;
  m.words = x.words;
  m.width = part.columns;
  m.in_cache = true;
  m.first = !x.add;
  m.ld_sums = x.ldc;
  m.sums = x.c + part.column;
  m.output.rows = x.rows;
  multiply(m);
}

}  // namespace

product_form::product_form(element_type type_, const gemm_target& target)
    : type(type_),
      compute(target.words_of(type_)),
      kernels(gemm_kernels_for(target.isa)),
      on_tile_registers(compute == element_type::bf16 && kernels.tiles != nullptr),
      panel(panel_columns(on_tile_registers)),
      unit(on_tile_registers ? tile_side : 16) {}

void pack_right(const product_form& form, const source_matrix& from, int depth, int columns,
                int words, const right_side& to) {
  const reorder_kernels& reorders = form.kernels.reorders(form.type, form.compute);
  const std::int64_t element = element_bytes(form.type);
  const int panels = core::ceil_div(to.columns, form.panel);
  const auto reorder_part = [&](int q, int k, int rows) {
    const int first = std::min(q * form.panel, columns), width = to.width(form, q);
    const int valid = std::min(columns - first, width);
    const std::int64_t index = from.transposed ? first * from.ld + k : k * from.ld + first;
    const void* source = static_cast<const char*>(from.data) + index * element;
    std::uint32_t* target =
        to.words + q * to.panel_words + std::int64_t{k} / form.per_word() * width;
    if (from.transposed) {
      reorders.transpose({source, from.ld, valid, rows, target, width, width});
    } else {
      reorders.rows({source, from.ld, rows, valid, target, width, width});
    }
  };
  constexpr int strip =
      16;  // rows packed for all panels in turn, so that memory is read in whole rows
  const int step = from.transposed ? std::max(depth, 1) : strip;
  for (int k = 0; k < depth; k += step) {
    for (int q = 0; q < panels; ++q) reorder_part(q, k, std::min(step, depth - k));
  }
  const int used = (depth + form.per_word() - 1) / form.per_word();
  for (int q = 0; q < panels && used < words; ++q) {
    const int width = to.width(form, q);
    std::memset(to.words + q * to.panel_words + std::int64_t{used} * width, 0,
                static_cast<std::size_t>(words - used) * static_cast<std::size_t>(width) * 4);
  }
}

void multiply(const product_form& form, const panel_product& x) {
  const int end = x.first_column + x.columns;
  for (int column = x.first_column, q = column / form.panel; column < end; ++q) {
    const int width = x.b.width(form, q), offset = column - q * form.panel;
    const std::int64_t step = x.b.step(form, q);
    const std::uint32_t* b = x.b.words + q * x.b.panel_words + x.first_word * step + offset;
    const panel_part part{b, column, std::min(width - offset, end - column), step};
    form.on_tile_registers ? multiply_on_tile_registers(form, x, part)
                           : multiply_in_registers(form, x, part);
    column += part.columns;
  }
}

}  // namespace velo::ops
