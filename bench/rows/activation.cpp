// swiglu forward (two reads, one write) and backward (three reads, two writes); the shape is that
// of the output.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

double sigmoid(double t) {
  return 1 / (1 + std::exp(-t));
}

void fill_forward(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, 2 * p.columns}, 4.0);
  tensor& y = e.zeros(type, {p.rows, p.columns});
  e.velo("swiglu", {{"x", x.view()}, {"y", y.view()}});
  e.check([&x, &y, n = p.columns] {
    return sampled_error(
        y.count(), [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          const std::int64_t at = i / n * 2 * n + i % n;
          return x.at(at) * sigmoid(x.at(at)) * x.at(at + n);
        });
  });
}

void fill_backward(experiment& e, dtype type, const plane& p) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& x = e.random(type, {p.rows, 2 * p.columns}, 4.0);
  tensor& dx = e.zeros(type, {p.rows, 2 * p.columns});
  e.velo("swiglu_backward", {{"dy", dy.view()}, {"x", x.view()}, {"dx", dx.view()}});
  e.check([&dy, &x, &dx, n = p.columns] {
    return sampled_error(
        dy.count(), [&](std::int64_t i) { return dx.at(i / n * 2 * n + i % n); },
        [&](std::int64_t i) {
          const std::int64_t at = i / n * 2 * n + i % n;
          const double s = sigmoid(x.at(at));
          return dy.at(i) * x.at(at + n) * s * (1 + x.at(at) * (1 - s));
        });
  });
}

}  // namespace

void list_activation(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      rows.push_back(streaming_row("swiglu", type, p, 3,
                                   [type, p](experiment& e) { fill_forward(e, type, p); }));
      rows.push_back(streaming_row("swiglu_backward", type, p, 5,
                                   [type, p](experiment& e) { fill_backward(e, type, p); }));
    }
}

}  // namespace velo::bench
