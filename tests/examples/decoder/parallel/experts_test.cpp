// A model with experts trains on ranks as it does on one: whichever ranks have its experts, and
// whatever else they share.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "examples/decoder/model/experts/step_choices.hpp"
#include "tests/examples/decoder/model/glm_settings.hpp"
#include "tests/examples/decoder/model/latent_settings.hpp"
#include "tests/examples/decoder/parallel/named_layouts.hpp"
#include "tests/examples/decoder/parallel/saved_model.hpp"

namespace {

// Four experts whose width nothing divides, of which three are chosen, in f32.
settings small_experts() {
  settings s = small_model();
  s.model.experts = 4, s.model.experts_per_token = 3, s.model.expert_inner = 38;
  s.model.balance_loss = 0.1;
  return s;
}

// The same with a layer without experts, a shared expert and a router that chooses by groups.
settings small_glm() {
  settings s = small_experts();
  set_glms_layers(s.model);
  s.model.shared_experts = 1;
  return s;
}

settings small_deepseek() {
  settings s = small_glm();
  set_latent_attention(s.model);
  return s;
}

const std::vector<layout>& expert_layouts() {
  static const std::vector<layout> all = {
      {"two copies", 2, [](settings&) {}},
      {"two copies that share the optimizer", 2, [](settings& s) { s.run.zero = true; }},
      {"ep 2 over copies", 2, [](settings& s) { s.parallel.ep = 2; }},
      {"ep 2 in two copies that share the optimizer", 4,
       [](settings& s) { s.parallel.ep = 2, s.run.zero = true; }},
      {"ep 4, all recomputed", 4,
       [](settings& s) { s.parallel.ep = 4, s.memory.recompute = "full"; }},
      {"tp 2", 2, [](settings& s) { s.parallel.tp = 2, s.parallel.sequence_parallel = true; }},
      {"tp 3 with all rows, ep 2 in two copies", 6,
       [](settings& s) { s.parallel.tp = 3, s.parallel.ep = 2; }},
      {"ep 2 over tp 2 with all rows, in pp 2 by zbh1, all recomputed", 4,
       [](settings& s) {
         s.parallel.tp = s.parallel.ep = s.parallel.pp = 2, s.parallel.pipeline = "zbh1";
         s.memory.recompute = "full";
       }},
      {"ep 2 over tp 2", 2,
       [](settings& s) { s.parallel.tp = s.parallel.ep = 2, s.parallel.sequence_parallel = true; }},
      {"tp 2 that cut each expert", 2, [](settings& s) { s.parallel.tp = 2, s.parallel.etp = 0; }},
      {"tp 3 that cut each expert unevenly, with ep 2, all recomputed", 6,
       [](settings& s) {
         s.parallel.tp = 3, s.parallel.ep = 2, s.parallel.etp = 3;
         s.parallel.sequence_parallel = true, s.memory.recompute = "full";
       }},
      {"tp 2 that cut each expert, ep 2, rows dispatched again", 4,
       [](settings& s) {
         s.parallel.tp = s.parallel.ep = 2, s.parallel.etp = 0;
         s.parallel.sequence_parallel = true;
         s.memory.recompute = "dispatch";
       }},
      {"tp 2 that cut each expert, ep 2, pp 2 by zbh1, the optimizer shared", 16,
       [](settings& s) {
         s.parallel.tp = s.parallel.ep = s.parallel.pp = 2, s.parallel.etp = 0;
         s.parallel.pipeline = "zbh1", s.run.zero = true;
       }},
      {"ep 4 over tp 2 and cp 2", 4,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = 2, s.parallel.ep = 4;
         s.parallel.sequence_parallel = true;
       }},
      {"ep 2 over tp 2, in cp 2 and two copies that share the optimizer", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = s.parallel.ep = 2, s.parallel.sequence_parallel = true;
         s.run.zero = true;
       }},
      {"documents, ep 2 over copies", 2,
       [](settings& s) { s.parallel.ep = 2, s.data.documents = "lines"; }},
      {"documents, ep 2 over tp 2, in cp 2 and pp 2, the optimizer shared", 16,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = s.parallel.pp = s.parallel.ep = 2;
         s.parallel.sequence_parallel = true, s.data.documents = "lines", s.run.zero = true;
       }},
      {"pp 2", 2, [](settings& s) { s.parallel.pp = 2; }},
      {"ep 2, pp 2, swapped", 4,
       [](settings& s) { s.parallel.pp = s.parallel.ep = 2, s.memory.swap_activations = "host"; }},
      {"ep 2, pp 2 by zbh1, shared embedding", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.ep = 2, s.parallel.pipeline = "zbh1", s.model.tied = true;
       }},
      {"ep 2, tp 2, pp 2 by zbv, the optimizer shared", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.pp = s.parallel.ep = 2, s.parallel.sequence_parallel = true;
         s.parallel.pipeline = "zbv", s.run.zero = true;
       }},
      {"ep 2, cp 2, pp 2 interleaved, rows of experts recomputed", 4,
       [](settings& s) {
         s.parallel.cp = s.parallel.pp = s.parallel.ep = 2, s.parallel.vpp = 2;
         s.parallel.pipeline = "interleaved", s.memory.recompute = "mlp";
       }},
      {"ep 2, pp 2 by zbh1, rows dispatched again beside swapped attention", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.ep = 2, s.parallel.pipeline = "zbh1";
         s.memory.recompute = "dispatch", s.memory.swap_activations = "host";
         s.memory.swap_modules = "self_attention";
       }},
      {"ep 2, pp 2 by nanopipe, swapped late", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.ep = 2, s.parallel.vpp = 2;
         s.parallel.pipeline = "nanopipe", s.parallel.nanopipe_swap = true;
       }},
      {"ep 2, pp 2 by ripipe, all recomputed in advance", 4,
       [](settings& s) {
         s.parallel.pp = s.parallel.ep = 2, s.parallel.pipeline = "ripipe";
         s.parallel.in_advance = true, s.parallel.vpp = 2;
       }},
      {"ep 2, pp 2 by dualpipev", 4,
       [](settings& s) { s.parallel.pp = s.parallel.ep = 2, s.parallel.pipeline = "dualpipev"; }},
      {"ep 2, tp 2, cp 2, pp 2", 8, [](settings& s) {
         s.parallel.tp = s.parallel.cp = s.parallel.pp = s.parallel.ep = 2;
         s.parallel.sequence_parallel = true;
       }}};
  return all;
}

