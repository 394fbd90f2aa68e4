// The program from end to end: it trains, stops, goes on, samples; and its bits depend on nothing
// but its settings.
#include <catch2/catch.hpp>

#include "examples/decoder/files/safetensors.hpp"
#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

TEST_CASE("a short run learns, reports, saves and samples") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    const outcome done = ended(0, w.run({"--dtype", dtype, "--steps", "30", "--log", w / "log"}));
    CHECK_THAT(done.text,
               Contains("\n 30/30  ") && Contains("validation:") && Contains("zlib -9:"));
    CHECK_THAT(done.text, Contains("the model writes:"));
    CHECK_THAT(get(w / "out/loss.svg"), Contains("validation"));
    std::istringstream lines(w.losses("log"));
    std::vector<double> loss;
    for (double step, nats, norm; lines >> step >> nats >> norm;) loss.push_back(nats);
    REQUIRE(loss.size() == 30);
    CHECK(loss.front() == Approx(std::log(260)).margin(0.4));
    CHECK(loss.back() < 0.8 * loss.front());

    const outcome sampled = run_program(
        {"--generate", "the word", "--load", w / "out/checkpoint", "--sample_bytes", "9"});
    CHECK(sampled.code == 0);
    CHECK_THAT(sampled.text, Catch::Matchers::StartsWith("the word"));
    CHECK(sampled.text.size() >= 8 + 9 + 1);
  }
}

TEST_CASE("a run may end with the time of its operators, with and without limits") {
  workplace w;
  const outcome done = ended(0, w.run({"--operators", "true"}));
  CHECK_THAT(done.text, Contains("\noperator  ") && Contains("\nmatmul  ") && Contains("\nall  "));
  CHECK_THAT(done.text, Contains("100.0 %"));
  const outcome plain = ended(0, w.run({"--operators", "true", "--measure", "false"}));
  CHECK_THAT(plain.text, Contains("\nrms_norm  "));
  CHECK_THAT(ended(0, w.run({})).text, !Contains("\noperator  "));
}

TEST_CASE("losses have the same bits with one, two and three threads") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    for (const char* threads : {"1", "2", "3"}) {
      ended(0, w.run({"--dtype", dtype, "--threads", threads, "--log", w / threads}));
    }
    CHECK_THAT(w.losses("1"), Contains("\n6 "));
    CHECK(w.losses("1") == w.losses("2"));
    CHECK(w.losses("1") == w.losses("3"));
  }
}

TEST_CASE("every level and instruction set trains alike, up to rounding") {
  workplace w;
  const auto losses_with = [&](const char* key, const char* value) {
    ended(0, w.run({"--dtype", "f32", "--log", w / value}, [&] { ::setenv(key, value, 1); }));
    std::istringstream lines(w.losses(value));
    std::vector<double> losses;
    for (double step, nats, norm; lines >> step >> nats >> norm;) losses.push_back(nats);
    return losses;
  };
  const std::vector<double> usual = losses_with("VELO_LEVEL", "2");
  REQUIRE(usual.size() == 6);
  for (const auto& [key, value] :
       {std::pair("VELO_LEVEL", "0"), std::pair("VELO_LEVEL", "1"), std::pair("VELO_ISA", "scalar"),
        std::pair("VELO_ISA", "avx2")}) {
    const std::vector<double> other = losses_with(key, value);
    REQUIRE(other.size() == usual.size());
    for (std::size_t i = 0; i < usual.size(); ++i)
      CHECK(other[i] == Approx(usual[i]).epsilon(1e-5));
  }
}

TEST_CASE("a resumed run has the bits of one that never stopped") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    const std::vector<std::string> same = {"--dtype", dtype,    "--accumulation",
                                           "2",       "--tied", "true"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), same.begin(), same.end());
      return more;
    };
    REQUIRE(w.run(with({"--log", w / "whole", "--out", w / "whole-out"})).code == 0);
    REQUIRE(w.run(with({"--log", w / "parts", "--stop_after", "3"})).code == 0);
    ended(0, run_program({"--resume", w / "out/checkpoint"}));
    CHECK(w.losses("whole") == w.losses("parts"));
    check_same_state(w / "whole-out/checkpoint/", w / "out/checkpoint/");
  }
}

