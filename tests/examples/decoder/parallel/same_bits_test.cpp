// Ranks that share a model have the same bits each time, with any threads, and whatever they keep.
#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

void check_same_bits(settings s) {
  const outcome first = train_for(3, s);
  CHECK(train_for(3, s) == first);
  s.run.threads = 2;
  CHECK(train_for(3, s) == first);
  for (const char* kind : {"full", "block", "uniform", "selective", "activation", "norm", "mlp"}) {
    INFO(kind);
    s.memory.recompute = kind;
    s.memory.recompute_layers = kind == std::string("uniform") ? 2 : 0;
    CHECK(train_for(3, s) == first);
  }
  s.memory.recompute_layers = 0;
  if (s.parallel.tp > 1) {
    INFO("attention's sum kept, and swapped");
    s.memory.recompute = "full", s.memory.recompute_level = 2;
    CHECK(train_for(3, s) == first);
    s.memory.swap_activations = "host";
    CHECK(train_for(3, s) == first);
    s.memory.recompute_level = 1;
  }
  s.memory.recompute = "none";
  s.memory.swap_activations = "host";
  CHECK(train_for(3, s) == first);
  s.memory.swap_activations = "off";
  if (s.data.has_documents() && s.parallel.attention_ranks() > 1 && s.parallel.sequence_splits == 1)
    return;  // a rank's rows are not as many in each step
  s.memory.plan = true;
  CHECK(train_for(3, s) == first);
}

}  // namespace

TEST_CASE("a layout has the same bits each time, with any threads and recompute") {
  settings s = small_model();
  s.data.documents = GENERATE("false", "lines");
  s.model.kv_share = GENERATE(0, 2);
  s.parallel.tp = 2, s.run.ranks = 4;
  if (GENERATE(false, true))
    s.parallel.tp = 4, s.parallel.tp_x = 2;
  else
    s.parallel.cp = 2, s.parallel.sequence_parallel = true;
  check_same_bits(s);
}

TEST_CASE("a layout has the same bits with any number of slices") {
  settings s = small_model();
  s.parallel.tp = s.run.ranks = 2;
  s.parallel.sequence_parallel = GENERATE(false, true);
  const outcome chosen = train_for(3, s);
  for (const std::int64_t slices : {1, 2, 1024}) {
    s.parallel.tp_slices = slices;
    CHECK(train_for(3, s) == chosen);
    const decoder::member rank(s);
    CHECK(rank.context().config<std::string>("overlap.slices") == "*:" + std::to_string(slices));
  }
}

TEST_CASE("splits of windows have the same bits each time, with any threads and recompute") {
  settings s = small_model();
  s.data.documents = GENERATE("false", "lines");
  s.model.kv_share = GENERATE(0, 2);
  s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
  s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
  s.run.ranks = 4;
  check_same_bits(s);
}

TEST_CASE("splits that ranks share have the same bits each time, with any threads and recompute") {
  settings s = small_model();
  s.data.documents = GENERATE("false", "lines");
  s.model.kv_share = 2;
  s.parallel.cp_algorithm = GENERATE("all_gather", "ulysses");
  s.parallel.cp = s.parallel.pp = 2;
  s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
  s.run.ranks = 4;
  check_same_bits(s);
}

TEST_CASE("inputs that tensor ranks share between the passes change no bit, and take less") {
  settings s = small_model();
  s.parallel.tp = 3, s.run.ranks = 3;
  s.memory.recompute = "full";
  const auto train_measured = [&](std::uint64_t& peak) {
    outcome made;
    on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      take_steps(rank, one, 3, made);
      if (rank.leads()) peak = rank.memory().stats().purpose_peak[VELO_PURPOSE_ACTIVATION];
    });
    return made;
  };
  std::uint64_t whole = 0, cut = 0;
  const outcome first = train_measured(whole);
  s.memory.distribute_saved = true;
  CHECK(train_measured(cut) == first);
  // Two thirds of the inputs of all layers but the one at work.
  const std::int64_t input = s.data.batch * s.data.sequence * s.model.hidden * 4;
  const auto less = static_cast<std::uint64_t>((s.model.layers - 1) * input * 2 / 3);
  CHECK(whole - cut >= less * 9 / 10);
  s.memory.swap_activations = "host";
  for (const auto& [kind, layers] : {std::pair("full", 0), {"block", 2}, {"uniform", 3}}) {
    INFO(kind);
    s.memory.recompute = kind, s.memory.recompute_layers = layers;
    std::uint64_t waiting = 0;
    CHECK(train_measured(waiting) == first);
    CHECK((kind != std::string("full") || waiting < whole));
  }
}

TEST_CASE("a rank that trains on documents has the same bits with a memory plan") {
  settings s = small_model();
  s.data.documents = "lines";
  const outcome first = train_for(4, s);
  s.memory.plan = true;
  CHECK(train_for(4, s) == first);
}
