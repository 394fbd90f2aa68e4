// The model as mathematics: its gradient is the slope of its loss, and nothing looks ahead.
#include "examples/decoder/model/model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/model/generate.hpp"
#include "examples/decoder/random.hpp"
#include "examples/decoder/ranks/context.hpp"
#include "tests/examples/decoder/model/glm_settings.hpp"
#include "tests/examples/decoder/model/latent_settings.hpp"

using namespace decoder;

namespace {

model_settings small(bool tied, const char* dtype) {
  model_settings m;
  m.hidden = 24, m.layers = 2, m.heads = 4, m.kv_heads = 2, m.inner = 40, m.vocab = 261,
  m.tied = tied;
  m.dtype = dtype;
  return m;
}

// A small model, with symbols of which one is not counted.
struct bench {
  explicit bench(const model_settings& m, std::int64_t sequences = 3, std::int64_t length = 21)
      : of(m),
        sequences(sequences),
        length(length),
        context(make_context({}, memory)),
        stream(context.inline_stream()),
        all(memory, m, true),
        net(memory, context, all, m, length, true),
        batch(memory, m.layers, {sequences, length}) {
    all.initialize(stream, 5);
    const random_stream random(1, purpose::windows);
    for (std::int64_t i = 0; i < sequences * length; ++i) {
      batch.inputs()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i)));
      batch.targets()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i + 1)));
    }
    batch.targets()[1] = -100;
    batch.inputs()[7] = pad;
    net.refresh(stream);
  }

  double loss() {
    net.refresh(stream);
    net.forward(stream, batch, sequences);
    return net.loss(stream, batch, velo::reduction::mean) + balance();
  }

  // The balance losses of the layers' last forward pass, with their coefficient.
  double balance() const {
    double sum = 0;
    const auto experts = static_cast<std::size_t>(of.experts);
    const auto tokens = static_cast<std::size_t>(sequences * length);
    for (std::size_t layer = 0; experts > 0 && layer < batch.layers.size(); ++layer) {
      const expert_activations& e = batch.layers[layer].expert;
      if (!e.logits) continue;  // a layer without experts
      const auto* counts = reinterpret_cast<const std::int64_t*>(e.counts.data());
      for (std::size_t i = 0; i < tokens * experts; ++i) {
        if (batch.inputs()[i / experts] == pad) continue;
        const float* row = e.logits.floats() + i / experts * experts;
        double all = 0;
        for (std::size_t k = 0; k < experts; ++k) all += std::exp(static_cast<double>(row[k]));
        sum += std::exp(static_cast<double>(row[i % experts])) / all *
               static_cast<double>(counts[i % experts]);
      }
    }
    const auto counted = static_cast<double>(
        std::count_if(batch.inputs(), batch.inputs() + tokens, [](int id) { return id != pad; }));
    return of.balance_loss * static_cast<double>(experts) * sum /
           (counted * counted * static_cast<double>(of.experts_per_token));
  }

  // The experts that the tokens chose in the last forward pass.
  std::vector<std::int32_t> choices() const {
    std::vector<std::int32_t> all;
    for (const layer_activations& layer : batch.layers) {
      const auto* first = reinterpret_cast<const std::int32_t*>(layer.expert.choices.data());
      if (first != nullptr)
        all.insert(all.end(), first, first + sequences * length * of.experts_per_token);
    }
    return all;
  }

  model_settings of;
  std::int64_t sequences, length;
  run_memory memory;
  velo::context context;
  velo::stream_ref stream;
  weights all;
  model net;
  activations batch;
};

}  // namespace

