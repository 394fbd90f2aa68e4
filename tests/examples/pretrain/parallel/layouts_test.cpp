// The bits of a run do not depend on what its ranks are, nor on their threads: in each of eight
// layouts a run on threads has those of one on processes. VELO_PRETRAIN_LONG: both with either
// number of threads.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/examples/pretrain/workplace.hpp"

namespace {

struct layout {
  const char* name;
  std::vector<std::string> words;
};

const std::vector<layout> layouts = {
    {"tp 2, pp 2, cp 2", {"--tp", "2", "--pp", "2", "--cp", "2"}},
    {"matrices cut both ways, two stages", {"--tp", "4", "--tp_x", "2", "--pp", "2"}},
    {"hybrid",
     {"--cp", "4", "--cp_algorithm", "hybrid", "--cp_ulysses", "2", "--tp", "2",
      "--sequence_parallel", "true"}},
    {"documents", {"--documents", "lines", "--tp", "2", "--pp", "2", "--cp", "2"}},
    {"tied", {"--tied", "true", "--pp", "2", "--tp", "2", "--ranks", "8", "--zero", "true"}},
    {"uneven heads",
     {"--heads", "6", "--kv_heads", "3", "--hidden", "48", "--tp", "2", "--cp", "2",
      "--cp_algorithm", "ulysses", "--ranks", "8"}},
    {"dualpipev",
     {"--pipeline", "dualpipev", "--pp", "2", "--tp", "2", "--cp", "2", "--sequence_parallel",
      "true"}},
    {"zero", {"--zero", "true", "--ranks", "8", "--tp", "2", "--cp", "2", "--dtype", "f32"}}};

// What a run leaves that must be alike, in files of their own names.
void train(const workplace& w, const layout& as, const std::string& name, const char* transport,
           const char* threads) {
  std::vector<std::string> words = as.words;
  const std::vector<std::string> more = {"--layers",       "4",
                                         "--accumulation", "4",
                                         "--steps",        "2",
                                         "--warmup",       "0",
                                         "--transport",    transport,
                                         "--threads",      threads,
                                         "--log",          w / name,
                                         "--gradients",    w / name + ".st",
                                         "--out",          w / name + ".out"};
  words.insert(words.end(), more.begin(), more.end());
  ended(0, w.run(words));
}

void check_same_run(const workplace& w, const std::string& one, const std::string& other) {
  INFO(one << " and " << other);
  CHECK(w.losses(one).size() > 60);
  CHECK(w.losses(one) == w.losses(other));
  CHECK((get(w / one + ".st") == get(w / other + ".st")));
  check_same_state(w / one + ".out/checkpoint/", w / other + ".out/checkpoint/");
}

}  // namespace

TEST_CASE("each layout has the same bits on threads and processes, and with any threads of each") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  for (const layout& each : layouts) {
    INFO(each.name);
    const workplace w;
    train(w, each, "local", "local", "1");
    train(w, each, "shm", "shm", "2");
    check_same_run(w, "local", "shm");
    if (!is_long) continue;
    train(w, each, "local2", "local", "2");
    train(w, each, "shm1", "shm", "1");
    check_same_run(w, "local", "local2");
    check_same_run(w, "local", "shm1");
  }
}
