// rms_norm forward (one read, one write of x) and backward (two reads, one write, and
// the gain's gradient).
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr double epsilon = 1e-6;

double reciprocal_root(const tensor& x, std::int64_t row, std::int64_t n) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += x.at(row * n + j) * x.at(row * n + j);
  return 1 / std::sqrt(sum / static_cast<double>(n) + epsilon);
}

void fill_forward(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& y = e.zeros(type, {p.rows, p.columns});
  tensor& rstd = e.zeros(dtype::f32, {p.rows, 1});
  e.velo("rms_norm", {{"x", x.view()},
                      {"gamma", gamma.view()},
                      {"y", y.view()},
                      {"rstd", rstd.view()},
                      {"epsilon", epsilon}});
  e.check([&x, &gamma, &y, p] {
    const std::int64_t last = p.rows - 1;
    const double root = reciprocal_root(x, last, p.columns);
    return sampled_error(
        p.columns, [&](std::int64_t j) { return y.at(last * p.columns + j); },
        [&](std::int64_t j) { return x.at(last * p.columns + j) * root * gamma.at(j); });
  });
}

void fill_backward(experiment& e, dtype type, const plane& p) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& rstd = e.zeros(dtype::f32, {p.rows, 1});
  tensor& dx = e.zeros(type, {p.rows, p.columns});
  tensor& dgamma = e.zeros(dtype::f32, {p.columns});
  for (std::int64_t i = 0; i < p.rows; ++i) rstd.set(i, reciprocal_root(x, i, p.columns));
  e.velo("rms_norm_backward", {{"dy", dy.view()},
                               {"x", x.view()},
                               {"gamma", gamma.view()},
                               {"rstd", rstd.view()},
                               {"dx", dx.view()},
                               {"dgamma", dgamma.view()}});
  e.check([&dy, &x, &gamma, &rstd, &dx, p] {
    const std::int64_t n = p.columns, base = (p.rows - 1) * n;
    const double root = rstd.at(p.rows - 1);
    double dot = 0;
    for (std::int64_t j = 0; j < n; ++j) dot += dy.at(base + j) * gamma.at(j) * x.at(base + j);
    dot *= root * root / static_cast<double>(n);
    return sampled_error(
        n, [&](std::int64_t j) { return dx.at(base + j); },
        [&](std::int64_t j) {
          return root * (dy.at(base + j) * gamma.at(j) - x.at(base + j) * dot);
        });
  });
}

}  // namespace

void list_norm(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      rows.push_back(streaming_row("rms_norm", type, p, 2,
                                   [type, p](experiment& e) { fill_forward(e, type, p); }));
      rows.push_back(streaming_row("rms_norm_backward", type, p, 3,
                                   [type, p](experiment& e) { fill_backward(e, type, p); }));
    }
}

}  // namespace velo::bench