TEST_CASE("the gradient of every weight is the slope of the loss along it") {
  // tied; experts, each token goes to half of them; layers and routers of GLM-4
  struct kind {
    bool tied;
    int experts;
    const char* router;
    double balance;
    bool is_glm = false;
    int latent = 0;  // 1: with a rank of queries, 2: without
  };
  for (const auto& [tied, experts, router, balance, is_glm, latent] :
       {kind{false, 0, "softmax", 0.5},
        {true, 0, "softmax", 0.5},
        {false, 4, "softmax", 0.5},
        {false, 4, "sigmoid", 0},
        {false, 4, "sigmoid", 0, true},
        {false, 0, "softmax", 0.5, false, 1},
        {false, 4, "sigmoid", 0, true, 2}}) {
    model_settings m = small(tied, "f32");
    m.experts = experts;
    m.balance_loss = balance;
    m.router = router;
    m.router_normalize = balance > 0 || is_glm;
    if (is_glm) set_glms_layers(m);
    if (latent > 0) set_latent_attention(m, latent == 1);
    bench b(m);
    b.all.fill_biases([](const score_bias&, float* to) { to[1] = 0.3f, to[3] = -0.2f; });
    const weight_layout& layout = b.all.layout();
    float* weight = b.all.weight(0, {layout.total}).data<float>();
    b.all.clear_gradients();
    const double here = b.loss();
    const std::vector<std::int32_t> chosen = b.choices();
    b.net.backward(b.stream, b.batch, 1);
    std::vector<float> gradient(static_cast<std::size_t>(layout.total));
    std::copy_n(b.all.gradient(0, {layout.total}).data<float>(), layout.total, gradient.begin());
    for (const weight_slice& slice : layout.slices) {
      const float* g = &gradient[static_cast<std::size_t>(slice.offset)];
      double square = 0;
      for (std::int64_t k = 0; k < slice.elements(); ++k)
        square += static_cast<double>(g[k]) * static_cast<double>(g[k]);
      REQUIRE(square > 0);
      // A step along the gradient that should change the loss by one percent.
      double reach = 0.01 * here / (2 * square);
      const auto moved = [&](double by) {
        const std::vector<float> before(weight + slice.offset,
                                        weight + slice.offset + slice.elements());
        for (std::int64_t k = 0; k < slice.elements(); ++k) {
          weight[slice.offset + k] += static_cast<float>(by * static_cast<double>(g[k]));
        }
        const double there = b.loss();
        std::copy(before.begin(), before.end(), weight + slice.offset);
        return there;
      };
      // Where a token chooses other experts the loss jumps.
      const auto jumps = [&] {
        for (const double by : {reach, -reach, reach / 2, -reach / 2})
          if (moved(by), b.choices() != chosen) return true;
        return false;
      };
      while (experts > 0 && jumps()) reach /= 2;
      // Richardson: two central differences whose cubic errors cancel.
      const double wide = (moved(reach) - moved(-reach)) / (2 * reach);
      const double narrow = (moved(reach / 2) - moved(-reach / 2)) / reach;
      INFO(slice.name << (tied ? ", tied" : ""));
      CHECK((4 * narrow - wide) / 3 == Approx(square).epsilon(experts > 0 ? 2e-2 : 2e-3));
    }
  }
}

TEST_CASE("gradients of micro-batches add up") {
  bench b(small(false, "f32"));
  const std::int64_t total = b.all.layout().total;
  const float* gradient = b.all.gradient(0, {total}).data<float>();
  b.all.clear_gradients();
  b.loss();
  b.net.backward(b.stream, b.batch, 1);
  const std::vector<float> once(gradient, gradient + total);
  b.all.clear_gradients();
  for (int i = 0; i < 2; ++i) {
    b.loss();
    b.net.backward(b.stream, b.batch, 0.5);
  }
  for (std::int64_t i = 0; i < total; ++i) {
    REQUIRE(gradient[i] == Approx(once[static_cast<std::size_t>(i)]).epsilon(1e-4).margin(1e-7));
  }
}

TEST_CASE("what comes later in a sequence changes nothing before it") {
  for (const char* dtype : {"f32", "bf16"}) {
    bench b(small(false, dtype));
    const auto row = [&](std::int64_t position) {
      const velo::tensor_view logits = b.net.forward(b.stream, b.batch, b.sequences, true);
      const std::size_t bytes = static_cast<std::size_t>(261 * (logits.type().bits / 8));
      const std::byte* first =
          logits.data<std::byte>() + static_cast<std::size_t>(position) * bytes;
      return std::vector<std::byte>(first, first + bytes);
    };
    const auto ninth = row(9), tenth = row(10);
    b.batch.inputs()[10] = (b.batch.inputs()[10] + 1) % 256;
    CHECK(row(9) == ninth);
    CHECK(row(10) != tenth);
  }
}

TEST_CASE("bf16 stays close to f32") {
  bench exact(small(false, "f32")), rounded(small(false, "bf16"));
  CHECK(exact.loss() == Approx(std::log(261)).margin(0.3));
  CHECK(rounded.loss() == Approx(exact.loss()).epsilon(3e-3));
}

