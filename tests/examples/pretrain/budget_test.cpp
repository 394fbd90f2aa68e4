// A budget of memory: refused where it is too small, and kept where it is not.
#include <catch2/catch.hpp>

#include "program.hpp"
#include "temporary.hpp"

using Catch::Matchers::Contains;

namespace {

struct workplace : temporary {
  workplace() { put(path + "/text", some_text(60000)); }
};

// The number behind `words` in a text.
std::int64_t number_after(const std::string& text, const std::string& words) {
  INFO(text);
  const std::size_t at = text.find(words);
  REQUIRE(at != std::string::npos);
  return std::atoll(&text[at + words.size()]);
}

const std::vector<std::string> deep = {"--layers", "6", "--batch", "16"};

outcome run(const workplace& w, std::vector<std::string> more) {
  more.insert(more.begin(), deep.begin(), deep.end());
  return run_program(tiny(w.path, more));
}

}  // namespace

TEST_CASE("a budget that is too small is refused with the least that works, and nothing is made") {
  workplace w;
  for (const char* budget : {"1", "1000", "2000000"}) {
    const outcome done = run(w, {"--memory_budget", budget});
    INFO(done.text);
    CHECK(done.code == 1);
    CHECK_THAT(done.text, Catch::StartsWith("pretrain: --memory_budget: memory_budget = " +
                                            std::string(budget) + " must be at least "));
    CHECK(std::count(done.text.begin(), done.text.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(w / "out"));
  }
}

TEST_CASE("a run keeps to the least that works, with the bits of one without a budget") {
  workplace w;
  REQUIRE(run(w, {"--out", w / "usual"}).code == 0);
  const std::string refusal = run(w, {"--memory_budget", "1"}).text;
  const std::int64_t usual = number_after(refusal, "must be at least ");
  const std::int64_t full = number_after(refusal, ", or ");
  CHECK(full < usual);
  for (const auto& [budget, kind] : {std::pair(usual, "none"), {full, "full"}}) {
    const std::string bytes = std::to_string(budget);
    const outcome done = run(w, {"--memory_budget", bytes, "--recompute", kind});
    INFO(done.text);
    REQUIRE(done.code == 0);
    CHECK_THAT(done.text, Contains("memory ") && Contains(" promised"));
    for (const char* file : {"model.safetensors", "training_state.safetensors"})
      CHECK(get(w / "usual/checkpoint/" + file) == get(w / "out/checkpoint/" + file));
    CHECK(run(w, {"--memory_budget", std::to_string(budget - 1), "--recompute", kind}).code == 1);
  }
}
