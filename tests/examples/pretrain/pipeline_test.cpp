// The program with a model in stages: its output, checkpoints and refusals.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

double kilobytes_behind(const std::string& word, const std::string& text) {
  const std::size_t at = text.find(word);
  REQUIRE(at != std::string::npos);
  return std::atof(&text[at + word.size()]);
}

}  // namespace

TEST_CASE("a run whose steps are validated late prints, saves and ends as another does") {
  workplace w;
  const auto run = [&](const char* late, std::vector<std::string> more) {
    return w.run(std::move(more),
                 {"--pp", "2", "--ranks", "4", "--pipeline", "zbh1", "--layers", "4",
                  "--accumulation", "4", "--transport", "local", "--post_validation", late, "--log",
                  w / late, "--out", w / late + ".out"});
  };
  for (const char* late : {"false", "true"}) {
    ended(0, run(late, {"--steps", "5", "--save_every", "2", "--validate_every", "3"}));
  }
  CHECK(w.losses("true") == w.losses("false"));
  check_same_state(w / "true.out/checkpoint/", w / "false.out/checkpoint/");

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
    const outcome done = ended(
        0, w.run(std::move(more), {"--layers", "8", "--accumulation", "4", "--dtype", "f32",
                                   "--steps", "3", "--log", w / name, "--out", w / name + ".out"}));
    return done.text;
  };
  const std::string whole = train("whole", {});
  const std::string cut =
      train("cut", {"--pp", "4", "--transport", "shm", "--timeline", w / "t.json"});
  compare_logs(w.losses("whole"), w.losses("cut"));
  for (const char* what : {"parameter ", "gradient ", "optimizer "}) {
    INFO(what);
    CHECK(kilobytes_behind(what, cut) < 0.5 * kilobytes_behind(what, whole));
  }
  CHECK_THAT(cut, Contains("layers cut over 4 ranks: 1f1b") && Contains("the model writes"));
  json_t* root = json_loads(get(w / "t.json").c_str(), 0, nullptr);
  REQUIRE(root != nullptr);
  CHECK(json_array_size(json_object_get(root, "traceEvents")) >= 4 * 4 * 2);  // F and B of each
  json_decref(root);
}

TEST_CASE("what a model in stages began a whole one goes on with, and the other way") {
  workplace w;
  const auto run = [&](std::vector<std::string> more) {
    return w.run(std::move(more), {"--layers", "4", "--accumulation", "4", "--dtype", "f32"});
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
  ended(0, run_program({"--resume", w / "out", "--ranks", "2", "--pp", "2", "--transport", "local",
                        "--pipeline", "1f1b"}));
  compare_logs(w.losses("whole"), w.losses("log"));
}

TEST_CASE("splits of windows print, validate, save and draw as whole windows do") {
  workplace w;
  const std::vector<std::string> splits = {
      "--pp", "2", "--pipeline", "seq1f1b", "--sequence_splits", "3"};
  const auto run = [&](const char* name, std::vector<std::string> more) {
    return ended(0, w.run(std::move(more), {"--layers", "4", "--accumulation", "4", "--dtype",
                                            "f32", "--transport", "local", "--validate_every", "2",
                                            "--log", w / name, "--out", w / name + ".out"}));
  };
  run("whole", {});
  std::vector<std::string> more = splits;
  more.insert(more.end(), {"--timeline", w / "t.json"});
  const outcome done = run("cut", more);
  compare_logs(w.losses("whole"), w.losses("cut"));
  CHECK_THAT(done.text, Contains("layers cut over 2 ranks: seq1f1b") &&
                            Contains("windows cut into 3 splits") && Contains("the model writes"));
  for (const char* split : {"\"microbatch\": \"0.0\"", "\"microbatch\": \"3.2\""})
    CHECK_THAT(get(w / "t.json"), Contains(split));

  more = splits;
  more.insert(more.end(), {"--stop_after", "2"});
  run("part", more);
  const std::string part = w / "part.out";
  ended(0, run_program({"--resume", part, "--ranks", "1", "--pp", "1", "--stop_after", "3"}));
  const outcome refused =
      run_program({"--resume", part, "--pp", "2", "--pipeline", "1f1b", "--sequence_splits", "2"});
  CHECK_THAT(refused.text, Contains("sequence_splits = 2 is of seq1f1b"));
  ended(0, run_program({"--resume", part, "--ranks", "4", "--pp", "4", "--pipeline", "seq1f1b",
                        "--sequence_splits", "2"}));
  compare_logs(w.losses("whole"), w.losses("part"));
}

TEST_CASE("a resumed run takes another pipeline without what was of the old one") {
  workplace w;
  const auto begin = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--layers", "4", "--accumulation", "4", "--dtype", "f32", "--pp", "2",
                             "--ranks", "2", "--transport", "local", "--stop_after", "1", "--out",
                             w / "part", "--log", w / "log"});
    std::filesystem::remove_all(w / "part");
    ended(0, w.run(std::move(more)));
  };
  const auto go_on = [&](const char* pipeline) {
    return run_program({"--resume", w / "part", "--pipeline", pipeline, "--stop_after", "2"});
  };
  begin({"--pipeline", "seq1f1b", "--sequence_splits", "3"});
  ended(0, go_on("1f1b"));
  CHECK_THAT(get(w / "part/checkpoint/trainer.json"), Contains("\"sequence_splits\": 1"));
  begin({"--pipeline", "zbv", "--vpp", "2"});
  ended(0, go_on("1f1b"));
  begin({"--pipeline", "ripipe", "--in_advance", "true", "--vpp", "2"});
  ended(0, go_on("interleaved"));
  CHECK_THAT(get(w / "part/checkpoint/trainer.json"), Contains("\"vpp\": 2"));
  begin({"--pipeline", "nanopipe", "--nanopipe_swap", "true"});
  const outcome refused =
      run_program({"--resume", w / "part", "--pipeline", "1f1b", "--nanopipe_swap", "true"});
  CHECK_THAT(refused.text, Contains("nanopipe_swap = true is of nanopipe"));
  ended(0, go_on("dualpipev"));
}

