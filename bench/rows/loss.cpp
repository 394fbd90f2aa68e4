// cross_entropy forward and its gradient together, as a training step runs them: logits are read
// twice and written once. The gradient goes to a tensor of its own, so that every call sees the
// same logits.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

void fill(experiment& e, dtype type, const plane& p) {
  tensor& logits = e.random(type, {p.rows, p.columns}, 4.0);
  tensor& targets = e.indices({p.rows}, p.columns);
  tensor& loss = e.zeros(dtype::f32, {});
  tensor& lse = e.zeros(dtype::f32, {p.rows});
  tensor& dloss = e.zeros(dtype::f32, {});
  tensor& dlogits = e.zeros(type, {p.rows, p.columns});
  // Gradients of float16 are scaled, as in training: they would be denormal.
  const double scale = type == dtype::f16 ? 65536.0 : 1.0;
  dloss.set(0, scale);
  const bound_call forward = e.bind("cross_entropy", {{"logits", logits.view()},
                                                      {"targets", targets.view()},
                                                      {"loss", loss.view()},
                                                      {"lse", lse.view()}});
  const bound_call backward = e.bind("cross_entropy_backward", {{"dloss", dloss.view()},
                                                                {"logits", logits.view()},
                                                                {"targets", targets.view()},
                                                                {"lse", lse.view()},
                                                                {"dlogits", dlogits.view()}});
  e.call("velo", [forward, backward] {
    forward();
    backward();
  });
  e.check([&logits, &targets, &dlogits, p, scale] {
    const std::int64_t n = p.columns, base = (p.rows - 1) * n;
    const auto target = static_cast<std::int64_t>(targets.at(p.rows - 1));
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += std::exp(logits.at(base + j));
    const double mean = scale / static_cast<double>(p.rows);
    return sampled_error(
        n, [&](std::int64_t j) { return dlogits.at(base + j); },
        [&](std::int64_t j) {
          return mean * (std::exp(logits.at(base + j)) / sum - (j == target));
        });
  });
}

}  // namespace

void list_loss(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types)
      rows.push_back(streaming_row("cross_entropy", type, p, 3,
                                   [type, p](experiment& e) { fill(e, type, p); }));
}

}  // namespace velo::bench
