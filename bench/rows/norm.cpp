// rms_norm and layer_norm forward (one read, one write of x) and backward (two reads, one write,
// and the gradients of gain and bias); the fused norms with a residual (two reads, two writes;
// three reads, two writes), the one with a mean with dropout, too.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr double epsilon = 1e-6;

struct moments {
  double mean, root;
};

// Of layer_norm if centered, else of rms_norm.
moments moments_of(const tensor& x, std::int64_t row, std::int64_t n, bool centered) {
  double sum = 0, squares = 0;
  for (std::int64_t j = 0; centered && j < n; ++j) sum += x.at(row * n + j);
  const double mean = sum / static_cast<double>(n);
  for (std::int64_t j = 0; j < n; ++j) squares += std::pow(x.at(row * n + j) - mean, 2);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(n) + epsilon)};
}

void fill_forward(experiment& e, dtype type, const plane& p, bool centered) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& beta = e.random(type, {p.columns});
  tensor& y = e.zeros(type, {p.rows, p.columns});
  tensor& mean = e.zeros(dtype::f32, {p.rows, 1});
  tensor& rstd = e.zeros(dtype::f32, {p.rows, 1});
  if (centered) {
    e.velo("layer_norm", {{"x", x.view()},
                          {"gamma", gamma.view()},
                          {"beta", beta.view()},
                          {"y", y.view()},
                          {"mean", mean.view()},
                          {"rstd", rstd.view()},
                          {"epsilon", epsilon}});
  } else {
    e.velo("rms_norm", {{"x", x.view()},
                        {"gamma", gamma.view()},
                        {"y", y.view()},
                        {"rstd", rstd.view()},
                        {"epsilon", epsilon}});
  }
  e.check([&x, &gamma, &beta, &y, p, centered] {
    const std::int64_t last = p.rows - 1;
    const moments m = moments_of(x, last, p.columns, centered);
    return sampled_error(
        p.columns, [&](std::int64_t j) { return y.at(last * p.columns + j); },
        [&](std::int64_t j) {
          return (x.at(last * p.columns + j) - m.mean) * m.root * gamma.at(j) +
                 (centered ? beta.at(j) : 0);
        });
  });
}

void fill_backward(experiment& e, dtype type, const plane& p, bool centered) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& mean = e.zeros(dtype::f32, {p.rows, 1});
  tensor& rstd = e.zeros(dtype::f32, {p.rows, 1});
  tensor& dx = e.zeros(type, {p.rows, p.columns});
  tensor& dgamma = e.zeros(dtype::f32, {p.columns});
  tensor& dbeta = e.zeros(dtype::f32, {p.columns});
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const moments m = moments_of(x, i, p.columns, centered);
    mean.set(i, m.mean), rstd.set(i, m.root);
  }
  if (centered) {
    e.velo("layer_norm_backward", {{"dy", dy.view()},
                                   {"x", x.view()},
                                   {"gamma", gamma.view()},
                                   {"mean", mean.view()},
                                   {"rstd", rstd.view()},
                                   {"dx", dx.view()},
                                   {"dgamma", dgamma.view()},
                                   {"dbeta", dbeta.view()}});
  } else {
    e.velo("rms_norm_backward", {{"dy", dy.view()},
                                 {"x", x.view()},
                                 {"gamma", gamma.view()},
                                 {"rstd", rstd.view()},
                                 {"dx", dx.view()},
                                 {"dgamma", dgamma.view()}});
  }
  e.check([&dy, &x, &gamma, &mean, &rstd, &dx, p, centered] {
    const std::int64_t n = p.columns, base = (p.rows - 1) * n;
    const double root = rstd.at(p.rows - 1), middle = mean.at(p.rows - 1);
    const auto g = [&](std::int64_t j) { return dy.at(base + j) * gamma.at(j); };
    const auto h = [&](std::int64_t j) { return (x.at(base + j) - middle) * root; };
    double sum = 0, dot = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += centered ? g(j) : 0, dot += g(j) * h(j);
    sum /= static_cast<double>(n), dot /= static_cast<double>(n);
    return sampled_error(
        n, [&](std::int64_t j) { return dx.at(base + j); },
        [&](std::int64_t j) { return root * (g(j) - sum - h(j) * dot); });
  });
}

