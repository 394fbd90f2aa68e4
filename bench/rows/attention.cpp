// fusion_attention forward (4 B N D flop a score that is seen) and backward (10), in BNSD; checked
// against a double sum over one query row. The rows of long sequences have the same call without a
// mask as their peer: attention costs what is visible. ring_attention_update streams three tensors.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/rows/families.hpp"
#include "core/simd/philox.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t band = 1024, open = 2147483647;
constexpr std::int64_t longest_of_peers = 4096;

struct heads {
  std::int64_t b, n, s, d;
  // full; causal; band: a row sees itself and 1024 keys before it; dense: causal as a tensor of
  // bytes; dropout: full, a tenth is dropped.
  const char* mask;
  std::string text() const {
    return std::to_string(b) + "x" + std::to_string(n) + "x" + std::to_string(s) + "x" +
           std::to_string(d) + " " + mask;
  }
  bool is(std::string_view name) const { return mask == name; }
  // Scores that are seen, about half of them when causal.
  double scores() const {
    const auto all = static_cast<double>(s * s), keys = static_cast<double>(s);
    if (is("causal")) return all / 2;
    return is("band") ? keys * (band + 1) - band * (band + 1) / 2.0 : all;
  }
  // Multiply-adds of one product of all of them.
  double products() const { return static_cast<double>(b * n * d) * scores(); }
  std::int64_t first(std::int64_t i) const {
    return is("band") ? std::max<std::int64_t>(i - band, 0) : 0;
  }
  std::int64_t last(std::int64_t i) const { return is("full") || is("dropout") ? s : i + 1; }
  const char* sparse_mode() const { return is("causal") ? "left_up_causal" : "full"; }
  std::int64_t pre_tokens() const { return is("band") ? band : open; }
  std::int64_t next_tokens() const { return is("band") ? 0 : open; }
  double keep_prob() const { return is("dropout") ? 0.9 : 1; }
  // Its peer is the same call without mask and dropout.
  bool has_unmasked_peer() const {
    return (s > longest_of_peers && !is("full")) || is("dense") || is("dropout");
  }
  heads without_mask() const { return {b, n, s, d, "full"}; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }
};