TEST_CASE("an interrupt saves, exits with 130, and the run can go on") {
  workplace w;
  REQUIRE(
      w.run({"--steps", "4000", "--stop_after", "9", "--log", w / "whole", "--out", w / "other"})
          .code == 0);
  child running(tiny(w.path, {"--steps", "4000", "--log", w / "parts"}));
  running.wait_for("   3/4000  ");
  running.send(SIGINT);
  const outcome stopped = ended(130, running.finish());
  CHECK_THAT(stopped.text, Contains("saved " + (w / "out/checkpoint") + " after step") &&
                               Contains("interrupted; go on with --resume " + (w / "out")));
  std::istringstream lines(w.losses("parts"));
  const std::string before = lines.str();
  const auto steps = std::count(before.begin(), before.end(), '\n');
  ended(0, run_program({"--resume", w / "out/checkpoint", "--stop_after",
                        std::to_string(std::max<long>(9, steps + 1))}));
  CHECK(w.losses("parts").substr(0, w.losses("whole").size()) == w.losses("whole"));
}

TEST_CASE("the SIGTERM of a batch scheduler saves like an interrupt, and exits with 143") {
  workplace w;
  child running(tiny(w.path, {"--steps", "4000"}));
  running.wait_for("   3/4000  ");
  running.send(SIGTERM);
  const outcome stopped = ended(143, running.finish());
  CHECK_THAT(stopped.text, Contains("interrupted; go on with --resume " + (w / "out")));
}

TEST_CASE("an interrupt counts from the start on, also in a job whose shell ignores it") {
  workplace w;
  child running(tiny(w.path, {"--steps", "400000"}), [] { std::signal(SIGINT, SIG_IGN); });
  running.wait_for("model ");
  running.send(SIGINT);
  const outcome stopped = ended(130, running.finish());
  CHECK_THAT(stopped.text, Contains("interrupted"));
}

TEST_CASE("checkpoints can be saved on the way and validation measured and logged") {
  workplace w;
  const outcome done = w.run({"--save_every", "2", "--validate_every", "3", "--log", w / "log"});
  REQUIRE(done.code == 0);
  CHECK(count_of("saved ", done.text) == 3);
  CHECK(count_of("validation: ", done.text) == 2);
  CHECK(count_of("val_bits_per_byte", get(w / "log")) == 2);
  CHECK(count_of(R"({"step": 3, "val_bits_per_byte": )", get(w / "log")) == 1);
  CHECK(count_of("<circle", get(w / "out/loss.svg")) == 2);
}

TEST_CASE("a run stopped between validations, and in one, ends with the log of one that was not") {
  workplace w;
  put(w / "text", some_text(3 << 20));  // validations of a second or more: time to interrupt one
  const std::vector<std::string> words = {
      "--steps", "5", "--validate_every", "2", "--validation_bytes", "100000000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return tiny(w.path, more);
  };
  REQUIRE(run_program(with({"--log", w / "whole", "--out", w / "whole-out"})).code == 0);
  CHECK_THAT(w.losses("whole"), Contains("2 ") && Contains("4 "));

  child first(with({"--log", w / "parts"}));
  first.wait_for("2/5  ");
  first.send(SIGINT);  // in the validation after step 2
  const outcome stopped = ended(130, first.finish());
  CHECK_THAT(stopped.text, !Contains("validation:"));
  CHECK_THAT(stopped.text, Contains("after step 2\ninterrupted; go on with --resume"));

  REQUIRE(run_program({"--resume", w / "out", "--stop_after", "3"}).code == 0);
  child last({"--resume", w / "out"});
  last.wait_for("after step 5");
  last.send(SIGINT);  // in the validation after the last step
  const outcome late = ended(130, last.finish());
  CHECK_THAT(late.text, Contains("validation: ") && !Contains("zlib"));

  const outcome whole = run_program({"--resume", w / "out"});
  INFO(whole.text);
  CHECK_THAT(whole.text, Contains("step 5 of 5 already; --steps asks for more"));
  CHECK(whole.code == 0);
  CHECK(w.losses("parts") == w.losses("whole"));
  CHECK(get(w / "out/loss.svg") == get(w / "whole-out/loss.svg"));

  child killed(with({"--log", w / "killed", "--out", w / "killed-out", "--save_every", "2"}));
  killed.wait_for("4/5  ");
  ::kill(killed.id(), SIGKILL);  // in the validation after step 4, two steps after the last save
  CHECK(killed.finish().code == 128 + SIGKILL);
  CHECK_THAT(w.losses("killed"), Contains("\n4 "));
  REQUIRE(run_program({"--resume", w / "killed-out"}).code == 0);
  CHECK(w.losses("killed") == w.losses("whole"));
  CHECK(get(w / "killed-out/loss.svg") == get(w / "whole-out/loss.svg"));
}

