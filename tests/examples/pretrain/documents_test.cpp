// The program on documents: what it prints, refuses and goes on with. tests/examples/decoder has
// the numbers.
#include <catch2/catch.hpp>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

TEST_CASE("a run on documents validates, samples, and goes on in another layout") {
  workplace w;
  const std::vector<std::string> of = {"--documents", "lines", "--dtype", "f32"};
  const outcome whole = ended(0, w.run(of, {"--log", w / "whole", "--out", w / "whole.out"}));
  CHECK_THAT(whole.text, Contains(" documents in ") && Contains("% of them padding") &&
                             Contains("validation: ") && Contains("the model writes"));
  ended(0,
        w.run(of, {"--log", w / "log", "--cp", "2", "--transport", "local", "--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--cp", "1", "--pp", "2", "--transport", "local"}));
  compare_logs(w.losses("whole"), w.losses("log"));
  ended(0, run_program({"--generate", "the ", "--load", w / "out"}));
}

TEST_CASE("files are documents, too, and validation has whole ones") {
  workplace w;
  for (std::size_t i = 0; i < 12; ++i)
    put(w / "files/" + std::to_string(i), some_text(200 + 10 * i, 5));
  const outcome done =
      ended(0, w.run({"--paths", w / "files", "--documents", "true", "--ranks", "2"}));
  CHECK_THAT(done.text, Contains("13 files") && Contains("12 documents in ") &&
                            Contains("1 to validate with"));
}

TEST_CASE("documents that are too few, or that a setting does not know, are refused") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const char* why) {
    const outcome done = ended(1, w.run(more));
    CHECK_THAT(done.text, Contains(why) && !Contains("loss"));
  };
  refused({"--documents", "true"}, "1 file is too few: validation takes every tenth document");
  refused({"--documents", "pages"}, "documents = \"pages\" must be false, true or lines");
  refused({"--documents", "lines", "--cp", "2", "--plan", "true"},
          "plan = true is of ranks with as many rows in each step");
  ended(0, w.run({"--stop_after", "1"}));
  const outcome other = ended(1, run_program({"--resume", w / "out", "--documents", "lines"}));
  CHECK_THAT(other.text, Contains("documents = \"lines\", but the checkpoint has \"false\""));
}
