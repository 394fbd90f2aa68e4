// The program with a model that ranks share by tensors and by rows of windows: what it prints,
// writes and refuses. tests/examples/decoder/parallel has the numbers.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> shared = {"--tp", "2", "--cp", "2", "--sequence_parallel", "true"};

}  // namespace

TEST_CASE("a model that ranks share has the same bits on threads and processes") {
  workplace w;
  for (const char* transport : {"local", "shm"}) {
    const outcome done =
        ended(0, w.run(shared, {"--transport", transport, "--log", w / transport, "--gradients",
                                w / transport + ".st", "--out", w / transport + ".out"}));
    CHECK_THAT(done.text, Contains("ranks  4, 1 copy of the model") &&
                              Contains("matrices cut over 2 ranks, and the rows between them") &&
                              Contains("windows cut over 2 ranks: ring") &&
                              Contains("the model writes"));
  }
  CHECK(w.losses("local") == w.losses("shm"));
  check_same_state(w / "local.out/checkpoint/", w / "shm.out/checkpoint/");
  CHECK((get(w / "local.st") == get(w / "shm.st")));
  CHECK(get(w / "local.st").size() > 10000);
}

TEST_CASE("tensor ranks in two dimensions have the same bits on threads and processes") {
  workplace w;
  for (const char* transport : {"local", "shm"}) {
    const outcome done = ended(
        0,
        w.run({"--tp", "4", "--tp_x", "2", "--cp_algorithm", "all_gather"},
              {"--transport", transport, "--log", w / transport, "--out", w / transport + ".out"}));
    CHECK_THAT(done.text,
               Contains("matrices cut over 4 ranks, 2 by 2, and activations both ways") &&
                   Contains("attention over 2 ranks: all_gather"));
  }
  CHECK(w.losses("local") == w.losses("shm"));
  check_same_state(w / "local.out/checkpoint/", w / "shm.out/checkpoint/");
}

TEST_CASE("what ranks that share a model began any others go on with") {
  workplace w;
  const auto run = [&](std::vector<std::string> more) {
    return w.run(std::move(more), {"--dtype", "f32", "--heads", "4", "--kv_heads", "2", "--hidden",
                                   "32", "--transport", "local"});
  };
  ended(0, run({"--log", w / "whole", "--out", w / "whole.out"}));
  ended(0, run({"--log", w / "log", "--cp", "2", "--tp", "2", "--stop_after", "2"}));
  ended(0, run_program({"--resume", w / "out", "--tp", "1", "--cp", "4", "--cp_algorithm", "hybrid",
                        "--cp_ulysses", "2", "--stop_after", "3"}));
  ended(0, run_program({"--resume", w / "out", "--tp", "4", "--tp_x", "2", "--cp", "1",
                        "--stop_after", "4"}));
  ended(0, run_program({"--resume", w / "out", "--tp", "1", "--pp", "2"}));
  compare_logs(w.losses("whole"), w.losses("log"));
}

TEST_CASE("gradients are of the first step, which no resumed run has") {
  workplace w;
  ended(0, w.run({"--gradients", w / "g.st", "--stop_after", "2"}));
  std::filesystem::remove(w / "g.st");
  const outcome refused = ended(1, run_program({"--resume", w / "out", "--gradients", w / "g.st"}));
  CHECK_THAT(refused.text, Contains("are of the first step, which the checkpoint has done"));
  ended(0, run_program({"--resume", w / "out"}));
  CHECK(!std::filesystem::exists(w / "g.st"));
}

TEST_CASE("the table of operators has the time of those that wait for other ranks") {
  workplace w;
  const outcome done = ended(0, w.run({"--cp", "2", "--transport", "local", "--operators", "true",
                                       "--sequence", "1024", "--steps", "3"}));
  for (const std::string name :
       {"context_parallel_attention ", "context_parallel_attention_backward"}) {
    INFO(done.text);
    std::istringstream row(done.text.substr(done.text.find(name) + name.size()));
    double calls = 0, seconds = 0;
    row >> calls >> seconds;
    CHECK(calls == 6);
    CHECK(seconds > 0);
  }
}

