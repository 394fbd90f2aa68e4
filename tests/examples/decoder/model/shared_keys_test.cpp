// Layers that share keys and values: loss and gradient are those of the definition in double, and
// have the same bits whatever is recomputed, swapped or planned.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "examples/decoder/model/generate.hpp"
#include "examples/decoder/random.hpp"
#include "examples/decoder/ranks/context.hpp"
#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

namespace {

using matrix = std::vector<std::vector<double>>;  // a row a token

model_settings small(std::int64_t kv_share, std::int64_t layers) {
  model_settings m;
  m.hidden = 24, m.layers = layers, m.heads = 4, m.kv_heads = 2, m.inner = 28, m.vocab = 261;
  m.kv_share = kv_share;
  m.dtype = "f32";
  return m;
}

// The mean loss of a sequence, with weights by their names.
class double_model {
 public:
  explicit double_model(const model_settings& m) : m_(m) {}

  std::map<std::string, std::vector<double>> weights;

  double loss(const std::int32_t* inputs, const std::int32_t* targets, std::size_t tokens) const {
    const auto hidden = static_cast<std::size_t>(m_.hidden);
    matrix x(tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
      const double* row = weights.at("model.embed_tokens.weight").data() +
                          static_cast<std::size_t>(inputs[t]) * hidden;
      x[t].assign(row, row + hidden);
    }
    matrix keys, values;
    for (std::int64_t number = 1; number <= m_.layers; ++number) {
      const std::string at = "model.layers." + std::to_string(number - 1) + ".";
      const matrix in = normed(x, at + "input_layernorm");
      const matrix queries = product(in, at + "self_attn.q_proj");
      if (m_.kv_share == 0 || number % m_.kv_share != 0) {
        keys = product(in, at + "self_attn.k_proj");
        values = product(in, at + "self_attn.v_proj");
      }
      add(x, product(attention(rotated(queries), rotated(keys), values), at + "self_attn.o_proj"));
      const matrix middle = normed(x, at + "post_attention_layernorm");
      matrix gate = product(middle, at + "mlp.gate_proj");
      const matrix up = product(middle, at + "mlp.up_proj");
      for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t i = 0; i < gate[t].size(); ++i)
          gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
      add(x, product(gate, at + "mlp.down_proj"));
    }
    const matrix logits = product(normed(x, "model.norm"), "lm_head");
    double sum = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      double total = 0;
      for (const double each : logits[t]) total += std::exp(each);
      sum += std::log(total) - logits[t][static_cast<std::size_t>(targets[t])];
    }
    return sum / static_cast<double>(tokens);
  }

 private:
  static void add(matrix& to, const matrix& x) {
    for (std::size_t t = 0; t < to.size(); ++t)
      for (std::size_t i = 0; i < to[t].size(); ++i) to[t][i] += x[t][i];
  }

  matrix normed(const matrix& x, const std::string& name) const {
    const std::vector<double>& gain = weights.at(name + ".weight");
    matrix y = x;
    for (auto& row : y) {
      double square = 0;
      for (const double each : row) square += each * each;
      const double by = 1 / std::sqrt(square / static_cast<double>(row.size()) + m_.norm_epsilon);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= by * gain[i];
    }
    return y;
  }

  matrix product(const matrix& x, const std::string& name) const {
    const std::vector<double>& w = weights.at(name + ".weight");
    const std::size_t in = x[0].size(), out = w.size() / in;
    matrix y(x.size(), std::vector<double>(out));
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t o = 0; o < out; ++o)
        for (std::size_t i = 0; i < in; ++i) y[t][o] += x[t][i] * w[o * in + i];
    return y;
  }

  matrix rotated(const matrix& x) const {
    const auto width = static_cast<std::size_t>(m_.head_dim()), half = width / 2;
    matrix y = x;
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t head = 0; head < x[t].size(); head += width)
        for (std::size_t i = 0; i < half; ++i) {
          const double angle =
              static_cast<double>(t) /
              std::pow(m_.rope_theta, 2 * static_cast<double>(i) / static_cast<double>(width));
          const double one = x[t][head + i], other = x[t][head + half + i];
          y[t][head + i] = one * std::cos(angle) - other * std::sin(angle);
          y[t][head + half + i] = other * std::cos(angle) + one * std::sin(angle);
        }
    return y;
  }

  matrix attention(const matrix& q, const matrix& k, const matrix& v) const {
    const auto width = static_cast<std::size_t>(m_.head_dim());
    matrix y(q.size(), std::vector<double>(q[0].size()));
    for (std::size_t head = 0; head < static_cast<std::size_t>(m_.heads); ++head) {
      const std::size_t at = head * width,
                        from = head / static_cast<std::size_t>(m_.heads / m_.kv_heads) * width;
      for (std::size_t t = 0; t < q.size(); ++t) {
        std::vector<double> weight(t + 1);
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < width; ++i) score += q[t][at + i] * k[s][from + i];
          total += weight[s] = std::exp(score * m_.attention_scale());
        }
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t i = 0; i < width; ++i)
            y[t][at + i] += weight[s] / total * v[s][from + i];
      }
    }
    return y;
  }

  model_settings m_;
};

