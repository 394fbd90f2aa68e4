// softmax forward (one read, one write) and backward (two reads, one write), without a mask.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

void fill_forward(experiment& e, dtype type, const plane& p) {
  tensor& x = e.random(type, {p.rows, p.columns}, 4.0);
  tensor& y = e.zeros(type, {p.rows, p.columns});
  e.velo("softmax", {{"x", x.view()}, {"y", y.view()}});
  e.check([&x, &y, n = p.columns] {
    return sampled_error(
        n, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          double sum = 0;
          for (std::int64_t k = 0; k < n; ++k) sum += std::exp(x.at(k));
          return std::exp(x.at(i)) / sum;
        });
  });
}

void fill_backward(experiment& e, dtype type, const plane& p) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& y = e.random(type, {p.rows, p.columns});
  tensor& dx = e.zeros(type, {p.rows, p.columns});
  e.velo("softmax_backward", {{"dy", dy.view()}, {"y", y.view()}, {"dx", dx.view()}});
  e.check([&dy, &y, &dx, n = p.columns] {
    return sampled_error(
        n, [&](std::int64_t i) { return dx.at(i); },
        [&](std::int64_t i) {
          double sum = 0;
          for (std::int64_t k = 0; k < n; ++k) sum += dy.at(k) * y.at(k);
          return y.at(i) * (dy.at(i) - sum);
        });
  });
}

}  // namespace

void list_softmax(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      rows.push_back(streaming_row("softmax", type, p, 2,
                                   [type, p](experiment& e) { fill_forward(e, type, p); }));
      rows.push_back(streaming_row("softmax_backward", type, p, 3,
                                   [type, p](experiment& e) { fill_backward(e, type, p); }));
    }
}

}  // namespace velo::bench