TEST_CASE("an interrupt of a run without a step left points to its checkpoint and saves nothing") {
  workplace w;
  put(w / "text", some_text(3 << 20));  // a validation of a second or more
  ended(0, w.run({"--validation_bytes", "100000000"}));
  const std::string trained = get(w / "out/checkpoint/trainer.json");
  for (const char* ranks : {"1", "2"}) {
    INFO(ranks << " ranks");
    child again({"--resume", w / "out", "--ranks", ranks, "--transport", "shm"});
    again.wait_for("already; --steps asks for more");
    again.send(SIGINT);
    const outcome stopped = ended(130, again.finish());
    CHECK_THAT(stopped.text, Contains("interrupted; go on with --resume " + (w / "out")) &&
                                 !Contains("nothing to save") && !Contains("saved ") &&
                                 !Contains(" was ended by") && !Contains("zlib"));
    CHECK(get(w / "out/checkpoint/trainer.json") == trained);
  }
  ended(0, run_program({"--resume", w / "out"}));
}

TEST_CASE("a folder that was moved is resumed where it is") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "3"}).code == 0);
  std::filesystem::rename(w / "out", w / "moved");
  REQUIRE(run_program({"--resume", w / "moved"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(w / "out"));
  CHECK(std::filesystem::exists(w / "moved/loss.svg"));
  CHECK_FALSE(std::filesystem::exists(w / "moved/checkpoint.1"));
}

TEST_CASE("a run that has no step left saves nothing over its checkpoint") {
  workplace w;
  ended(0, w.run({}));
  const std::string trained = get(w / "out/checkpoint/trainer.json");
  for (const char* ranks : {"1", "2"}) {
    const outcome again = ended(0, run_program({"--resume", w / "out", "--learning_rate", "0.5",
                                                "--ranks", ranks, "--transport", "local"}));
    CHECK_THAT(again.text, Contains("already; --steps asks for more") && !Contains("saved") &&
                               Contains("the model writes"));
    CHECK(get(w / "out/checkpoint/trainer.json") == trained);
  }
  CHECK_FALSE(std::filesystem::exists(w / "out/checkpoint.1"));
  // In another folder there is no checkpoint yet.
  ended(0, run_program({"--resume", w / "out", "--out", w / "other"}));
  CHECK(std::filesystem::exists(w / "other/checkpoint/model.safetensors"));
}

TEST_CASE("an earlier run's checkpoint is kept, with a word about it") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "3"}).code == 0);
  const std::string earlier = get(w / "out/checkpoint/model.safetensors");
  for (const char* name : {"checkpoint.1", "checkpoint.2"}) {
    const outcome again = ended(0, w.run({"--save_every", "1", "--seed", name + 11}));
    CHECK_THAT(again.text, Contains(std::string("kept an earlier run's checkpoint as ") +
                                    (w / "out/") + name + "\n"));
  }
  CHECK(get(w / "out/checkpoint.1/model.safetensors") == earlier);
  CHECK_FALSE(std::filesystem::exists(w / "out/checkpoint.3"));
  REQUIRE(run_program({"--resume", w / "out/checkpoint.1"}).code == 0);  // out has another one
  CHECK(std::filesystem::exists(w / "out/checkpoint.3"));
}

