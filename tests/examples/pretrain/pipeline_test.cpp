// A model in stages trains as a whole one does, whatever order its ranks work in.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"
#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

// Every kind that the library has but the one that no model trains with: pretrain refuses it.
std::vector<std::string> kinds() {
  std::vector<std::string> all = decoder::pipelines();
  all.erase(std::remove(all.begin(), all.end(), "seq1f1b"), all.end());
  return all;
}

// Eight layers and as many micro-batches, in f32.
decoder::settings eight_of_each() {
  decoder::settings s = small_settings("f32");
  s.model.layers = s.data.accumulation = 8;
  s.data.batch = 2;
  s.run.threads = 1;
  s.run.transport = "local";
  return s;
}

// Rank 0's.
struct told {
  double norm = 0;  // of the last step's gradients
  velo_executor_stats updates = VELO_EXECUTOR_STATS_INIT;
};

// Losses of a run whose ranks are threads of this process.
std::vector<float> losses_of(const decoder::settings& s, std::int64_t steps, told* more = nullptr) {
  using namespace decoder;
  const corpus text = split_text(some_text(60000), 1 << 20);
  std::vector<float> losses;
  on_all_ranks(s, {}, [&](member& rank) {
    if (s.parallel.pp > 1)
      rank.split(static_cast<int>(s.parallel.pp), s.parallel.pipeline == "dualpipe");
    trainer one(rank, s, text);
    one.start();
    std::optional<trainer::result> last;
    for (std::int64_t i = 0; i < steps; ++i) last = one.step();
    if (s.parallel.post_validation) last = one.settle();
    if (!rank.leads()) return 0;
    losses = one.losses();
    if (more != nullptr) *more = {last->grad_norm, one.stages()->updates()};
    return 0;
  });
  return losses;
}

void train_alike(std::int64_t steps, const std::vector<std::int64_t>& cuts,
                 const std::vector<std::int64_t>& copies_of,
                 const std::vector<std::string>& orders = kinds()) {
  decoder::settings s = eight_of_each();
  s.schedule.steps = steps;
  const std::vector<float> whole = losses_of(s, steps);
  REQUIRE(whole.size() == static_cast<std::size_t>(steps));
  for (const std::string& kind : orders)
    for (const std::int64_t pp : cuts)
      for (const std::int64_t copies : copies_of) {
        INFO(kind << " over " << pp << " ranks, copies: " << copies);
        s.parallel.pipeline = kind;
        s.parallel.pp = pp;
        s.run.ranks = pp * copies;
        s.run.zero = copies == 2;
        const std::vector<float> cut = losses_of(s, steps);
        REQUIRE(cut.size() == whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i)
          CHECK(static_cast<double>(cut[i]) ==
                Approx(static_cast<double>(whole[i])).epsilon(1e-5).margin(0));
      }
}

double kilobytes_behind(const std::string& word, const std::string& text) {
  const std::size_t at = text.find(word);
  REQUIRE(at != std::string::npos);
  return std::atof(&text[at + word.size()]);
}

}  // namespace

// VELO_PRETRAIN_LONG: 50 steps, and of copies over four ranks, too.
TEST_CASE("a model in stages has the losses of a whole one whatever its order") {
  if (std::getenv("VELO_PRETRAIN_LONG") != nullptr)
    train_alike(50, {2, 4}, {1, 2});
  else
    train_alike(2, {2}, {1});
}

TEST_CASE("copies of a model in stages have the losses of a whole one, both ways through it, too") {
  train_alike(2, {2}, {2}, {"zbh1", "dualpipe"});
}

TEST_CASE("what a schedule makes again has the bits of what it keeps") {
  decoder::settings s = eight_of_each();
  s.schedule.steps = 3;
  s.parallel.pp = 2;
  s.parallel.pipeline = "interleaved";
  const std::vector<float> kept = losses_of(s, 3);
  s.parallel.pipeline = "ripipe";
  for (const bool in_advance : {false, true}) {
    INFO("in advance: " << in_advance);
    s.parallel.in_advance = in_advance;
    CHECK(losses_of(s, 3) == kept);
    s.memory.recompute = "selective";  // is made again twice
    CHECK(losses_of(s, 3) == kept);
    s.memory.recompute = "none";
  }
}

TEST_CASE("steps that are validated late have the bits of those that wait, clipped or not") {
  constexpr std::int64_t steps = 3;
  for (const char* kind : {"1f1b", "zbv", "dualpipe"}) {
    decoder::settings s = eight_of_each();
    s.schedule.steps = steps;
    s.data.accumulation = 4;
    s.parallel.pipeline = kind;
    s.parallel.pp = 2;
    s.optimizer.clip = 0;
    told first;
    losses_of(s, 1, &first);
    // Nothing; what both ranks have together; what rank 0 has alone.
    for (const double part : {2.0, 0.999, 0.01}) {
      INFO(kind << ", clipped at " << part << " of the first norm");
      s.optimizer.clip = part * first.norm;
      s.parallel.post_validation = false;
      const std::vector<float> waited = losses_of(s, steps);
      s.parallel.post_validation = true;
      told late;
      CHECK(losses_of(s, steps, &late) == waited);
      CHECK(late.updates.steps == steps);
      CHECK((late.updates.rolled_back > 0) == (part == 0.999));
      CHECK((late.updates.deferred == steps) == (part == 0.01));
    }
  }
}

