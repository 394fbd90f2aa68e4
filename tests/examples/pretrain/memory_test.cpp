// A machine with little memory, and with too little for what is asked. Not under sanitizers, whose
// own memory is beyond any limit.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "tests/examples/decoder/temporary.hpp"
#include "tests/examples/pretrain/program.hpp"

using Catch::Matchers::Contains;

namespace {

std::function<void()> addresses(std::uint64_t gib) {
  return [gib] {
    const rlimit few{gib << 30, gib << 30};
    ::setrlimit(RLIMIT_AS, &few);
  };
}

}  // namespace

TEST_CASE("few addresses serve a small model, its threads and everything else") {
  for (const std::uint64_t gib : {2, 4, 16}) {
    temporary t;
    put(t / "text", some_text(60000));
    const char* measure = gib == 2 ? "true" : "false";  // takes more addresses than the model
    const outcome done =
        run_program(tiny(t.path, {"--threads", "2", "--measure", measure}), addresses(gib));
    INFO(gib << " GiB: " << done.text);
    CHECK(done.code == 0);
  }
}

TEST_CASE("settings that ask for more memory than there is are refused in these words") {
  temporary t;
  put(t / "text", some_text(60000));
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--batch", "1000000"},
                                               {"--hidden", "65536", "--inner", "65536"}}) {
    const outcome done = run_program(tiny(t.path, more), addresses(4));
    INFO(done.text);
    CHECK(done.code == 1);
    CHECK_THAT(done.text, Contains("pretrain: not enough memory for these settings"));
  }
}