TEST_CASE("what ripipe began in advance a whole model goes on with") {
  workplace w;
  ended(0,
        w.run({"--layers", "4", "--accumulation", "4", "--pp", "2", "--ranks", "2", "--transport",
               "local", "--pipeline", "ripipe", "--in_advance", "true", "--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--ranks", "1", "--pp", "1", "--stop_after", "3"}));
}

TEST_CASE("the checkpoint of a model in stages has the bits of a whole one's in bf16, too") {
  workplace w;
  const std::vector<std::string> whole = {"--steps",     "2",     "--accumulation", "2",
                                          "--transport", "local", "--out",          w / "1"};
  const std::vector<std::string> cut = {"--steps", "2",     "--accumulation", "2",
                                        "--pp",    "2",     "--pipeline",     "gpipe",
                                        "--out",   w / "2", "--transport",    "local"};
  for (const auto& words : {whole, cut}) ended(0, w.run(words));
  for (const char* file : {"model.safetensors", "config.json"})
    CHECK(get(w / "1/checkpoint/" + file) == get(w / "2/checkpoint/" + file));
}

TEST_CASE("a measured timeline may be a picture, and takes no other file's place") {
  workplace w;
  ended(0, w.run({"--pp", "2", "--transport", "local", "--timeline", w / "t.svg"}));
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
    const outcome done = ended(1, w.run(more));
    CHECK_THAT(done.text, Contains(why));
    CHECK(done.text.find("pretrain: ") == done.text.rfind("pretrain: "));
    CHECK_THAT(done.text, !Contains("loss"));
  };
  refused({"--pp", "2", "--ranks", "3"}, "pp = 2 must divide the 3 ranks");
  refused({"--pp", "2", "--ranks", "6"}, "batch = 4 must be a multiple of the 3 copies");
  refused({"--pp", "2", "--tied", "true", "--post_validation", "true"},
          "post_validation = true lets stages step that others wait for, so not with tied = true");
  refused({"--pp", "2", "--post_validation", "true", "--gradients", w / "gradients"},
          "are gone when a step is known to be right, so not with post_validation = true");
  refused({"--pp", "2", "--dw_detach", "false"},
          "is of dualpipe and dualpipev, not with pipeline = \"1f1b\"");
  refused({"--pp", "2", "--nanopipe_swap", "true"}, "is of nanopipe, not with pipeline");
  refused({"--nanopipe_swap", "true"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--pp", "2", "--trace", w / "trace"}, "is of a whole model, not with pp = 2");
  refused({"--pp", "2", "--pipeline", "seq1f1b"},
          "sequence_splits = 1 must be 2 or more, with pipeline = \"seq1f1b\"");
  refused({"--pp", "2", "--sequence_splits", "2"}, "is of seq1f1b, not with pipeline = \"1f1b\"");
  refused({"--sequence_splits", "2"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--pp", "2", "--sequence_splits", "0"}, "must be from 1 to 1024, not 0");
  const auto refused_splits = [&](std::vector<std::string> more, const char* why) {
    more.insert(more.end(), {"--pp", "2", "--pipeline", "seq1f1b"});
    refused(more, why);
  };
  refused_splits({"--sequence", "32", "--sequence_splits", "33"},
                 "sequence_splits = 33 must not exceed sequence = 32");
  refused_splits({"--sequence_splits", "2", "--cp", "2"},
                 "cp_algorithm = \"ring\" sends keys and values between ranks that hold parts of "
                 "whole windows; all_gather and ulysses have splits of windows, and it must be one "
                 "of them, with pipeline = \"seq1f1b\"");
  refused_splits(
      {"--sequence_splits", "4", "--sequence", "9", "--cp", "3", "--cp_algorithm", "all_gather"},
      "sequence = 9 must be at least 12, a row of each split for each of the ranks that "
      "share it, with sequence_splits = 4");
  refused({"--pp", "2", "--in_advance", "true"}, "is of ripipe, not with pipeline");
  refused({"--pp", "2", "--pipeline", "2f2b"}, "must be one of those that --help lists");
  refused({"--pipeline", "zvb"}, "must be one of those that --help lists; did you mean zbv?");
  refused({"--pp", "2", "--pipeline", "1F1B"}, "did you mean 1f1b?");
  refused({"--pp", "2", "--pipeline", "zbv"}, "layers = 2 must be at least 4, the stages of");
  refused({"--pp", "2", "--pipeline", "dualpipev", "--layers", "4"}, "accumulation = 1 must be");
  refused({"--pp", "2", "--vpp", "3"}, "vpp = 3 must be");
  refused({"--pp", "2", "--layers", "6", "--kv_share", "2"},
          "kv_share = 2 leaves layer 4, with which stage 1 begins, without keys and values of its "
          "own, with pp = 2");
  refused({"--pp", "2", "--pipeline", "dualpipe", "--layers", "4", "--accumulation", "4",
           "--post_validation", "true", "--zero", "true"},
          "not with zero = true");
  refused({"--pp", "2", "--post_validation", "true", "--swap_optimizer", "host"},
          "not with swap_optimizer");
  refused({"--post_validation", "true"}, "is of a model that is cut into stages, not with pp = 1");
  const std::vector<std::pair<const char*, const char*>> lists = {
      {"0,,2", "must be a list of places"},
      {"two", "must be a list of places"},
      {"4", "must be places from 0 to 2, of layers and empty places together, with layers = 2"},
      {"0,1", "leaves stage 0 without a layer"}};
  for (const auto& [list, why] : lists) refused({"--pp", "2", "--noop_layers", list}, why);
  const std::vector<std::pair<const char*, const char*>> counts = {
      {"1", "must have 2 counts, one a stage, not 1, with pp = 2"},
      {"1,0,1", "must have 2 counts, one a stage, not 3, with pp = 2"},
      {"1,2", "must have a sum of 2, not 3, with layers = 2"},
      {"3,-1", "must be a list of counts from 0, like 0,1,1,3 or, by rank, [[0,1]"},
      {"two", "must be a list of counts from 0"},
      {"[[1],[1],[0]]", "must have 2 lists, one a rank, not 3, with pp = 2"},
      {"[[1],[1,0]]", "must have 1 count, one a stage, of rank 1, not 2, with pp = 2"}};
  for (const auto& [list, why] : counts) refused({"--pp", "2", "--stage_layers", list}, why);
  refused({"--pp", "2", "--stage_layers", "1,1", "--noop_layers", "0"},
          "must have a sum of 3, of layers and the places of noop_layers, not 2, with layers = 2");
  refused({"--stage_layers", "2"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--noop_layers", "0"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--vpp", "2"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--pipeline", "zbv"}, "is of a model that is cut into stages, not with pp = 1");
  refused({"--timeline", w / "t"}, "is of a model that is cut into stages, not with pp = 1");
}

TEST_CASE("an interrupt of ranks with a stage each saves once") {
  workplace w;
  child running(tiny(
      w.path, {"--steps", "400000", "--pp", "2", "--accumulation", "2", "--transport", "shm"}));
  running.wait_for("3/400000  ");
  running.send(SIGINT);
  const outcome stopped = ended(130, running.finish());
  CHECK(stopped.text.find("saved ") == stopped.text.rfind("saved "));
}

TEST_CASE("layers to recompute count for each stage, or for all stages of a rank") {
  workplace w;
  const std::vector<std::string> both = {"--layers",
                                         "8",
                                         "--accumulation",
                                         "4",
                                         "--pp",
                                         "2",
                                         "--pipeline",
                                         "interleaved",
                                         "--vpp",
                                         "2",
                                         "--recompute",
                                         "mlp",
                                         "--transport",
                                         "local",
                                         "--recompute_layers",
                                         "3",
                                         "--memory_budget",
                                         "100000000"};
  for (const auto& [per_rank, blocks] : {std::pair("false", "8"), {"true", "6"}}) {
    const outcome done = ended(0, w.run({"--recompute_layers_per_rank", per_rank}, both));
    CHECK_THAT(done.text, Contains(std::string("feed-forward blocks in ") + blocks));
  }
}
