// Products of the caches' size against double precision: every isa, all types, parts of columns
// and depth, adding or not; from packed panels and from plain rows.
#include "ops/gemm/panel_product.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/ops/isas.hpp"
#include "tests/ops/typed_element.hpp"
#include "tests/random.hpp"

using namespace velo::ops;
using velo::core::isa;
using namespace velo::testing;

namespace {

// [rows][columns] of values as stored elements and as floats, which hold them exactly. Those of
// float32 have the bits of a bfloat16.
struct values {
  std::int64_t columns;
  std::vector<float> exact;
  std::vector<unsigned char> stored;

  values(std::int64_t rows, std::int64_t columns_, element_type type, unsigned seed)
      : columns(columns_), exact(static_cast<std::size_t>(rows * columns_)) {
    const std::size_t bytes = size_of(type);
    stored.resize(exact.size() * bytes);
    cheap_random draw(seed);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const float drawn = static_cast<float>(draw() >> 16) / 32768.0f - 1.0f;
      put_element(&stored[i * bytes], type == element_type::f32 ? element_type::bf16 : type, drawn);
      exact[i] =
          element_at(&stored[i * bytes], type == element_type::f32 ? element_type::bf16 : type);
      put_element(&stored[i * bytes], type, exact[i]);
    }
  }
  double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(exact[static_cast<std::size_t>(i * columns + j)]);
  }
};

struct part {
  int rows, depth, columns;  // of the operands
  int first_column, used_columns, first_depth, used_depth;
};

// A as products read it: rows of floats, or of bf16.
std::vector<std::uint32_t> words_of(const product_form& form, const values& a, int rows) {
  std::vector<std::uint32_t> words(a.exact.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * a.columns); ++i) {
    auto* to = reinterpret_cast<unsigned char*>(words.data());
    put_element(to + i * size_of(form.compute), form.compute, a.exact[i]);
  }
  return words;
}

void check(const product_form& form, const part& p, bool transposed, bool add) {
  INFO("rows " << p.rows << " depth " << p.depth << " columns " << p.columns << " from column "
               << p.first_column << " transposed " << transposed << " add " << add << " type "
               << static_cast<int>(form.type) << " words " << static_cast<int>(form.compute));
  const values a(p.rows, p.depth, form.type, 7);
  const values b(transposed ? p.columns : p.depth, transposed ? p.depth : p.columns, form.type, 9);
  const int packed_words = p.depth / form.per_word();
  std::vector<std::uint32_t> words(
      static_cast<std::size_t>((p.columns / form.panel + 1) * form.panel * packed_words),
      0xffffffffu);
  const right_side side{words.data(), std::int64_t{form.panel} * packed_words, p.columns};
  pack_right(form, {b.stored.data(), b.columns, transposed}, p.depth, p.columns, packed_words,
             side);

  const std::int64_t ldc = p.columns + 3;
  std::vector<float> c(static_cast<std::size_t>(p.rows * ldc), 0.5f);
  const std::vector<std::uint32_t> left = words_of(form, a, p.rows);
  panel_product x{};
  x.a = left.data() + p.first_depth / form.per_word();
  x.a_row = packed_words;
  x.b = side;
  x.first_column = p.first_column, x.columns = p.used_columns;
  x.first_word = p.first_depth / form.per_word(), x.words = p.used_depth / form.per_word();
  x.c = c.data(), x.ldc = ldc, x.rows = p.rows, x.add = add;
  {
    const tile_session session(form.on_tile_registers ? form.kernels.tiles : nullptr);
    multiply(form, x);
  }
  double worst = 0;
  for (int i = 0; i < p.rows; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const bool asked = j >= p.first_column && j < p.first_column + p.used_columns;
      double wanted = asked && !add ? 0 : 0.5;
      for (int k = p.first_depth; asked && k < p.first_depth + p.used_depth; ++k) {
        wanted += a.at(i, k) * (transposed ? b.at(j, k) : b.at(k, j));
      }
      const double got = static_cast<double>(c[static_cast<std::size_t>(i * ldc + j)]);
      worst = std::fmax(worst, std::fabs(got - wanted));
    }
  }
  CHECK(worst <= 1e-6 * p.depth);
  if (transposed || form.per_word() == 2) return;

  std::vector<std::uint32_t> plain(b.exact.size());
  std::memcpy(plain.data(), b.exact.data(), 4 * plain.size());
  std::vector<float> same(c.size(), 0.5f);
  x.b = {plain.data(), form.panel, p.columns, p.columns};
  x.c = same.data();
  multiply(form, x);
  CHECK(same == c);
}

}  // namespace

TEST_CASE("small products agree with double precision and write nothing else") {
  const part parts[] = {{32, 64, 128, 0, 128, 0, 64},
                        {32, 128, 96, 32, 64, 32, 96},
                        {64, 32, 160, 96, 64, 0, 32},
                        {96, 288, 64, 0, 64, 256, 32}};
  for (const isa on : tested_isas()) {
    for (const element_type type : element_types) {
      for (const bool widen : {false, true}) {
        const gemm_target natural(on);
        if (widen && (type != element_type::bf16 || !natural.dot)) continue;
        const product_form form(type, widen ? gemm_target(natural.isa, false) : natural);
        for (const part& p : parts) {
          for (const bool transposed : {false, true}) {
            for (const bool add : {false, true}) check(form, p, transposed, add);
          }
        }
      }
    }
  }
}

TEST_CASE("rows and columns off tiles come in any number of eights and sixteens") {
  for (const isa on : tested_isas()) {
    const product_form form(element_type::f32, on);
    check(form, {1, 5, 16, 0, 16, 0, 5}, false, false);
    check(form, {13, 7, 80, 16, 48, 2, 5}, true, true);
  }
}

TEST_CASE("a right side is zero where the matrix ends") {
  for (const isa on : tested_isas()) {
    for (const element_type type : element_types) {
      const product_form form(type, on);
      const values b(5, 37, type, 3);
      const int depth_words = 32 / form.per_word();
      std::vector<std::uint32_t> words(static_cast<std::size_t>(64 * depth_words), 0xffffffffu);
      const right_side side{words.data(), std::int64_t{form.panel} * depth_words, 64};
      pack_right(form, {b.stored.data(), b.columns, false}, 5, 37, depth_words, side);
      const int used = (5 + form.per_word() - 1) / form.per_word();
      bool right = true;
      for (int j = 0; j < 64; ++j) {
        const int q = j / form.panel, width = side.width(form, q);
        for (int w = 0; w < depth_words; ++w) {
          const std::uint32_t word =
              words[static_cast<std::size_t>(q * side.panel_words + w * width + j % form.panel)];
          right = right && (word == 0) == (w >= used || j >= 37);
        }
      }
      CHECK(right);
    }
  }
}