// Softmax weights of query row i of the first head, in double.
std::vector<double> weights(const tensor& q, const tensor& k, const heads& h, std::int64_t i) {
  std::vector<double> p(static_cast<std::size_t>(h.last(i)));
  double sum = 0;
  for (std::int64_t j = h.first(i); j < h.last(i); ++j) {
    double dot = 0;
    for (std::int64_t l = 0; l < h.d; ++l) dot += q.at(i * h.d + l) * k.at(j * h.d + l);
    sum += p[static_cast<std::size_t>(j)] = std::exp(dot * h.scale());
  }
  for (double& each : p) each /= sum;
  if (h.keep_prob() == 1) return p;
  const simd::dropout_rule rule = simd::dropout_of(1 - h.keep_prob(), 0, 0);
  for (std::int64_t j = 0; j < h.s; ++j) {
    p[static_cast<std::size_t>(j)] *= static_cast<double>(
        simd::dropout_multiplier(rule, static_cast<std::uint64_t>(i * h.s + j)));
  }
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

// The lower triangle as bytes of a mask, in which 1 hides.
struct triangle {
  std::vector<std::uint8_t> bytes;
  tensor_view view;
  explicit triangle(std::int64_t s)
      : bytes(static_cast<std::size_t>(s * s)), view(bytes.data(), {s, s}) {
    for (std::int64_t i = 0; i < s; ++i)
      std::fill(bytes.begin() + i * s + i + 1, bytes.begin() + (i + 1) * s, std::uint8_t{1});
  }
};

// Binds a call with the options of h beside these values.
bound_call bind_with(experiment& e, const std::string& op, std::vector<named_value> values,
                     const heads& h) {
  values.insert(values.end(), {{"layout", "bnsd"},
                               {"sparse_mode", h.sparse_mode()},
                               {"pre_tokens", h.pre_tokens()},
                               {"next_tokens", h.next_tokens()},
                               {"keep_prob", h.keep_prob()},
                               {"scale", h.scale()}});
  if (h.is("dense")) {
    const auto mask = std::make_shared<triangle>(h.s);
    e.keep(mask);
    values.emplace_back("atten_mask", mask->view);
  }
  return e.bind(op, values);
}

bound_call bind_forward(experiment& e, const attention_tensors& t, const heads& h) {
  return bind_with(e, "fusion_attention",
                   {{"query", t.q.view()},
                    {"key", t.k.view()},
                    {"value", t.v.view()},
                    {"attention_out", t.out.view()},
                    {"softmax_max", t.maximum.view()},
                    {"softmax_sum", t.sum.view()}},
                   h);
}

void fill_forward(experiment& e, dtype type, const heads& h) {
  const attention_tensors t = make_tensors(e, type, h);
  e.call("velo", bind_forward(e, t, h));
  if (h.has_unmasked_peer())
    e.call("unmasked", bind_forward(e, make_tensors(e, type, h), h.without_mask()));
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

struct gradient_tensors {
  tensor &dy, &dq, &dk, &dv;
};

gradient_tensors make_gradients(experiment& e, dtype type, const heads& h) {
  const std::vector<std::int64_t> shape{h.b, h.n, h.s, h.d};
  return {e.random(type, shape), e.zeros(type, shape), e.zeros(type, shape), e.zeros(type, shape)};
}

bound_call bind_backward(experiment& e, const attention_tensors& t, const gradient_tensors& g,
                         const heads& h) {
  return bind_with(e, "fusion_attention_backward",
                   {{"query", t.q.view()},
                    {"key", t.k.view()},
                    {"value", t.v.view()},
                    {"dy", g.dy.view()},
                    {"attention_out", t.out.view()},
                    {"softmax_max", t.maximum.view()},
                    {"softmax_sum", t.sum.view()},
                    {"dquery", g.dq.view()},
                    {"dkey", g.dk.view()},
                    {"dvalue", g.dv.view()}},
                   h);
}

void fill_backward(experiment& e, dtype type, const heads& h) {
  const attention_tensors t = make_tensors(e, type, h);
  const gradient_tensors g = make_gradients(e, type, h);
  bind_forward(e, t, h)();
  e.call("velo", bind_backward(e, t, g, h));
  if (h.has_unmasked_peer()) {
    const attention_tensors all = make_tensors(e, type, h);
    bind_forward(e, all, h.without_mask())();
    e.call("unmasked", bind_backward(e, all, make_gradients(e, type, h), h.without_mask()));
  }
  e.check(
      [t, g, h] {
        constexpr std::int64_t columns = 8;
        const std::int64_t i = h.s / 2;
        const std::vector<double> p = weights(t.q, t.k, h, i);
        return sampled_error(
            columns, [&](std::int64_t l) { return g.dq.at(i * h.d + l); },
            [&](std::int64_t l) { return exact_gradient(p, t, g.dy, h, i, l); });
      },
      type == dtype::f32 ? 1e-3 : 5e-2);
}

// flash_attention beside fusion_attention, over the same engine.
void fill_flash(experiment& e, dtype type, const heads& h) {
  const attention_tensors t = make_tensors(e, type, h);
  e.velo("flash_attention", {{"query", t.q.view()},
                             {"key", t.k.view()},
                             {"value", t.v.view()},
                             {"attention_out", t.out.view()},
                             {"softmax_log_max_sum", t.sum.view()},
                             {"head_num", h.n},
                             {"scale_value", h.scale()}});
  e.call("fusion_attention", bind_forward(e, make_tensors(e, type, h), h));
  e.check([t, h] {
    const std::int64_t i = h.s / 2;
    const std::vector<double> p = weights(t.q, t.k, h, i);
    return sampled_error(
        h.d, [&](std::int64_t l) { return t.out.at(i * h.d + l); },
        [&](std::int64_t l) { return exact_output(p, t.v, h, l); });
  });
}

constexpr std::int64_t head_size = 128;

// Layout sbh with a batch of 1: a row of the plane is a token.
void fill_ring(experiment& e, dtype type, const plane& p) {
  const std::vector<std::int64_t> shape{p.rows, 1, p.columns},
      lines{1, p.columns / head_size, p.rows};
  tensor& prev = e.random(type, shape);
  tensor& cur = e.random(type, shape);
  tensor& out = e.zeros(type, shape);
  tensor* statistics[4];  // maxima and sums of both parts
  for (tensor*& each : statistics) each = &e.random(dtype::f32, lines);
  for (int part = 0; part < 2; ++part) {
    tensor& sums = *statistics[2 * part + 1];
    for (std::int64_t i = 0; i < sums.count(); ++i) sums.set(i, 2 + sums.at(i));
  }
  tensor& max = e.zeros(dtype::f32, lines);
  tensor& sum = e.zeros(dtype::f32, lines);
  e.velo("ring_attention_update", {{"prev_out", prev.view()},
                                   {"prev_max", statistics[0]->view()},
                                   {"prev_sum", statistics[1]->view()},
                                   {"cur_out", cur.view()},
                                   {"cur_max", statistics[2]->view()},
                                   {"cur_sum", statistics[3]->view()},
                                   {"out", out.view()},
                                   {"max", max.view()},
                                   {"sum", sum.view()}});
  e.check([&prev, &cur, &out, p, before = statistics[0], before_sum = statistics[1],
           now = statistics[2], now_sum = statistics[3]] {
    return sampled_error(
        out.count(), [&](std::int64_t i) { return out.at(i); },
        [&](std::int64_t i) {
          const std::int64_t line = i % p.columns / head_size * p.rows + i / p.columns;
          const double a = before_sum->at(line) * std::exp(before->at(line));
          const double b = now_sum->at(line) * std::exp(now->at(line));
          return (prev.at(i) * a + cur.at(i) * b) / (a + b);
        });
  });
}

}  // namespace

void list_attention(const machine& m, std::vector<row>& rows) {
  for (const plane& p : {dram_plane, cache_plane})
    for (dtype type : operator_types)
      rows.push_back(streaming_row("ring_attention_update", type, p, 3,
                                   [type, p](experiment& e) { fill_ring(e, type, p); }));
  constexpr heads shapes[] = {{1, 16, 1024, 128, "full"},  {1, 16, 1024, 128, "causal"},
                              {1, 16, 1024, 64, "causal"}, {1, 4, 4096, 128, "full"},
                              {1, 4, 4096, 128, "causal"}, {1, 8, 4096, 64, "causal"},
                              {1, 2, 8192, 128, "causal"}, {1, 2, 16384, 64, "band"},
                              {1, 4, 4096, 128, "dense"},  {1, 4, 4096, 128, "dropout"}};
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
                 type == dtype::f16 || h.has_unmasked_peer() ? "" : op,
                 {}};
        made.fill = [type, h, backward](experiment& e) {
          backward ? fill_backward(e, type, h) : fill_forward(e, type, h);
        };
        rows.push_back(std::move(made));
      }
  constexpr heads flash{1, 16, 1024, 128, "full"};
  for (dtype type : operator_types)
    rows.push_back({"flash_attention", type, flash.text(), "cache", "GF/s", flash.products() * 4,
                    product_limit(m, type), "flash_attention", "",
                    [type, flash](experiment& e) { fill_flash(e, type, flash); }});
}

}  // namespace velo::bench
