// Ranks that share a model have the same bits each time, with any threads, and whatever they keep.
// With VELO_PRETRAIN_LONG every layout with every change; else each layout with a fourth of them.
#include <cstdlib>

#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

using change = std::function<void(settings&)>;

change recompute(const char* kind) {
  return [kind](settings& s) {
    s.memory.recompute = kind;
    s.memory.recompute_layers = kind == std::string("uniform") ? 2 : 0;
  };
}

// What may change no bit of a layout, beside the number of threads.
std::vector<std::pair<const char*, change>> changes_of(const settings& s) {
  std::vector<std::pair<const char*, change>> all = {{"nothing", [](settings&) {}}};
  for (const char* kind : {"full", "block", "uniform", "selective", "activation", "norm", "mlp"})
    all.push_back({kind, recompute(kind)});
  const change keep_sum = [](settings& other) {
    other.memory.recompute = "full", other.memory.recompute_level = 2;
  };
  const change swap = [](settings& other) { other.memory.swap_activations = "host"; };
  all.push_back({"swap", swap});
  // Otherwise a rank's rows are not as many in each step.
  if (!s.data.has_documents() || s.parallel.attention_ranks() == 1 ||
      s.parallel.sequence_splits > 1)
    all.push_back({"a memory plan", [](settings& other) { other.memory.plan = true; }});
  if (s.parallel.tp > 1) {
    all.push_back({"attention's sum kept", keep_sum});
    all.push_back({"attention's sum kept, and swapped",
                   [=](settings& other) { keep_sum(other), swap(other); }});
  }
  return all;
}

// The same settings again, and with two threads each change, or each fourth from `turn` on.
void check_same_bits(settings s, std::size_t turn) {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const outcome first = train_for(3, s);
  if (is_long || turn == 0) CHECK(train_for(3, s) == first);
  s.run.threads = 2;
  const auto changes = changes_of(s);
  for (std::size_t i = is_long ? 0 : turn % 4; i < changes.size(); i += is_long ? 1 : 4) {
    INFO(changes[i].first);
    settings other = s;
    changes[i].second(other);
    CHECK(train_for(3, other) == first);
  }
}

// How often each operator ran with each kernel on a rank, as a profile of a step says.
std::map<std::string, int> kernels_in_a_step(decoder::member& rank, decoder::trainer& one) {
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  desc.events = 1 << 16;
  const velo::profiler records = velo::profiler::create(rank.context().get(), desc);
  one.step();
  records.stop();
  const velo_profiler_stats stats = records.stats();
  std::map<std::string, int> all;
  for (std::uint64_t i = 0; i < stats.events; ++i) {
    const velo_profiler_event each = records.event(static_cast<std::int64_t>(i));
    if (each.kind == VELO_PROFILER_OPERATOR) ++all[std::string(each.name) + ": " + each.detail];
  }
  return all;
}

}  // namespace

TEST_CASE("a layout has the same bits each time, with any threads and recompute") {
  std::size_t turn = 0;
  for (const bool cuts_both_ways : {false, true})
    for (const std::int64_t kv_share : {0, 2})
      for (const char* documents : {"false", "lines"}) {
        settings s = small_model();
        s.data.documents = documents, s.model.kv_share = kv_share;
        s.parallel.tp = 2, s.run.ranks = 4;
        if (cuts_both_ways)
          s.parallel.tp = 4, s.parallel.tp_x = 2;
        else
          s.parallel.cp = 2, s.parallel.sequence_parallel = true;
        INFO("tp " << s.parallel.tp << ", kv_share " << kv_share << ", documents " << documents);
        check_same_bits(s, turn + turn / 4 * 2);
        ++turn;
      }
}

TEST_CASE("a layout has the same bits with any number of slices") {
  settings s = small_model();
  s.parallel.tp = s.run.ranks = 2;
  s.parallel.sequence_parallel = GENERATE(false, true);
  const outcome chosen = train_for(3, s);
  // Without rows that are cut, the column parallel forward exchanges nothing.
  std::vector<std::string> exchange = {"row_parallel_linear", "column_parallel_linear_backward"};
  if (s.parallel.sequence_parallel)
    for (const char* more : {"column_parallel_linear", "row_parallel_linear_backward"})
      exchange.emplace_back(more);
  for (const std::int64_t slices : {1, 2, 1024}) {
    s.parallel.tp_slices = slices;
    CHECK(train_for(3, s) == chosen);
    on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      const std::map<std::string, int> ran = kernels_in_a_step(rank, one);
      if (!rank.leads()) return;
      for (const std::string& name : exchange) {
        INFO(name << ", " << slices << " slices");
        CHECK(ran.count(name + ": sliced") == (slices == 1 ? 0 : 1));
        CHECK(ran.count(name + ": composition") == (slices == 1 ? 1 : 0));
      }
    });
  }
}

// Each layer's call has the slices of the setting: ranks that ask for unlike many disagree.
TEST_CASE("ranks with unlike numbers of slices disagree in the first layer") {
  settings s = small_model();
  s.parallel.tp = s.run.ranks = 2, s.parallel.tp_slices = 2;
  CHECK_THROWS_WITH(on_trainers(s,
                                [&](decoder::member& rank, decoder::trainer& one) {
                                  one.start();
                                  if (!rank.leads()) rank.context().set("overlap.slices", "*:3");
                                  one.step();
                                }),
                    Catch::Matchers::Contains("row_parallel_linear"));
}

TEST_CASE("splits of windows have the same bits each time, with any threads and recompute") {
  std::size_t turn = 0;
  for (const std::int64_t kv_share : {0, 2})
    for (const char* documents : {"false", "lines"}) {
      settings s = small_model();
      s.data.documents = documents, s.model.kv_share = kv_share;
      s.parallel.tp = s.parallel.pp = 2, s.parallel.sequence_parallel = true;
      s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
      s.run.ranks = 4;
      INFO("kv_share " << kv_share << ", documents " << documents);
      check_same_bits(s, turn++);
    }
}

TEST_CASE("splits that ranks share have the same bits each time, with any threads and recompute") {
  std::size_t turn = 0;
  for (const char* algorithm : {"all_gather", "ulysses"})
    for (const char* documents : {"false", "lines"}) {
      settings s = small_model();
      s.data.documents = documents;
      s.model.kv_share = 2;
      s.parallel.cp_algorithm = algorithm;
      s.parallel.cp = s.parallel.pp = 2;
      s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 3;
      s.run.ranks = 4;
      INFO(algorithm << ", documents " << documents);
      check_same_bits(s, turn++);
    }
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