struct bench {
  explicit bench(const model_settings& m)
      : context(make_context({}, memory)),
        stream(context.inline_stream()),
        all(memory, m, true),
        net(memory, context, all, m, tokens, true),
        batch(memory, m.layers, {1, tokens}) {
    all.initialize(stream, 5);
    const random_stream random(1, purpose::windows);
    for (std::int64_t i = 0; i < tokens; ++i) {
      batch.inputs()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i)));
      batch.targets()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i + 1)));
    }
    net.refresh(stream);
  }

  static constexpr std::int64_t tokens = 13;
  run_memory memory;
  velo::context context;
  velo::stream_ref stream;
  weights all;
  model net;
  activations batch;
};

}  // namespace

TEST_CASE("layers that share keys have the loss and the gradient of the definition in double") {
  const std::pair<std::int64_t, std::int64_t> cases[] = {{0, 2}, {2, 2}, {2, 5}, {3, 6}, {4, 4}};
  for (const auto& [share, layers] : cases) {
    const model_settings m = small(share, layers);
    bench b(m);
    double_model exact(m);
    for (const weight_slice& slice : b.all.layout().slices) {
      const float* w = b.all.weight(slice.offset, {slice.elements()}).data<float>();
      exact.weights[slice.name].assign(w, w + slice.elements());
    }
    b.all.clear_gradients();
    b.net.forward(b.stream, b.batch, 1);
    const auto loss = [&] {
      return exact.loss(b.batch.inputs(), b.batch.targets(), bench::tokens);
    };
    INFO("kv_share " << share << " of " << layers << " layers");
    CHECK(b.net.loss(b.stream, b.batch, velo::reduction::mean) == Approx(loss()).epsilon(1e-6));
    b.net.backward(b.stream, b.batch, 1);
    for (const weight_slice& slice : b.all.layout().slices) {
      INFO(slice.name);
      const float* gradient = b.all.gradient(slice.offset, {slice.elements()}).data<float>();
      std::vector<double>& weight = exact.weights[slice.name];
      const std::vector<double> before = weight;
      const random_stream random(3, purpose::weights, slice.number);
      double slope = 0, square = 0;  // along a random direction
      const auto direction = [&](std::size_t i) { return random.normal(i); };
      for (std::size_t i = 0; i < before.size(); ++i) {
        slope += direction(i) * static_cast<double>(gradient[i]);
        square += std::pow(static_cast<double>(gradient[i]), 2);
      }
      const auto moved = [&](double by) {
        for (std::size_t i = 0; i < before.size(); ++i) weight[i] = before[i] + by * direction(i);
        const double there = loss();
        weight = before;
        return there;
      };
      CHECK(square > 0);
      constexpr double step = 1e-5;
      CHECK((moved(step) - moved(-step)) / (2 * step) ==
            Approx(slope).margin(2e-5 * std::sqrt(square)));
    }
  }
}

TEST_CASE("layers that share keys have the same bits whatever is made again, swapped or planned") {
  const auto same = [](const settings& s, const trained& usual) {
    trained other = train(s);
    CHECK(other.losses == usual.losses);
    CHECK((other.state == usual.state));
    CHECK(other.peak == Approx(other.predicted).epsilon(0.02));
    CHECK(other.recomputed.restores == other.recomputed.releases);
    return other;
  };
  for (const std::int64_t share : {2, 3})
    for (const char* dtype : {"bf16", "f32"}) {
      settings s = small_settings(dtype);
      s.model.kv_share = share;
      const trained usual = train(s);
      CHECK(usual.peak == Approx(usual.predicted).epsilon(0.02));
      settings plain = s;
      plain.run.threads = 1;
      CHECK((train(plain).state == usual.state));
      for (const char* swapped : {"off", "host"})
        for (const char* kind :
             {"none", "full", "block", "uniform", "selective", "activation", "norm", "mlp"})
          for (const std::int64_t layers : {0, 2, 3}) {
            settings one = s;
            one.memory.swap_activations = swapped;
            one.memory.recompute = kind;
            one.memory.recompute_layers = layers;
            const bool counts = kind != std::string("none") && kind != std::string("full") &&
                                kind != std::string("selective");
            if (layers > 0 && !counts) continue;
            INFO("kv_share " << share << ", " << dtype << ", " << kind << " of " << layers
                             << " layers, swap " << swapped);
            const trained other = same(one, usual);
            if (kind == std::string("full") || swapped == std::string("host"))
              CHECK(static_cast<double>(other.activations) <
                    0.8 * static_cast<double>(usual.activations));
          }
      for (const char* part : {"input_norm", "self_attention", "mlp"}) {
        settings one = s;
        one.memory.swap_activations = "host";
        one.memory.swap_modules = part;
        INFO("kv_share " << share << ", " << dtype << ", swaps " << part);
        same(one, usual);
      }
      s.memory.plan = true;
      CHECK((train(s).state == usual.state));
    }
}

TEST_CASE("passes that save nothing have the logits of those that save, where layers share keys") {
  bench b(small(2, 5));
  const auto logits = [&](bool alone) {
    const velo::tensor_view all = b.net.forward(b.stream, b.batch, 1, alone);
    return std::vector<float>(all.data<float>(), all.data<float>() + bench::tokens * 261);
  };
  const std::vector<float> saved = logits(false);
  CHECK(logits(true) == saved);
  bench usual(small(0, 5));
  usual.net.forward(usual.stream, usual.batch, 1, true);
  const auto live = [](const bench& of) {
    return of.memory.stats().purpose_live[VELO_PURPOSE_ACTIVATION];
  };
  CHECK(live(b) == live(usual));
  settings run;
  run.run.sample_bytes = 40;
  const std::string text = generate(b.stream, b.net, b.batch, "a prompt", run);
  CHECK(text.size() == 40);
}
