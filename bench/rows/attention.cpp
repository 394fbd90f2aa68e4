// fusion_attention forward (4 B N S S D flop, half when causal) and backward (10), in BNSD; checked
// against a double sum over one query row.
#include <cmath>
#include <vector>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

struct heads {
  std::int64_t b, n, s, d;
  bool causal;
  std::string text() const {
    return std::to_string(b) + "x" + std::to_string(n) + "x" + std::to_string(s) + "x" +
           std::to_string(d) + (causal ? " causal" : " full");
  }
  // Multiply-adds of one S x S x D product over all heads, visible half only.
  double products() const { return static_cast<double>(b * n * s * s * d) / (causal ? 2 : 1); }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }
};

// Softmax weights of query row i of the first head, in double.
std::vector<double> weights(const tensor& q, const tensor& k, const heads& h, std::int64_t i) {
  const std::int64_t visible = h.causal ? i + 1 : h.s;
  std::vector<double> p(static_cast<std::size_t>(visible));
  double sum = 0;
  for (std::int64_t j = 0; j < visible; ++j) {
    double dot = 0;
    for (std::int64_t l = 0; l < h.d; ++l) dot += q.at(i * h.d + l) * k.at(j * h.d + l);
    sum += p[static_cast<std::size_t>(j)] = std::exp(dot * h.scale());
  }
  for (double& each : p) each /= sum;
  return p;
}

double exact_output(const std::vector<double>& p, const tensor& v, const heads& h,
                    std::int64_t column) {
  double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j)
    sum += p[j] * v.at(static_cast<std::int64_t>(j) * h.d + column);
  return sum;
}

struct attention_tensors {
  tensor &q, &k, &v, &out, &maximum, &sum;
};

attention_tensors make_tensors(experiment& e, dtype type, const heads& h) {
  const std::vector<std::int64_t> shape{h.b, h.n, h.s, h.d}, lines{h.b, h.n, h.s};
  return {e.random(type, shape), e.random(type, shape),      e.random(type, shape),
          e.zeros(type, shape),  e.zeros(dtype::f32, lines), e.zeros(dtype::f32, lines)};
}

bound_call bind_forward(experiment& e, const attention_tensors& t, const heads& h) {
  return e.bind("fusion_attention", {{"query", t.q.view()},
                                     {"key", t.k.view()},
                                     {"value", t.v.view()},
                                     {"attention_out", t.out.view()},
                                     {"softmax_max", t.maximum.view()},
                                     {"softmax_sum", t.sum.view()},
                                     {"layout", "bnsd"},
                                     {"sparse_mode", h.causal ? "left_up_causal" : "full"},
                                     {"scale", h.scale()}});
}

void fill_forward(experiment& e, dtype type, const heads& h) {
  const attention_tensors t = make_tensors(e, type, h);
  e.call("velo", bind_forward(e, t, h));
  e.check([t, h] {
    const std::int64_t i = h.s / 2;
    const std::vector<double> p = weights(t.q, t.k, h, i);
    return sampled_error(
        h.d, [&](std::int64_t l) { return t.out.at(i * h.d + l); },
        [&](std::int64_t l) { return exact_output(p, t.v, h, l); });
  });
}

// dq of one row: scale sum_j p_j (dy . v_j - dy . out) k_j.
double exact_gradient(const std::vector<double>& p, const attention_tensors& t, const tensor& dy,
                      const heads& h, std::int64_t i, std::int64_t column) {
  double delta = 0, sum = 0;
  for (std::int64_t l = 0; l < h.d; ++l) delta += dy.at(i * h.d + l) * exact_output(p, t.v, h, l);
  for (std::size_t j = 0; j < p.size(); ++j) {
    const std::int64_t base = static_cast<std::int64_t>(j) * h.d;
    double dp = 0;
    for (std::int64_t l = 0; l < h.d; ++l) dp += dy.at(i * h.d + l) * t.v.at(base + l);
    sum += p[j] * (dp - delta) * t.k.at(base + column);
  }
  return sum * h.scale();
}

void fill_backward(experiment& e, dtype type, const heads& h) {
  const attention_tensors t = make_tensors(e, type, h);
  const std::vector<std::int64_t> shape{h.b, h.n, h.s, h.d};
  tensor& dy = e.random(type, shape);
  tensor& dq = e.zeros(type, shape);
  tensor& dk = e.zeros(type, shape);
  tensor& dv = e.zeros(type, shape);
  bind_forward(e, t, h)();
  e.velo("fusion_attention_backward", {{"query", t.q.view()},
                                       {"key", t.k.view()},
                                       {"value", t.v.view()},
                                       {"dy", dy.view()},
                                       {"attention_out", t.out.view()},
                                       {"softmax_max", t.maximum.view()},
                                       {"softmax_sum", t.sum.view()},
                                       {"dquery", dq.view()},
                                       {"dkey", dk.view()},
                                       {"dvalue", dv.view()},
                                       {"layout", "bnsd"},
                                       {"sparse_mode", h.causal ? "left_up_causal" : "full"},
                                       {"scale", h.scale()}});
  e.check(
      [t, &dy, &dq, h] {
        constexpr std::int64_t columns = 8;
        const std::int64_t i = h.s / 2;
        const std::vector<double> p = weights(t.q, t.k, h, i);
        return sampled_error(
            columns, [&](std::int64_t l) { return dq.at(i * h.d + l); },
            [&](std::int64_t l) { return exact_gradient(p, t, dy, h, i, l); });
      },
      type == dtype::f32 ? 1e-3 : 5e-2);
}

}  // namespace

void list_attention(const machine& m, std::vector<row>& rows) {
  constexpr heads shapes[] = {{1, 16, 1024, 128, false}, {1, 16, 1024, 128, true},
                              {1, 16, 1024, 64, true},   {1, 4, 4096, 128, false},
                              {1, 4, 4096, 128, true},   {1, 8, 4096, 64, true}};
  for (dtype type : operator_types)
    for (const heads& h : shapes)
      for (bool backward : {false, true}) {
        const std::string op = backward ? "fusion_attention_backward" : "fusion_attention";
        row made{op,
                 type,
                 h.text(),
                 "cache",
                 "GF/s",
                 h.products() * (backward ? 10 : 4),
                 product_limit(m, type),
                 op,
                 type == dtype::f16 ? "" : op,
                 {}};
        made.fill = [type, h, backward](experiment& e) {
          backward ? fill_backward(e, type, h) : fill_forward(e, type, h);
        };
        rows.push_back(std::move(made));
      }
}

}  // namespace velo::bench
