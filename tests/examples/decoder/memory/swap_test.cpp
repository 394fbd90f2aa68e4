// Swapped activations and optimizer state: the same bits, and less memory.
#include <catch2/catch.hpp>

#include "examples/decoder/ranks/context.hpp"
#include "tests/examples/decoder/trained.hpp"

using namespace decoder;

TEST_CASE(
    "losses and weights have the same bits whatever is swapped, and the predicted peak is kept") {
  const temporary t;
  for (const char* dtype : {"bf16", "f32"}) {
    settings s = small_settings(dtype);
    const trained usual = train(s);
    s.memory.swap_dir = t.path;
    for (const char* activations : {"off", "host", "disk"})
      for (const char* state : {"off", "host", "disk"})
        for (const char* recompute : {"none", "uniform", "selective"}) {
          s.memory.swap_activations = activations;
          s.memory.swap_optimizer = state;
          s.memory.recompute = recompute;
          s.memory.recompute_layers = recompute == std::string("uniform") ? 2 : 0;
          INFO(activations << ", " << state << ", " << recompute << " in " << dtype);
          const trained other = train(s);
          CHECK(other.losses == usual.losses);
          CHECK((other.state == usual.state));
          CHECK(other.peak == Approx(other.predicted).epsilon(0.02));
          CHECK((other.stored > 0) ==
                (activations != std::string("off") || state != std::string("off")));
          if (activations != std::string("off"))
            CHECK(static_cast<double>(other.activations) <
                  0.75 * static_cast<double>(usual.activations));
        }
  }
  CHECK(std::filesystem::is_empty(t.path));
}

TEST_CASE("the parts of a layer that are chosen are swapped, and no others") {
  settings s = small_settings("bf16");
  const trained usual = train(s);
  s.memory.swap_activations = "host";
  const double all = train(s).stored;
  double sum = 0;
  for (const char* part : {"input_norm", "self_attention", "post_attention_norm", "mlp"}) {
    INFO(part);
    s.memory.swap_modules = part;
    const trained one = train(s);
    CHECK(one.losses == usual.losses);
    CHECK((one.state == usual.state));
    CHECK(one.peak == Approx(one.predicted).epsilon(0.02));
    CHECK(one.stored > 0);
    sum += one.stored;
  }
  CHECK(sum == all);
  s.memory.swap_modules = "self_attention,mlp";
  CHECK(train(s).stored < all);
}

TEST_CASE("the predicted peak is kept where scratch and slices outweigh the model") {
  settings s;
  s.model.hidden = 32, s.model.inner = 48, s.model.layers = 3;
  s.model.heads = 2, s.model.kv_heads = 1;
  s.data.sequence = 32, s.data.batch = 2;
  s.run.threads = 2;
  for (const char* dtype : {"bf16", "f32"})
    for (const char* state : {"off", "host"}) {
      s.model.dtype = dtype;
      s.memory.swap_optimizer = state;
      INFO(dtype << ", " << state);
      const trained done = train(s);
      CHECK(done.peak == Approx(done.predicted).epsilon(0.02));
    }
}

TEST_CASE("micro-batches of a run that swaps may be smaller than the largest, and alone") {
  run_memory memory;
  const settings s = small_settings("bf16");
  const velo::context context = make_context(s.run, memory);
  swapper swap(context, memory, "host", "");
  weights all(memory, s.model, true);
  model net(memory, context, all, s.model, s.data.sequence, true);
  activations batch(memory, s.model.layers, {s.data.batch, s.data.sequence});
  batch.swap = &swap;
  const velo::stream_ref stream = context.inline_stream();
  all.initialize(stream, 1);
  net.refresh(stream);
  net.forward(stream, batch, 1, true);
  CHECK(swap.total().out == 0);
  const auto live = [&] { return memory.stats().purpose_live[VELO_PURPOSE_ACTIVATION]; };
  const std::uint64_t logits = live();
  net.forward(stream, batch, 2);  // no backward pass follows
  CHECK(swap.total().out > 0);
  net.forward(stream, batch, 1, true);
  CHECK(live() == logits);
}
