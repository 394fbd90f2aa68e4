// The program with masters as residuals, and with moments and gradients in bf16: its memory, ranks,
// checkpoints and refusals.
#include <catch2/catch.hpp>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> reused = {"--reuse_fp32_param", "true"},
                               narrow = {"--o2_optimizer", "true", "--o2_gradient", "true"};

std::vector<std::string> both(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("masters as residuals keep the bits of the program however it is cut over ranks") {
  const std::vector<std::string> cuts[] = {
      {},
      {"--ranks", "2", "--transport", "local", "--zero", "true"},
      {"--pp", "2", "--accumulation", "4", "--transport", "local", "--post_validation", "true"}};
  for (const auto& cut : cuts) {
    INFO((cut.empty() ? "one rank" : cut[0]));
    const workplace w;
    ended(0, w.run(cut, {"--log", w / "log1", "--out", w / "usual"}));
    ended(0, w.run(both(cut, reused), {"--log", w / "log2"}));
    CHECK(w.losses("log1") == w.losses("log2"));
    check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
  }
}

TEST_CASE("a run goes on with masters as residuals, and without, from the checkpoints of either") {
  const workplace w;
  ended(0, w.run({"--out", w / "usual"}));
  for (const char* first : {"true", "false"}) {
    INFO("reuse_fp32_param at first: " << first);
    const std::string then = *first == 't' ? "false" : "true";
    ended(0, w.run({"--reuse_fp32_param", first, "--stop_after", "2", "--out", w / first}));
    ended(0, run_program({"--resume", w / first, "--reuse_fp32_param", then, "--stop_after", "0"}));
    check_same_state(w / "usual/checkpoint/", w / std::string(first) + "/checkpoint/");
  }
}

TEST_CASE("a run with bf16 moments and gradients resumes with the bits of one that never stopped") {
  const workplace w;
  const outcome whole = ended(0, w.run(both(narrow, reused), {"--out", w / "whole"}));
  CHECK_THAT(whole.text, Contains("\nmemory ") && Contains("optimizer "));
  ended(0, w.run(both(narrow, reused), {"--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--stop_after", "0"}));
  check_same_state(w / "whole/checkpoint/", w / "out/checkpoint/");
}

TEST_CASE("narrow state that does not fit the other settings is refused by name") {
  const workplace w;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    CHECK_THAT(ended(1, w.run(words)).text, Contains("pretrain: ") && Contains(why));
    CHECK_FALSE(std::filesystem::exists(w / "out"));
  };
  for (const std::string name : {"reuse_fp32_param", "o2_optimizer", "o2_gradient"})
    refused({"--" + name, "true", "--dtype", "f32"},
            name + " = true is of a bf16 model, not with dtype = \"f32\"");
  for (const std::string name : {"reuse_fp32_param", "o2_optimizer"})
    refused({"--" + name, "true", "--swap_optimizer", "host"},
            name +
                " = true keeps state in 16 bits, and only that of f32 is swapped, so not with "
                "swap_optimizer");
  refused({"--o2_gradient", "true", "--trace", w / "trace"}, "so not with o2_gradient");
}