// Whether a layout trains the model of small_experts, on the same windows.
bool trains_the_base(const settings& s) {
  return !s.model.tied && !s.data.has_documents();
}

bool is_long() {
  return std::getenv("VELO_PRETRAIN_LONG") != nullptr;
}

// Each layout from `first` on, in strides. VELO_PRETRAIN_LONG: all layouts, 20 steps.
void check_layouts(const settings& base, std::size_t first, std::size_t stride) {
  const std::int64_t steps = is_long() ? 20 : 3;
  std::map<std::pair<bool, std::string>, outcome> wholes;
  std::size_t number = 0;
  for (const layout& each : expert_layouts()) {
    if (number++ % stride != first && !is_long()) continue;
    INFO(each.name);
    settings cut = base;
    each.set(cut);
    settings whole = cut;
    whole.parallel = {};
    whole.run.zero = false;
    cut.run.ranks = each.ranks;
    outcome& expected = wholes[{cut.model.tied, cut.data.documents}];
    if (expected.losses.empty()) expected = train_for(steps, whole);
    compare(expected, train_for(steps, cut));
  }
}

}  // namespace

TEST_CASE("experts on any ranks have the losses and gradients of one rank") {
  check_layouts(small_experts(), 0, 1);
}

TEST_CASE("experts on any ranks beside a shared one, behind a dense layer, train as on one rank") {
  check_layouts(small_glm(), 0, 3);
}

