// The model as mathematics: its gradient is the slope of its loss, and nothing looks ahead.
#include "model.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "context.hpp"
#include "generate.hpp"
#include "random.hpp"

using namespace pretrain;

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
      : sequences(sequences),
        length(length),
        context(make_context({})),
        stream(context.inline_stream()),
        all(context, m, true),
        net(context, all, m, {sequences, length}, true) {
    all.initialize(stream, 5);
    const random_stream random(1, purpose::windows);
    for (std::int64_t i = 0; i < sequences * length; ++i) {
      net.inputs()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i)));
      net.targets()[i] =
          static_cast<std::int32_t>(random.below(259, static_cast<std::uint64_t>(2 * i + 1)));
    }
    net.targets()[1] = -100;
    net.refresh(stream);
  }

  double loss() {
    net.refresh(stream);
    net.forward(stream, sequences);
    return net.loss(stream, sequences, velo::reduction::mean);
  }

  std::int64_t sequences, length;
  velo::context context;
  velo::stream_ref stream;
  weights all;
  model net;
};

}  // namespace

TEST_CASE("the gradient of every weight is the slope of the loss along it") {
  for (const bool tied : {false, true}) {
    bench b(small(tied, "f32"));
    const weight_layout& layout = b.all.layout();
    float* weight = b.all.weight(0, {layout.total}).data<float>();
    b.all.clear_gradients();
    const double here = b.loss();
    b.net.backward(b.stream, b.sequences, 1);
    std::vector<float> gradient(static_cast<std::size_t>(layout.total));
    std::copy_n(b.all.gradient(0, {layout.total}).data<float>(), layout.total, gradient.begin());
    for (const weight_slice& slice : layout.slices) {
      const float* g = &gradient[static_cast<std::size_t>(slice.offset)];
      double square = 0;
      for (std::int64_t k = 0; k < slice.elements(); ++k)
        square += static_cast<double>(g[k]) * static_cast<double>(g[k]);
      REQUIRE(square > 0);
      // A step along the gradient that should change the loss by one percent.
      const double reach = 0.01 * here / (2 * square);
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
      // Richardson: two central differences whose cubic errors cancel.
      const double wide = (moved(reach) - moved(-reach)) / (2 * reach);
      const double narrow = (moved(reach / 2) - moved(-reach / 2)) / reach;
      INFO(slice.name << (tied ? ", tied" : ""));
      CHECK((4 * narrow - wide) / 3 == Approx(square).epsilon(2e-3));
    }
  }
}

TEST_CASE("gradients of micro-batches add up") {
  bench b(small(false, "f32"));
  const std::int64_t total = b.all.layout().total;
  const float* gradient = b.all.gradient(0, {total}).data<float>();
  b.all.clear_gradients();
  b.loss();
  b.net.backward(b.stream, b.sequences, 1);
  const std::vector<float> once(gradient, gradient + total);
  b.all.clear_gradients();
  for (int i = 0; i < 2; ++i) {
    b.loss();
    b.net.backward(b.stream, b.sequences, 0.5);
  }
  for (std::int64_t i = 0; i < total; ++i) {
    REQUIRE(gradient[i] == Approx(once[static_cast<std::size_t>(i)]).epsilon(1e-4).margin(1e-7));
  }
}

TEST_CASE("what comes later in a sequence changes nothing before it") {
  for (const char* dtype : {"f32", "bf16"}) {
    bench b(small(false, dtype));
    const auto row = [&](std::int64_t position) {
      const velo::tensor_view logits = b.net.forward(b.stream, b.sequences);
      const std::size_t bytes = static_cast<std::size_t>(261 * (logits.type().bits / 8));
      const std::byte* first =
          logits.data<std::byte>() + static_cast<std::size_t>(position) * bytes;
      return std::vector<std::byte>(first, first + bytes);
    };
    const auto ninth = row(9), tenth = row(10);
    b.net.inputs()[10] = (b.net.inputs()[10] + 1) % 256;
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
  run_settings run;
  run.sample_bytes = 40;
  const std::string text = generate(b.stream, b.net, 16, "a prompt longer than the window", run);
  CHECK(text.size() == 40);
  CHECK(generate(b.stream, b.net, 16, "a prompt longer than the window", run) == text);
  CHECK(generate(b.stream, b.net, 16, "", run).size() == 40);
}