TEST_CASE(
    "steps that are validated late have the bits of those that wait where copies share the state") {
  constexpr std::int64_t steps = 3;
  for (const char* type : {"f32", "bf16"}) {
    decoder::settings s = eight_of_each();
    s.model.dtype = type;
    s.model.layers = s.data.accumulation = 4;
    s.schedule.steps = steps;
    s.parallel.pipeline = "zbh1";
    s.parallel.pp = 2;
    s.run.ranks = 4;
    s.optimizer.clip = 0;
    told first;
    losses_of(s, 1, &first);
    for (const double part : {0.999, 0.01}) {
      INFO(type << ", clipped at " << part << " of the first norm");
      s.optimizer.clip = part * first.norm;
      s.parallel.post_validation = s.run.zero = false;
      const std::vector<float> waited = losses_of(s, steps);
      s.parallel.post_validation = s.run.zero = true;
      told late;
      CHECK(losses_of(s, steps, &late) == waited);
      CHECK(late.updates.steps == steps);
      CHECK((late.updates.rolled_back > 0) == (part == 0.999));
      CHECK((late.updates.deferred == steps) == (part == 0.01));
    }
  }
}

TEST_CASE("a run whose steps are validated late prints, saves and ends as another does") {
  workplace w;
  const auto run = [&](const char* late, std::vector<std::string> more) {
    more.insert(more.end(), {"--pp", "2", "--ranks", "4", "--pipeline", "zbh1", "--layers", "4",
                             "--accumulation", "4", "--transport", "local", "--post_validation",
                             late, "--log", w / late, "--out", w / late + ".out"});
    return w.run(more);
  };
  for (const char* late : {"false", "true"}) {
    const outcome done = run(late, {"--steps", "5", "--save_every", "2", "--validate_every", "3"});
    INFO(done.text);
    REQUIRE(done.code == 0);
  }
  CHECK(w.losses("true") == w.losses("false"));
  for (const char* file : {"model.safetensors", "training_state.safetensors"})
    CHECK(get(w / "true.out/checkpoint/" + file) == get(w / "false.out/checkpoint/" + file));

  std::string ends[2];
  for (const bool late : {false, true}) {
    const outcome done = run(late ? "true" : "false", {"--learning_rate", "1e3", "--clip", "0"});
    CHECK(done.code == 1);
    ends[late] = done.text.substr(done.text.find("pretrain: step "));
  }
  CHECK_THAT(ends[0], Contains("is not finite"));
  CHECK(ends[1] == ends[0]);
}

TEST_CASE(
    "each rank of a model in stages holds its part, and rank 0 can say what all of it writes") {
  workplace w;
  const auto train = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.end(), {"--layers", "8", "--accumulation", "4", "--dtype", "f32", "--steps",
                             "3", "--log", w / name, "--out", w / name + ".out"});
    const outcome done = w.run(more);
    INFO(done.text);
    REQUIRE(done.code == 0);
    return done.text;
  };
  const std::string whole = train("whole", {});
  const std::string cut =
      train("cut", {"--pp", "4", "--transport", "shm", "--timeline", w / "t.json"});
  compare_logs(w.losses("whole"), w.losses("cut"));
  for (const char* what : {"weights ", "gradients ", "optimizer "}) {
    INFO(what);
    CHECK(kilobytes_behind(what, cut) < 0.5 * kilobytes_behind(what, whole));
  }
  CHECK_THAT(cut, Contains("cut over 4 ranks: 1f1b") && Contains("the model writes"));
  json_t* root = json_loads(get(w / "t.json").c_str(), 0, nullptr);
  REQUIRE(root != nullptr);
  CHECK(json_array_size(json_object_get(root, "traceEvents")) >= 4 * 4 * 2);  // F and B of each
  json_decref(root);
}

TEST_CASE("what a model in stages began a whole one goes on with, and the other way") {
  workplace w;
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--layers", "4", "--accumulation", "4", "--dtype", "f32"});
    return w.run(more);
  };
  REQUIRE(run({"--log", w / "whole", "--out", w / "whole.out"}).code == 0);
  REQUIRE(run({"--log", w / "log", "--pp", "2", "--ranks", "4", "--zero", "true", "--pipeline",
               "zbv", "--vpp", "2", "--timeline", w / "t.svg", "--stop_after", "2"})
              .code == 0);
  REQUIRE(
      run_program({"--resume", w / "out", "--ranks", "1", "--pp", "1", "--stop_after", "4"}).code ==
      0);
  const outcome refused = run_program({"--resume", w / "out", "--pp", "1", "--vpp", "2"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.text, Contains("vpp = 2 is of a model that is cut into stages"));
  const outcome last = run_program({"--resume", w / "out", "--ranks", "2", "--pp", "2",
                                    "--transport", "local", "--pipeline", "1f1b"});
  INFO(last.text);
  REQUIRE(last.code == 0);
  compare_logs(w.losses("whole"), w.losses("log"));
}