TEST_CASE("experts on any ranks behind latent attention train as on one rank") {
  check_layouts(small_deepseek(), 1, 3);
}

TEST_CASE("latent attention is that of one rank with each algorithm of context ranks") {
  settings base = small_model();
  set_latent_attention(base.model, false);
  for (const char* documents : {"false", "lines"}) {
    base.data.documents = documents;
    const outcome whole = train_for(3, base);
    for (const char* algorithm :
         {"ring", "ulysses", "hybrid", "all_gather", "adaptive", "hybrid_adaptive"}) {
      INFO(algorithm << ", documents " << documents);
      settings s = base;
      s.parallel.cp = 4, s.run.ranks = 4, s.parallel.cp_algorithm = algorithm;
      if (std::string(algorithm).rfind("hybrid", 0) == 0) s.parallel.cp_ulysses = 2;
      if (std::string(algorithm) == "ring") s.parallel.cp_kv_cache = "full";
      compare(whole, train_for(3, s));
    }
  }
}

TEST_CASE("choices are recorded alike on any ranks, and replayed in place of a router's") {
  const temporary folder;
  for (const char* each : {"one", "cut"}) std::filesystem::create_directory(folder / each);
  settings s = small_experts();
  s.run.routing_record = folder / "one";
  const outcome whole = train_for(3, s);
  const auto file = [&](const char* of, std::int64_t step) {
    return decoder::step_choices::file_of(folder / of, step);
  };
  const std::string recorded = get(file("one", 1)) + get(file("one", 2)) + get(file("one", 3));
  CHECK(recorded.size() > 3 * 4 * 200 * 4 * 3 * 4);  // steps, micro-batches, tokens, layers, ..
  for (const layout& each : expert_layouts()) {
    settings cut = small_experts();
    each.set(cut);
    if (!trains_the_base(cut)) continue;
    INFO(each.name);
    cut.run.ranks = each.ranks;
    cut.run.routing_record = folder / "cut";
    std::filesystem::remove(file("cut", 1));
    train_for(1, cut);
    CHECK((get(file("cut", 1)) == get(file("one", 1))));
    cut.run.routing_record.clear(), cut.run.routing_replay = folder / "one";
    compare(whole, train_for(3, cut));
  }
  s.run.routing_record.clear(), s.run.routing_replay = folder / "one";
  compare(whole, train_for(3, s));
  // The weights of experts follow the scores of the router that there is.
  s.model.router = "sigmoid";
  const outcome other = train_for(3, s);
  CHECK(std::isfinite(other.losses.back()));
  CHECK(other.losses.front() != whole.losses.front());
}

TEST_CASE("a recording that is not this model's, or damaged, is refused with its path and place") {
  const temporary folder;
  for (const char* each : {"one", "cut"}) std::filesystem::create_directory(folder / each);
  settings s = small_experts();
  s.run.routing_record = folder / "one";
  train_for(1, s);
  const std::string path = decoder::step_choices::file_of(folder / "one", 1), good = get(path);
  s.run.routing_record.clear(), s.run.routing_replay = folder / "one";
  const auto refusal = [&](const settings& of) { return refusal_of([&] { train_for(1, of); }); };
  settings other = s;
  other.model.experts = 6;
  CHECK(refusal(other) == path + ": its choices are those of model: layers 4, experts 4, " +
                              "experts_per_token 3; this run has layers 4, experts 6, " +
                              "experts_per_token 3");
  other = s, other.run.seed = 2;
  CHECK_THAT(refusal(other), Catch::Matchers::Contains("its choices are those of data: "));
  CHECK_THAT(refusal_of([&] { train_for(2, s); }),
             Catch::Matchers::Contains("step-000002.safetensors: cannot open"));
  put(path, good.substr(0, good.size() - 4));
  CHECK_THAT(refusal(s), Catch::Matchers::Contains(path + ": tensor layer.") &&
                             Catch::Matchers::Contains("lies beyond the end"));
  put(path, good);
  put(decoder::step_choices::file_of(folder / "one", 2), good);
  CHECK_THAT(refusal_of([&] { train_for(2, s); }),
             Catch::Matchers::Contains("step-000002.safetensors: its choices are those of step: 1; "
                                       "this run has 2"));
  std::string bad = good;
  bad[bad.size() - 4] = 4;
  put(path, bad);
  CHECK(refusal(s) == path + ": layer.3: token 799 chooses expert 4, expected 0 to 3");
}

