// A machine with little memory, and with too little for what is asked. Not under sanitizers, whose
// own memory is beyond any limit.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "tests/examples/pretrain/workplace.hpp"

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
    workplace w;
    const char* measure = gib == 2 ? "true" : "false";  // takes more addresses than the model
    INFO(gib << " GiB: ");
    ended(0, w.run({"--threads", "2", "--measure", measure}, addresses(gib)));
  }
}

TEST_CASE("settings that ask for more memory than there is are refused in these words") {
  workplace w;
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--batch", "1000000"},
                                               {"--hidden", "65536", "--inner", "65536"}}) {
    const outcome done = ended(1, w.run(more, addresses(4)));
    CHECK_THAT(done.text, Contains("pretrain: not enough memory for these settings"));
  }
}