TEST_CASE("a new run can start from the weights of another") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    REQUIRE(w.run({"--dtype", dtype, "--steps", "30"}).code == 0);
    put(w / "other", some_text(60000, 7));
    const outcome tuned =
        ended(0, run_program({"--load", w / "out", "--out", w / "tuned", "--paths", w / "other",
                              "--sequence", "32", "--batch", "4", "--steps", "1", "--learning_rate",
                              "0", "--sample_bytes", "0"}));
    CHECK_THAT(tuned.text, Contains("\n   1/1  "));
    // Without a learning rate weights and masters stay as they were: bit for bit.
    const char* weights = "/checkpoint/model.safetensors";
    CHECK(get(w / "tuned" + weights) == get(w / "out" + weights));
    const auto masters = [&](const char* out) {
      const std::string state = get(w / out + "/checkpoint/training_state.safetensors");
      decoder::safetensors_reader reader(w / out + "/checkpoint/training_state.safetensors");
      const auto found = reader.entries().find("master.lm_head.weight");
      return found == reader.entries().end()
                 ? ""
                 : state.substr(found->second.begin, found->second.end - found->second.begin);
    };
    CHECK(masters("tuned") == masters("out"));
    const outcome other = run_program({"--load", w / "out", "--layers", "3"});
    CHECK(other.code == 1);
    CHECK_THAT(other.text, Contains("--layers: layers = 3, but the checkpoint has 2"));
  }
}

TEST_CASE("a model whose layers share keys is saved without theirs, and goes on as that model") {
  workplace w;
  ended(0, w.run({"--kv_share", "2", "--stop_after", "3"}));
  const decoder::safetensors_reader saved(w / "out/checkpoint/model.safetensors");
  const auto has = [&](const char* name) { return saved.entries().count(name) == 1; };
  CHECK(has("model.layers.0.self_attn.k_proj.weight"));
  CHECK(has("model.layers.1.self_attn.q_proj.weight"));
  CHECK_FALSE(has("model.layers.1.self_attn.k_proj.weight"));
  CHECK_FALSE(has("model.layers.1.self_attn.v_proj.weight"));
  CHECK_THAT(get(w / "out/checkpoint/config.json"),
             Contains("\"cla_share_factor\": 2") && Contains("\"model_type\": \"llama_cla\""));
  for (const char* how : {"--resume", "--load"}) {
    const outcome other = ended(1, run_program({how, w / "out", "--kv_share", "0"}));
    CHECK_THAT(other.text, Contains("--kv_share: kv_share = 0, but the checkpoint has 2"));
  }
  const outcome whole = ended(0, w.run({"--kv_share", "2", "--out", w / "whole"}));
  ended(0, run_program({"--resume", w / "out", "--tp", "2", "--transport", "local"}));
  ended(0, run_program({"--generate", "The ", "--load", w / "whole"}));
  ended(1, run_program({"--kv_share", "1"}));
}

TEST_CASE("a trace holds what another framework needs to repeat the run") {
  workplace w;
  REQUIRE(w.run({"--trace", w / "trace", "--accumulation", "2", "--dtype", "f32"}).code == 0);
  CHECK(std::filesystem::file_size(w / "trace/symbols.i32") ==
        6 * 2 * 2 * 4 * 32 * sizeof(std::int32_t));
  CHECK(std::filesystem::file_size(w / "trace/weights.safetensors") ==
        std::filesystem::file_size(w / "trace/gradients.safetensors"));
  CHECK(get(w / "trace/weights.safetensors") != get(w / "trace/gradients.safetensors"));
}