namespace {

// The most rows of an expert of a rank, by layer and micro-batch, as a recording has them.
std::vector<std::int64_t> most_rows(const settings& s, const std::string& recorded, int rank) {
  const decoder::safetensors_reader file(recorded);
  const std::int64_t tokens = s.data.sequence * s.data.batch, k = s.model.experts_per_token,
                     own = s.model.experts / s.parallel.ep;
  std::vector<std::int64_t> all;
  for (std::int64_t layer = 0; layer < s.model.layers; ++layer) {
    std::vector<std::int32_t> choices(static_cast<std::size_t>(s.data.step_tokens() * k));
    file.read({"layer." + std::to_string(layer),
               decoder::element::i32,
               {s.data.step_tokens(), k},
               reinterpret_cast<std::byte*>(choices.data())});
    for (std::int64_t batch = 0; batch < s.data.accumulation; ++batch) {
      const auto first = choices.begin() + batch * tokens * k, last = first + tokens * k;
      std::int64_t most = 0;
      for (std::int64_t e = rank * own; e < (rank + 1) * own; ++e)
        most = std::max<std::int64_t>(most, std::count(first, last, static_cast<std::int32_t>(e)));
      all.push_back(most);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("only ranks with a busy expert recompute what experts compute") {
  const temporary folder;
  std::filesystem::create_directory(folder / "one");
  settings s = small_experts();
  s.parallel.ep = 2, s.run.ranks = 2;
  s.run.routing_record = folder / "one";
  const outcome usual = train_for(1, s);
  const std::string recorded = decoder::step_choices::file_of(folder / "one", 1);
  s.run.routing_record.clear(), s.run.routing_replay = folder / "one";
  s.memory.recompute = "experts";
  const double mean = static_cast<double>(s.data.sequence * s.data.batch) * 3 / 4;
  std::vector<std::int64_t> both = most_rows(s, recorded, 0);
  const std::vector<std::int64_t> other = most_rows(s, recorded, 1);
  both.insert(both.end(), other.begin(), other.end());
  std::sort(both.begin(), both.end());
  const double limit = static_cast<double>(both[both.size() / 2]);  // half of all pass
  s.memory.recompute_load = limit / mean;
  std::vector<std::uint64_t> restores(2);
  outcome made;
  s.schedule.steps = 1;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    const std::uint64_t before = rank.memory().recomputed().restores;
    take_steps(rank, one, 1, made);
    restores[static_cast<std::size_t>(rank.rank())] = rank.memory().recomputed().restores - before;
  });
  CHECK(made.losses == usual.losses);
  CHECK(made.norms == usual.norms);
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<std::int64_t> own = most_rows(s, recorded, rank);
    const auto busy = std::count_if(own.begin(), own.end(), [&](std::int64_t most) {
      return static_cast<double>(most) > decoder::recompute_limit(100, 2, 3, 4, limit / mean);
    });
    CHECK(busy > 0);
    CHECK(busy < static_cast<std::int64_t>(own.size()));
    CHECK(restores[static_cast<std::size_t>(rank)] == 3 * static_cast<std::uint64_t>(busy));
  }
}

TEST_CASE("layers without experts recompute nothing of experts") {
  settings s = small_glm();
  s.parallel.ep = 2, s.run.ranks = 2;
  s.memory.recompute = "experts", s.memory.recompute_layers = s.model.dense_layers;
  s.schedule.steps = 1;
  outcome made;
  std::vector<std::uint64_t> restores(2);
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    const std::uint64_t before = rank.memory().recomputed().restores;
    take_steps(rank, one, 1, made);
    restores[static_cast<std::size_t>(rank.rank())] = rank.memory().recomputed().restores - before;
  });
  CHECK(restores == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("experts on ranks have the same bits each time, with any threads and recompute") {
  const int model = GENERATE(0, 1, 2);
  settings s = model == 0 ? small_experts() : model == 1 ? small_glm() : small_deepseek();
  s.parallel.ep = 2, s.run.ranks = 4;
  if (GENERATE(false, true)) s.parallel.tp = 2, s.parallel.sequence_parallel = true;
  const outcome first = train_for(3, s);
  CHECK(train_for(3, s) == first);
  s.run.threads = 2;
  CHECK(train_for(3, s) == first);
  for (const char* kind : {"full", "mlp", "experts", "dispatch", "block", "uniform", "selective",
                           "activation", "norm"}) {
    if (*kind == 'b' && model > 0 && !is_long()) break;
    INFO(kind);
    s.memory.recompute = kind;
    CHECK(train_for(3, s) == first);
  }
  s.memory.recompute = "none", s.memory.swap_activations = "host";
  CHECK(train_for(3, s) == first);
}

// Each layout begins in one kind, and another goes on; VELO_PRETRAIN_LONG: all pairs. Norms with an
// odd number of elements have half a word of a file in bf16.
TEST_CASE("a checkpoint of experts has the same bits under any layout, and training goes on") {
  struct kind {
    const char* type;
    bool is_deepseek;
    std::size_t first;  // of the layouts that begin, by threes
  };
  for (const auto& [type, is_deepseek, of_three] :
       {kind{"f32", false, 0}, {"bf16", false, 1}, {"bf16", true, 2}}) {
    settings base = is_deepseek ? small_deepseek() : small_experts();
    if (is_deepseek) base.model.q_lora_rank = 21, base.model.kv_lora_rank = 11;
    base.model.dtype = type;
    base.schedule.steps = 4;
    outcome whole;
    on_trainers(base, [&](decoder::member& rank, decoder::trainer& one) {
      one.start();
      take_steps(rank, one, 4, whole);
    });
    const std::vector<layout>& all = expert_layouts();
    for (std::size_t number = 0; number < all.size(); ++number) {
      const layout& from = all[number];
      settings first = base;
      from.set(first);
      if (!trains_the_base(first) || (number % 3 != of_three && !is_long())) continue;
      first.run.ranks = from.ranks;
      const temporary folder;
      outcome made;
      on_trainers(first, [&](decoder::member& rank, decoder::trainer& one) {
        one.start();
        take_steps(rank, one, 2, made);
        save(rank, one, folder / "first");
      });
      for (const layout& to : all) {
        settings second = base;
        to.set(second);
        if (!trains_the_base(second) || (&to != &all[(number + 5) % all.size()] && !is_long()))
          continue;
        INFO(type << (is_deepseek ? ", DeepSeek" : "") << ", from " << from.name << " to "
                  << to.name);
        second.run.ranks = to.ranks;
        outcome on = made;
        on_trainers(second, [&](decoder::member& rank, decoder::trainer& one) {
          one.resume(decoder::checkpoint_reader(folder / "first"));
          save(rank, one, folder / "second");
          take_steps(rank, one, 2, on);
        });
        CHECK((contents_of(folder / "first") == contents_of(folder / "second")));
        REQUIRE(on.losses.size() == 4);
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(on.losses[i] ==
                Approx(whole.losses[i]).epsilon(*type == 'f' ? 1e-5 : 2e-2).margin(0));
      }
    }
  }
}
