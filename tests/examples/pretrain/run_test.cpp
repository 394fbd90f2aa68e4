// The program from end to end: it trains, stops, goes on, samples; and its bits depend on nothing
// but its settings.
#include <jansson.h>

#include <catch2/catch.hpp>

#include "program.hpp"
#include "temporary.hpp"

using Catch::Matchers::Contains;

namespace {

struct workplace : temporary {
  workplace() { put(path + "/text", some_text(60000)); }

  outcome run(std::vector<std::string> more) const {
    return run_program(tiny(path, std::move(more)));
  }

  // "step loss grad_norm" of every line of a log; the rest of a line is time.
  std::string losses(const std::string& log) const {
    std::istringstream lines(get(*this / log));
    std::string line, result;
    while (std::getline(lines, line)) {
      json_t* root = json_loads(line.c_str(), 0, nullptr);
      for (const char* key : {"step", "loss", "grad_norm", "val_bits_per_byte"}) {
        char buffer[64];
        if (const json_t* value = json_object_get(root, key)) {
          std::snprintf(buffer, sizeof buffer, "%.17g ", json_number_value(value));
          result += buffer;
        }
      }
      json_decref(root);
      result += '\n';
    }
    return result;
  }
};

}  // namespace

TEST_CASE("a short run learns, reports, saves and samples") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    const outcome done = w.run({"--dtype", dtype, "--steps", "30", "--log", w / "log"});
    INFO(done.text);
    REQUIRE(done.code == 0);
    CHECK_THAT(done.text,
               Contains("step   30/30") && Contains("validation:") && Contains("zlib -9:"));
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

TEST_CASE("losses have the same bits with one, two and three threads") {
  for (const char* dtype : {"bf16", "f32"}) {
    workplace w;
    for (const char* threads : {"1", "2", "3"}) {
      const outcome done = w.run({"--dtype", dtype, "--threads", threads, "--log", w / threads});
      INFO(done.text);
      REQUIRE(done.code == 0);
    }
    CHECK_THAT(w.losses("1"), Contains("\n6 "));
    CHECK(w.losses("1") == w.losses("2"));
    CHECK(w.losses("1") == w.losses("3"));
  }
}

TEST_CASE("every level and instruction set trains alike, up to rounding") {
  workplace w;
  const auto losses_with = [&](const char* key, const char* value) {
    const outcome done = run_program(tiny(w.path, {"--dtype", "f32", "--log", w / value}),
                                     [&] { ::setenv(key, value, 1); });
    INFO(done.text);
    REQUIRE(done.code == 0);
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
    const outcome resumed = run_program({"--resume", w / "out/checkpoint"});
    INFO(resumed.text);
    REQUIRE(resumed.code == 0);
    CHECK(w.losses("whole") == w.losses("parts"));
    for (const char* file : {"model.safetensors", "training_state.safetensors"}) {
      CHECK(get(w / "whole-out/checkpoint/" + file) == get(w / "out/checkpoint/" + file));
    }
  }
}

TEST_CASE("an interrupt saves, exits with 130, and the run can go on") {
  workplace w;
  REQUIRE(
      w.run({"--steps", "4000", "--stop_after", "9", "--log", w / "whole", "--out", w / "other"})
          .code == 0);
  child running(tiny(w.path, {"--steps", "4000", "--log", w / "parts"}));
  running.wait_for("step    3/4000");
  running.interrupt();
  const outcome stopped = running.finish();
  INFO(stopped.text);
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.text, Contains("interrupted after step") && Contains("--resume"));
  std::istringstream lines(w.losses("parts"));
  const std::string before = lines.str();
  const auto steps = std::count(before.begin(), before.end(), '\n');
  const outcome resumed = run_program({"--resume", w / "out/checkpoint", "--stop_after",
                                       std::to_string(std::max<long>(9, steps + 1))});
  INFO(resumed.text);
  REQUIRE(resumed.code == 0);
  CHECK(w.losses("parts").substr(0, w.losses("whole").size()) == w.losses("whole"));
}

TEST_CASE("checkpoints can be saved on the way and validation measured") {
  workplace w;
  const outcome done = w.run({"--save_every", "2", "--validate_every", "3"});
  REQUIRE(done.code == 0);
  std::size_t saves = 0, validations = 0;
  for (std::size_t at = 0; (at = done.text.find("saved ", at)) != std::string::npos; ++at) ++saves;
  for (std::size_t at = 0; (at = done.text.find("validation: ", at)) != std::string::npos; ++at)
    ++validations;
  CHECK(saves == 3);
  CHECK(validations == 2);
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
