// ffn: two products with an activation between them, for all rows at once and for groups of rows
// with weights of their own, in the element type of x and with weights of int8.
//
// The shape reads MxWIDTHxINNER, the activation, int8 where the weights are, and the number of
// experts where there are any. A row is held to the limit of its products.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

struct feed_forward {
  std::int64_t m, width, inner;
  bool gated, int8;
  std::int64_t experts = 0;
  std::int64_t all() const { return std::max<std::int64_t>(experts, 1); }
  std::int64_t first() const { return gated ? 2 * inner : inner; }  // columns of the first product
  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(width) + "x" + std::to_string(inner) +
           (gated ? " swiglu" : " gelu") + (int8 ? " int8" : "") +
           (experts > 0 ? " " + std::to_string(experts) : "");
  }
  double flop() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(width) *
           static_cast<double>(first() + inner);
  }
};

// The weights of one of the two products: numbers of x's type, or int8 with a scale by column.
struct weights {
  std::int64_t k, n;
  const tensor* plain = nullptr;
  const void* bytes = nullptr;
  tensor_view integers;
  const tensor* scale = nullptr;

  weights(experiment& e, dtype type, const feed_forward& f, std::int64_t rows, std::int64_t columns)
      : k(rows), n(columns) {
    if (!f.int8) {
      plain = &e.random(type, shape(f));
      return;
    }
    bytes = bytes_of_noise(e, f.all() * k * n);
    integers = tensor_view(bytes, i8, sizes_of(shape(f)));
    scale = &e.random(dtype::f32, f.experts > 0 ? std::vector{f.experts, n} : std::vector{n},
                      1.0 / 128);
  }

  std::vector<std::int64_t> shape(const feed_forward& f) const {
    return f.experts > 0 ? std::vector{f.experts, k, n} : std::vector{k, n};
  }

  void bind(std::vector<named_value>& values, const char* name, const char* scales) const {
    if (plain != nullptr) {
      values.push_back({name, plain->view()});
      return;
    }
    values.push_back({name, integers});
    values.push_back({scales, scale->view()});
  }

  double at(std::int64_t of, std::int64_t row, std::int64_t column) const {
    const std::int64_t i = (of * k + row) * n + column;
    return plain != nullptr ? plain->at(i)
                            : integer_at(bytes, false, i) * scale->at(of * n + column);
  }
};

// The second product's input in the row whose result is checked: the last row, of the last expert.
std::vector<double> between(const tensor& x, const weights& w, const feed_forward& f) {
  std::vector<double> h(static_cast<std::size_t>(f.first()));
  for (std::int64_t l = 0; l < f.width; ++l)
    for (std::int64_t j = 0; j < f.first(); ++j)
      h[static_cast<std::size_t>(j)] += x.at((f.m - 1) * f.width + l) * w.at(f.all() - 1, l, j);
  for (std::int64_t j = 0; j < f.inner; ++j) {
    double& t = h[static_cast<std::size_t>(j)];
    t = f.gated ? t / (1 + std::exp(-t)) * h[static_cast<std::size_t>(f.inner + j)]
                : t / 2 * (1 + std::erf(t / std::sqrt(2.0)));
  }
  return h;
}

void fill(experiment& e, dtype type, const feed_forward& f) {
  tensor& x = e.random(type, {f.m, f.width}, 0.1);
  tensor& y = e.zeros(type, {f.m, f.width});
  const weights one(e, type, f, f.width, f.first()), two(e, type, f, f.inner, f.width);
  const row_groups groups(e, f.m, f.all());
  std::vector<named_value> values{
      {"x", x.view()}, {"y", y.view()}, {"activation", f.gated ? "swiglu" : "gelu"}};
  one.bind(values, "weight1", "antiquant_scale1");
  two.bind(values, "weight2", "antiquant_scale2");
  if (f.experts > 0) values.push_back({"group_list", *groups.list});
  e.velo("ffn", values);
  e.check([&x, &y, one, two, f] {
    const std::vector<double> h = between(x, one, f);
    return sampled_error(
        f.width, [&](std::int64_t j) { return y.at((f.m - 1) * f.width + j); },
        [&](std::int64_t j) {
          double sum = 0;
          for (std::int64_t l = 0; l < f.inner; ++l)
            sum += h[static_cast<std::size_t>(l)] * two.at(f.all() - 1, l, j);
          return sum;
        });
  });
}

}  // namespace

void list_feed_forward(const machine& m, std::vector<row>& rows) {
  for (dtype type : operator_types)
    for (const feed_forward& f : {feed_forward{512, 1024, 4096, false, false},
                                  {512, 1024, 2816, true, false},
                                  {512, 1024, 2816, true, false, 8},
                                  {512, 1024, 4096, false, true}})
      rows.push_back({"ffn", type, f.text(), "dram", "GF/s", f.flop(),
                      f.int8 ? limit::fma_f32 : product_limit(m, type), "ffn", "",
                      [type, f](experiment& e) { fill(e, type, f); }});
}

}  // namespace velo::bench