TEST_CASE("what ranks cannot share is refused before they train") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const char* why) {
    const outcome done = ended(1, w.run(more));
    INFO(done.text);
    CHECK_THAT(done.text, Contains(why));
    CHECK(done.text.find("pretrain: ") == done.text.rfind("pretrain: "));
    CHECK_THAT(done.text, !Contains("loss"));
  };
  refused({"--tp", "3"}, "kv_heads = 2 must be at least, or a divisor of, tp = 3");
  refused({"--tp", "8"}, "heads = 4 with fewer kv_heads than ranks must be a multiple of tp = 8");
  refused({"--tp", "2", "--ranks", "3"}, "tp = 2 must divide the 3 ranks");
  refused({"--tp", "2", "--cp", "2", "--ranks", "6"},
          "tp = 2 makes copies of tp * cp * pp = 4 ranks, which must divide the 6 ranks");
  refused(
      {"--tp", "512", "--cp", "512", "--kv_heads", "1024", "--heads", "1024", "--hidden", "2048"},
      "makes a copy of more than 1024 ranks");
  refused({"--sequence_parallel", "true"}, "is of ranks that share matrices, not with tp = 1");
  refused({"--cp_window", "2"}, "is of ranks that share windows, not with cp = 1");
  refused({"--cp_algorithm", "ulysses"}, "is of ranks that share windows, not with cp = 1");
  refused({"--cp", "2", "--cp_algorithm", "uysses"}, "did you mean ulysses?");
  refused({"--cp", "4", "--cp_window", "3"}, "cp_window = 3 must be a divisor of cp = 4");
  refused({"--cp", "4", "--cp_window", "4"}, "cp_window = 4 must be less than cp = 4");
  refused({"--cp", "8", "--cp_algorithm", "hybrid", "--cp_ulysses", "2", "--cp_window", "3"},
          "cp_window = 3 must be a divisor of 4, which is cp / cp_ulysses, with cp_ulysses = 2");
  refused({"--cp", "8", "--cp_algorithm", "hybrid", "--cp_ulysses", "2", "--cp_window", "4"},
          "cp_window = 4 must be less than 4, which is cp / cp_ulysses, with cp_ulysses = 2");
  refused({"--cp", "4", "--cp_ulysses", "2"},
          "cp_ulysses = 2 is of hybrid and hybrid_adaptive, not with cp_algorithm = \"ring\"");
  refused({"--cp", "4", "--cp_algorithm", "hybrid", "--cp_ulysses", "3"},
          "cp_ulysses = 3 must be a divisor of cp = 4");
  refused({"--cp", "8", "--cp_algorithm", "ulysses"},
          "heads = 4 leaves 4 on a rank, which must be at least cp = 8");
  refused({"--cp", "8", "--cp_algorithm", "hybrid", "--cp_ulysses", "8"},
          "heads = 4 leaves 4 on a rank, which must be at least cp_ulysses = 8");
  refused({"--cp", "4", "--tp", "2", "--cp_algorithm", "ulysses"},
          "heads = 4 leaves 2 on a rank, which must be at least cp = 4");
  refused({"--cp", "2", "--cp_kv_cache", "some"}, "must be none, half or full");
  refused({"--cp", "2", "--cp_algorithm", "all_gather", "--cp_kv_cache", "full"},
          "cp_kv_cache = \"full\" is of ring, hybrid and ulysses, not with cp_algorithm");
  refused({"--cp_kv_gather", "true"}, "is of ranks that share windows, not with cp = 1");
  refused({"--cp", "2", "--cp_kv_gather", "true"},
          "cp_kv_gather = true is of ulysses, hybrid and hybrid_adaptive, not with cp_algorithm = "
          "\"ring\"");
  refused({"--cp", "2", "--cp_algorithm", "hybrid", "--cp_kv_gather", "true"},
          "cp_kv_gather = true is of neighbors that exchange heads, not with cp_ulysses = 1");
  refused({"--distribute_saved_activations", "true"}, "is of ranks that share matrices, not with");
  refused({"--distribute_saved_activations", "true", "--tp", "2"},
          "is of layers that are recomputed from their input, not with recompute = \"none\"");
  refused({"--distribute_saved_activations", "true", "--tp", "2", "--sequence_parallel", "true"},
          "is of rows that all ranks have, not with sequence_parallel");
  refused({"--recompute", "full", "--recompute_communication_level", "2"},
          "recompute_communication_level = 2 is of ranks that share matrices, not with tp = 1");
  refused({"--recompute", "full", "--recompute_communication_level", "3", "--tp", "2"},
          "recompute_communication_level must be from 1 to 2, not 3");
  refused({"--recompute_communication_level", "2", "--tp", "2", "--recompute", "norm"},
          "is of layers that are recomputed from their input, not with recompute = \"norm\"");
  refused({"--recompute_communication_level", "2", "--tp", "2", "--recompute", "uniform",
           "--recompute_layers", "2"},
          "is of layers that are recomputed one by one, not with recompute_layers = 2");
  refused({"--recompute_communication_level", "2", "--tp", "2", "--recompute", "full",
           "--distribute_saved_activations", "true"},
          "is of rows that are not gathered again, not with distribute_saved_activations = true");
  refused({"--cp", "2", "--cp_kv_interval", "1"}, "cp_kv_interval = 1 is of a cache, not with");
  refused({"--cp", "2", "--cp_kv_cache", "full", "--cp_kv_interval", "2"},
          "cp_kv_interval = 2 must be below layers = 2");
  refused({"--cp", "4", "--cp_algorithm", "ulysses", "--cp_window", "2"},
          "cp_window = 2 is of ring and hybrid");
  refused({"--cp", "64"}, "sequence = 32 must be at least cp = 64");
  refused({"--cp", "2", "--documents", "lines", "--memory_budget", "100000000"},
          "memory_budget = 100000000 is of ranks with as many rows in each step, not with cp and");
  refused({"--cp", "2", "--trace", w / "trace"}, "is of a whole model, not with cp = 2");
  refused({"--gradients", w / "g", "--o2_gradient", "true", "--dtype", "bf16"},
          "has f32 gradients, so not with o2_gradient");
}

TEST_CASE("the file of gradients replaces one before, and nothing else") {
  workplace w;
  for (const char* ranks : {"1", "2"})
    ended(0, w.run({"--gradients", w / "g.st", "--ranks", ranks, "--transport", "local"}));
  CHECK(get(w / "g.st").size() > 10000);
  std::filesystem::create_directories(w / "folder");
  std::filesystem::create_symlink(w / "g.st", w / "link");
  for (const std::string place : {"folder", "link", "missing/g.st", "out/checkpoint/g.st"}) {
    INFO(place);
    const outcome done = ended(1, w.run({"--gradients", w / place}));
    CHECK_THAT(done.text, Contains(place));
    CHECK_THAT(done.text, !Contains("loss"));
  }
  CHECK(std::filesystem::is_symlink(w / "link"));
  const std::string before = get(w / "text");
  CHECK_THAT(ended(1, w.run({"--gradients", w / "text"})).text, Contains("holds no tensors"));
  CHECK((get(w / "text") == before));
  CHECK_THAT(ended(1, w.run({"--gradients", w / "x", "--log", w / "x"})).text,
             Contains("must not be log"));
}
