// A machine with too little memory for what is asked. Not under sanitizers, whose own memory is
// beyond any limit.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "program.hpp"
#include "temporary.hpp"

using Catch::Matchers::Contains;

TEST_CASE("settings that ask for more memory than there is are refused in these words") {
  temporary t;
  put(t / "text", some_text(60000));
  const auto limit = [] {
    const rlimit few{4L << 30, 4L << 30};
    ::setrlimit(RLIMIT_AS, &few);
  };
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--batch", "1000000"},
                                               {"--hidden", "65536", "--inner", "65536"}}) {
    const outcome done = run_program(tiny(t.path, more), limit);
    INFO(done.text);
    CHECK(done.code == 1);
    CHECK_THAT(done.text, Contains("pretrain: not enough memory for these settings"));
  }
}