TEST_CASE("generation writes as many bytes as asked, beyond one window, and the same again") {
  bench b(small(false, "bf16"), 1, 16);
  settings run;
  run.run.sample_bytes = 40;
  const std::string text =
      generate(b.stream, b.net, b.batch, "a prompt longer than the window", run);
  CHECK(text.size() == 40);
  CHECK(generate(b.stream, b.net, b.batch, "a prompt longer than the window", run) == text);
  CHECK(generate(b.stream, b.net, b.batch, "", run).size() == 40);
}

TEST_CASE("generation ends where a document does, if the model was trained on documents") {
  bench b(small(false, "f32"), 1, 16);
  velo::tensor_view head = b.all.weight(b.all.layout().head, {261, 24});
  std::fill_n(head.data<float>(), 261 * 24, 0.0f);  // all symbols are as likely
  b.net.refresh(b.stream);
  settings run;
  run.run.sample_bytes = 1000, run.run.top_k = 0, run.run.temperature = 1;
  CHECK(generate(b.stream, b.net, b.batch, "", run).size() == 1000);
  run.data.documents = "lines";
  CHECK(generate(b.stream, b.net, b.batch, "", run).size() < 1000);
}

TEST_CASE("micro-batches between their passes at one time keep apart what is theirs") {
  bench b(small(false, "bf16"));
  const std::int64_t total = b.all.layout().total;
  const float* gradient = b.all.gradient(0, {total}).data<float>();
  activations second(b.memory, small(false, "bf16").layers, {b.sequences, b.length});
  for (std::int64_t i = 0; i < b.sequences * b.length; ++i) {
    second.inputs()[i] = b.batch.targets()[i] < 0 ? 0 : b.batch.targets()[i];
    second.targets()[i] = b.batch.inputs()[i];
  }
  const auto forward = [&](activations& of) {
    b.net.forward(b.stream, of, b.sequences);
    b.net.loss(b.stream, of, velo::reduction::mean);
  };
  b.all.clear_gradients();
  for (activations* each : {&b.batch, &second}) {
    forward(*each);
    b.net.backward(b.stream, *each, 0.5);
  }
  const std::vector<float> in_turn(gradient, gradient + total);
  b.all.clear_gradients();
  forward(b.batch), forward(second);
  b.net.backward(b.stream, b.batch, 0.5);
  b.net.backward(b.stream, second, 0.5);
  CHECK(std::equal(in_turn.begin(), in_turn.end(), gradient));
}

TEST_CASE("products of the weights' gradients that are put off give the same bits, later") {
  for (const char* recompute : {"none", "full", "selective"}) {
    bench b(small(false, "bf16"));
    memory_settings kept;
    kept.recompute = recompute;
    b.net.recompute(recompute_of(kept, small(false, "bf16").layers));
    const weight_layout& layout = b.all.layout();
    const float* gradient = b.all.gradient(0, {layout.total}).data<float>();
    b.all.clear_gradients();
    b.loss();
    b.net.backward(b.stream, b.batch, 1);
    const std::vector<float> at_once(gradient, gradient + layout.total);
    b.all.clear_gradients();
    b.loss();
    CHECK_FALSE(b.net.backward_stage(b.stream, b.batch, 1, {}, true));
    // Matrices are left; norms are not, whose gradients come with those of their inputs.
    CHECK(std::all_of(gradient + layout.decayed, gradient + layout.total,
                      [](float g) { return g == 0; }));
    b.net.weight_gradients(b.stream, b.batch);
    CHECK(std::equal(at_once.begin(), at_once.end(), gradient));
    CHECK(b.memory.stats().purpose_live[VELO_PURPOSE_ACTIVATION] == 0);
  }
}

