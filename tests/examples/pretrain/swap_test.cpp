// The program with swapped activations and optimizer state: budgets, files and refusals.
#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

TEST_CASE("states of less than a page are swapped, too") {
  workplace w;
  const std::vector<std::string> tiny = {
      "--hidden", "8", "--heads",     "1",     "--kv_heads",     "1", "--inner", "8",
      "--pp",     "2", "--transport", "local", "--accumulation", "2"};
  for (const char* where : {"host", "disk"}) {
    std::vector<std::string> words = tiny;
    words.insert(words.end(), {"--swap_optimizer", where, "--swap_dir", w.path});
    ended(0, w.run(words));
  }
}

TEST_CASE("a run that swaps to disk fits a budget it did not fit, and leaves no file") {
  workplace w;
  ::mkdir((w / "away").c_str(), 0700);
  const auto run = [&](std::vector<std::string> more) {
    for (const char* word : {"--layers", "8", "--hidden", "64", "--sequence", "128", "--batch",
                             "16", "--validation_bytes", "1000"})
      more.emplace_back(word);
    return w.run(more);
  };
  REQUIRE(run({"--out", w / "usual"}).code == 0);
  const std::vector<std::string> swapped = {
      "--swap_activations", "disk", "--swap_optimizer", "disk", "--swap_dir", w / "away"};
  const auto with = [&](const std::string& budget) {
    std::vector<std::string> words = swapped;
    words.insert(words.end(), {"--memory_budget", budget});
    return words;
  };
  const auto least = [](const std::string& text) {
    const char words[] = "must be at least ";
    const std::size_t at = text.find(words);
    REQUIRE(at != std::string::npos);
    return std::to_string(std::atoll(&text[at + sizeof words - 1]));
  };
  const std::string without = least(run({"--memory_budget", "1"}).text);
  const std::string budget = least(run(with("1")).text);
  CHECK(std::stoll(budget) < std::stoll(without) * 2 / 3);
  const outcome done = ended(0, run(with(budget)));
  CHECK_THAT(done.text, Contains("\nswap   activations: ") && Contains("\nswap   optimizer: ") &&
                            Contains("stalled ") &&
                            Contains(" to load and save and none in steps"));
  check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
  CHECK(std::filesystem::is_empty(w / "away"));
}

TEST_CASE(
    "a run whose optimizer's state outweighs its activations validates within the least budget") {
  workplace w;
  const auto run = [&](const std::string& budget) {
    return w.run({"--layers", "6", "--hidden", "128", "--sequence", "128", "--batch", "8",
                  "--validation_bytes", "2000", "--swap_activations", "host", "--swap_optimizer",
                  "host", "--memory_budget", budget});
  };
  const std::string refusal = run("1").text;
  INFO(refusal);
  const char words[] = "must be at least ";
  const std::size_t at = refusal.find(words);
  REQUIRE(at != std::string::npos);
  const outcome done = ended(0, run(std::to_string(std::atoll(&refusal[at + sizeof words - 1]))));
  CHECK_THAT(done.text, Contains("\nvalidation: "));
}

TEST_CASE("a place that cannot hold what is swapped is refused in a sentence") {
  workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    const outcome done = ended(1, w.run(more));
    CHECK_THAT(done.text, Contains("pretrain: ") && Contains(words));
    return done.text;
  };
  const auto nothing_made = [&] { CHECK_FALSE(std::filesystem::exists(w / "out")); };
  refused({"--swap_activations", "tape"}, R"(swap_activations = "tape" must be off, host or disk)");
  for (const char* list : {"", "mlp,mlp", "norm", "mlp,", "mlp, input_norm"})
    refused({"--swap_activations", "host", "--swap_modules", list},
            "must be some of input_norm, self_attention, post_attention_norm and mlp, each once");
  refused({"--swap_modules", "mlp"},
          R"(is of activations that wait elsewhere, not with swap_activations = "off")");
  refused({"--swap_optimizer", "disk"},
          R"(swap_optimizer = "disk" needs a directory; swap_dir = "")");
  nothing_made();
  for (const std::string& place : {w / "missing", w / "text", std::string("/proc")}) {
    refused({"--swap_activations", "disk", "--swap_dir", place},
            "--swap_dir: expected a directory");
    nothing_made();
  }
  const std::string disk = w / "disk";
  if (!mount_small_disk(disk)) return;
  for (const char* what : {"--swap_activations", "--swap_optimizer"})
    CHECK_THAT(refused({what, "disk", "--swap_dir", disk, "--layers", "8", "--batch", "64"},
                       "No space left on device"),
               Contains("--swap_dir: "));
  CHECK(std::filesystem::is_empty(disk));
  ::umount(disk.c_str());
}