TEST_CASE("what ripipe began in advance a whole model goes on with") {
  workplace w;
  const outcome begun =
      w.run({"--layers", "4", "--accumulation", "4", "--pp", "2", "--ranks", "2", "--transport",
             "local", "--pipeline", "ripipe", "--in_advance", "true", "--stop_after", "2"});
  INFO(begun.text);
  REQUIRE(begun.code == 0);
  const outcome last =
      run_program({"--resume", w / "out", "--ranks", "1", "--pp", "1", "--stop_after", "3"});
  INFO(last.text);
  CHECK(last.code == 0);
}

TEST_CASE("the checkpoint of a model in stages has the bits of a whole one's in bf16, too") {
  workplace w;
  for (const char* pp : {"1", "2"})
    REQUIRE(w.run({"--steps", "2", "--pp", pp, "--accumulation", "2", "--pipeline", "gpipe",
                   "--transport", "local", "--out", w / pp})
                .code == 0);
  for (const char* file : {"model.safetensors", "config.json"})
    CHECK(get(w / "1/checkpoint/" + file) == get(w / "2/checkpoint/" + file));
}

TEST_CASE("a measured timeline may be a picture, and takes no other file's place") {
  workplace w;
  const outcome drawn = w.run({"--pp", "2", "--transport", "local", "--timeline", w / "t.svg"});
  INFO(drawn.text);
  CHECK(drawn.code == 0);
  CHECK_THAT(get(w / "t.svg"), Contains("<svg") && Contains("</svg>"));
  put(w / "mine.svg", "my own picture");
  const outcome kept = w.run({"--pp", "2", "--transport", "local", "--timeline", w / "mine.svg"});
  CHECK(kept.code == 1);
  CHECK_THAT(kept.text, Contains("is not a picture of one; it is left as it is"));
  CHECK(get(w / "mine.svg") == "my own picture");
}

TEST_CASE("what a model in stages cannot do is refused before it trains") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const char* why) {
    const outcome done = w.run(more);
    INFO(done.text);
    CHECK(done.code == 1);
    CHECK_THAT(done.text, Contains(why));
    CHECK(done.text.find("pretrain: ") == done.text.rfind("pretrain: "));
    CHECK_THAT(done.text, !Contains("loss"));
  };
  refused({"--pp", "2", "--ranks", "3"}, "pp = 2 must divide the 3 ranks");
  refused({"--pp", "2", "--ranks", "6"}, "batch = 4 must be a multiple of the 3 copies");
  refused({"--pp", "2", "--tied", "true"}, "tied = true would have one matrix on two ranks");
  refused({"--pp", "2", "--memory_budget", "100000000"}, "is of a whole model, not with pp = 2");
  refused({"--pp", "2", "--swap_activations", "host"}, "is of a whole model, not with pp = 2");
  refused({"--pp", "2", "--trace", w / "trace"}, "is of a whole model, not with pp = 2");
  refused({"--pp", "2", "--pipeline", "seq1f1b"}, "splits sequences");
  refused({"--pp", "2", "--in_advance", "true"}, "is of ripipe, not with pipeline");
  refused({"--pp", "2", "--pipeline", "2f2b"}, "must be one of those that --help lists");
  refused({"--pipeline", "zvb"}, "must be one of those that --help lists; did you mean zbv?");
  refused({"--pp", "2", "--pipeline", "1F1B"}, "did you mean 1f1b?");
  refused({"--pp", "2", "--pipeline", "zbv"}, "layers = 2 must be at least 4, the stages of");
  refused({"--pp", "2", "--pipeline", "dualpipev", "--layers", "4"}, "accumulation = 1 must be");
  refused({"--pp", "2", "--vpp", "3"}, "vpp = 3 must be");
  refused({"--pp", "2", "--pipeline", "dualpipe", "--layers", "4", "--accumulation", "4",
           "--post_validation", "true", "--zero", "true"},
          "not with zero = true");
  refused({"--pp", "2", "--post_validation", "true", "--swap_optimizer", "host"},
          "not with swap_optimizer");
  refused({"--post_validation", "true"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--vpp", "2"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--timeline", w / "t"}, "is of a model that is cut into stages, not with pp = 1");
}

TEST_CASE("an interrupt of ranks with a stage each saves once") {
  workplace w;
  child running(tiny(
      w.path, {"--steps", "400000", "--pp", "2", "--accumulation", "2", "--transport", "shm"}));
  running.wait_for("3/400000  ");
  running.send(SIGINT);
  const outcome stopped = running.finish();
  INFO(stopped.text);
  CHECK(stopped.code == 130);
  CHECK(stopped.text.find("saved ") == stopped.text.rfind("saved "));
}