TEST_CASE("stages one behind the other are the model") {
  const model_settings m = small(false, "f32");
  bench b(m);
  const std::int64_t total = b.all.layout().total;
  const float* gradient = b.all.gradient(0, {total}).data<float>();
  b.all.clear_gradients();
  const double expected = b.loss();
  b.net.backward(b.stream, b.batch, 1);
  const std::vector<float> whole(gradient, gradient + total);
  for (const bool deferred : {false, true}) {
    b.all.clear_gradients();
    model front(b.memory, b.context, b.all, m, std::make_shared<model_parallel>(b.length), true,
                {0, 1, true, false});
    model back(b.memory, b.context, b.all, m, std::make_shared<model_parallel>(b.length), true,
               {1, 2, false, true});
    front.refresh(b.stream), back.refresh(b.stream);
    activations first(b.memory, 1, b.batch.largest()), second(b.memory, 1, b.batch.largest());
    for (activations* each : {&first, &second}) {
      std::copy_n(b.batch.inputs(), b.sequences * b.length, each->inputs());
      std::copy_n(b.batch.targets(), b.sequences * b.length, each->targets());
    }
    const buffer middle = front.forward_stage(b.stream, first, b.sequences, {});
    const auto borrowed = [](const buffer& of) { return buffer::borrowed(of.data(), of.bytes()); };
    CHECK_FALSE(back.forward_stage(b.stream, second, b.sequences, borrowed(middle)));
    CHECK(back.loss(b.stream, second, velo::reduction::mean) == expected);
    const buffer crossing = back.backward_stage(b.stream, second, 1, {}, deferred);
    const std::vector<std::byte> before(crossing.data(), crossing.data() + crossing.bytes());
    CHECK_FALSE(front.backward_stage(b.stream, first, 1, borrowed(crossing), deferred));
    CHECK(std::equal(before.begin(), before.end(), crossing.data()));
    if (deferred) back.weight_gradients(b.stream, second), front.weight_gradients(b.stream, first);
    CHECK(std::equal(whole.begin(), whole.end(), gradient));
  }
}

TEST_CASE("buffers live from their first use to their last, and a dry run knows for how long") {
  for (const char* dtype : {"f32", "bf16"}) {
    bench b(small(false, dtype));
    const auto of_a_step = [&] {
      const velo_pool_stats now = b.memory.stats();
      return now.purpose_live[VELO_PURPOSE_ACTIVATION];
    };
    CHECK(of_a_step() == 0);
    b.loss();
    const std::uint64_t kept = of_a_step();
    b.net.backward(b.stream, b.batch, 1);
    CHECK(of_a_step() == 0);
    b.net.forward(b.stream, b.batch, b.sequences, true);
    CHECK(of_a_step() < kept / 3);  // the logits

    const auto lifetimes = b.net.dry_run(b.stream, b.batch);
    for (const lifetime& each : lifetimes) CHECK(each.begin < each.end);
    CHECK(most_alive(lifetimes) >= static_cast<std::int64_t>(kept) * 9 / 10);
  }
}

namespace {

// The loss of pieces in one window, over eight targets, and its gradient.
std::pair<double, std::vector<float>> trained_on(bench& b, activations& batch,
                                                 const std::vector<piece>& pieces) {
  window_writer writer(b.length);
  writer.begin();
  writer.add({pieces.data(), pieces.size()});
  held_rows held(b.length);
  if (batch.documents) {
    batch.documents->ends = writer.ends();
    batch.documents->share = context_parallel(b.length).of_documents(writer.ends());
    writer.copy_positions(held, reinterpret_cast<std::int32_t*>(batch.documents->positions.data()));
  }
  writer.copy_symbols(held, batch.inputs(), batch.targets());
  batch.counted = 8;
  b.all.clear_gradients();
  b.net.forward(b.stream, batch, 1);
  const double loss = b.net.loss(b.stream, batch, velo::reduction::mean);
  b.net.backward(b.stream, batch, 1);
  const std::int64_t total = b.all.layout().total;
  const float* gradient = b.all.gradient(0, {total}).data<float>();
  return {loss, {gradient, gradient + total}};
}

}  // namespace

TEST_CASE("documents in one window have the losses and gradients that each has alone") {
  const model_settings m = small(false, "f32");
  bench b(m, 1, 40);
  activations packed(b.memory, m.layers, {1, b.length}, true);
  const std::vector<piece> pieces = {
      {"a first document", 0, true}, {"x", 0, true}, {"and a third", 3, true}};
  const auto [loss, gradient] = trained_on(b, packed, pieces);
  double sum = 0;
  std::vector<double> total(gradient.size());
  for (const piece& each : pieces) {
    const auto [alone, of_it] = trained_on(b, b.batch, {each});
    sum += alone;
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += static_cast<double>(of_it[i]);
  }
  CHECK(loss == Approx(sum).epsilon(1e-6));
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < total.size(); ++i) {
    difference += std::pow(total[i] - static_cast<double>(gradient[i]), 2);
    norm += total[i] * total[i];
  }
  CHECK(norm > 0);
  CHECK(difference < 1e-12 * norm);
}