std::string fused_name(bool centered) {
  return centered ? "dropout_add_layer_norm" : "dropout_add_rms_norm";
}
double drop_share(bool centered) {
  return centered ? 0.1 : 0;
}

void fill_fused(experiment& e, dtype type, const plane& p, bool centered) {
  tensor& x = e.random(type, {p.rows, p.columns});
  tensor& residual = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& y = e.zeros(type, {p.rows, p.columns});
  tensor& z = e.zeros(type, {p.rows, p.columns});
  e.velo(fused_name(centered), {{"x", x.view()},
                                {"residual", residual.view()},
                                {"gamma", gamma.view()},
                                {"y", y.view()},
                                {"pre_norm", z.view()},
                                {"p", drop_share(centered)},
                                {"epsilon", epsilon}});
  e.check([&gamma, &y, &z, p, centered] {
    const std::int64_t last = p.rows - 1, base = last * p.columns;
    const moments m = moments_of(z, last, p.columns, centered);
    return sampled_error(
        p.columns, [&](std::int64_t j) { return y.at(base + j); },
        [&](std::int64_t j) { return (z.at(base + j) - m.mean) * m.root * gamma.at(j); });
  });
}

void fill_fused_backward(experiment& e, dtype type, const plane& p, bool centered) {
  tensor& dy = e.random(type, {p.rows, p.columns});
  tensor& dz = e.random(type, {p.rows, p.columns});
  tensor& z = e.random(type, {p.rows, p.columns});
  tensor& gamma = e.random(type, {p.columns});
  tensor& mean = e.zeros(dtype::f32, {p.rows, 1});
  tensor& rstd = e.zeros(dtype::f32, {p.rows, 1});
  tensor& dx = e.zeros(type, {p.rows, p.columns});
  tensor& dresidual = e.zeros(type, {p.rows, p.columns});
  tensor& dgamma = e.zeros(dtype::f32, {p.columns});
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const moments m = moments_of(z, i, p.columns, centered);
    mean.set(i, m.mean), rstd.set(i, m.root);
  }
  std::vector<named_value> fields = {{"dy", dy.view()},
                                     {"dpre_norm", dz.view()},
                                     {"pre_norm", z.view()},
                                     {"gamma", gamma.view()},
                                     {"rstd", rstd.view()},
                                     {"dx", dx.view()},
                                     {"dresidual", dresidual.view()},
                                     {"dgamma", dgamma.view()},
                                     {"p", drop_share(centered)}};
  if (centered) fields.emplace_back("mean", mean.view());
  e.velo(fused_name(centered) + "_backward", fields);
  e.check([&dy, &dz, &z, &gamma, &mean, &rstd, &dresidual, p, centered] {
    const std::int64_t n = p.columns, base = (p.rows - 1) * n;
    const double root = rstd.at(p.rows - 1), middle = mean.at(p.rows - 1);
    const auto g = [&](std::int64_t j) { return dy.at(base + j) * gamma.at(j); };
    const auto h = [&](std::int64_t j) { return (z.at(base + j) - middle) * root; };
    double sum = 0, dot = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += centered ? g(j) : 0, dot += g(j) * h(j);
    sum /= static_cast<double>(n), dot /= static_cast<double>(n);
    return sampled_error(
        n, [&](std::int64_t j) { return dresidual.at(base + j); },
        [&](std::int64_t j) { return dz.at(base + j) + root * (g(j) - sum - h(j) * dot); });
  });
}

}  // namespace

void list_norm(std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types) {
      for (const bool centered : {false, true}) {
        const std::string name = centered ? "layer_norm" : "rms_norm";
        rows.push_back(streaming_row(name, type, p, 2, [type, p, centered](experiment& e) {
          fill_forward(e, type, p, centered);
        }));
        rows.push_back(streaming_row(
            name + "_backward", type, p, 3,
            [type, p, centered](experiment& e) { fill_backward(e, type, p, centered); }));
        rows.push_back(streaming_row(
            fused_name(centered), type, p, 4,
            [type, p, centered](experiment& e) { fill_fused(e, type, p, centered); }));
        rows.push_back(streaming_row(
            fused_name(centered) + "_backward", type, p, 5,
            [type, p, centered](experiment& e) { fill_fused_backward(e, type, p, centered); }));
      }
    }
}

}  // namespace velo::bench
