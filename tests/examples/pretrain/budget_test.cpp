// A budget of memory: refused where it is too small, and kept where it is not; and the trace of
// what is allocated.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <velo/plan.hpp>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> deep = {"--layers", "6", "--batch", "16"};

outcome run(
    const workplace& w, std::vector<std::string> more,
    const std::function<void()>& prepare = [] {}) {
  more.insert(more.begin(), deep.begin(), deep.end());
  return w.run(more, prepare);
}

}  // namespace

TEST_CASE("a budget that is too small is refused with the least that works, and nothing is made") {
  workplace w;
  for (const char* budget : {"1", "1000", "2000000"}) {
    const outcome done = ended(1, run(w, {"--memory_budget", budget}));
    CHECK_THAT(done.text, Catch::StartsWith("pretrain: --memory_budget: memory_budget = " +
                                            std::string(budget) + " must be at least "));
    CHECK(std::count(done.text.begin(), done.text.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(w / "out"));
  }
}

TEST_CASE("a budget of several ranks is refused once, with what the rank that needs most needs") {
  workplace w;
  for (const char* cut : {"--tp", "--cp", "--pp"})
    for (const char* transport : {"local", "shm"}) {
      INFO(cut << " 2, " << transport);
      const auto within = [&](const std::string& budget) {
        return run(w, {cut, "2", "--transport", transport, "--memory_budget", budget});
      };
      const outcome refused = ended(1, within("1"));
      CHECK_THAT(refused.text, Catch::StartsWith("pretrain: --memory_budget: memory_budget = 1 "));
      CHECK(std::count(refused.text.begin(), refused.text.end(), '\n') == 1);
      CHECK_FALSE(std::filesystem::exists(w / "out"));
      const std::int64_t least = number_after(refused.text, "must be at least ");
      ended(1, within(std::to_string(least - 1)));
      ended(0, within(std::to_string(least)));
      std::filesystem::remove_all(w / "out");
    }
}

TEST_CASE(
    "the least that works counts documents, a validation beside a plan, and every recompute") {
  workplace w;
  const std::vector<std::vector<std::string>> runs = {
      {"--documents", "lines"},
      {"--documents", "lines", "--recompute", "full"},
      {"--documents", "lines", "--pp", "2", "--accumulation", "2", "--recompute", "norm"},
      {"--documents", "lines", "--pp", "2", "--accumulation", "4", "--pipeline", "seq1f1b",
       "--sequence_splits", "3"},
      {"--documents", "lines", "--pp", "2", "--accumulation", "4", "--cp", "2", "--cp_algorithm",
       "all_gather", "--pipeline", "seq1f1b", "--sequence_splits", "3"},
      {"--plan", "true", "--validate_every", "2"},
      {"--plan", "true", "--pp", "2", "--accumulation", "4"},
      {"--tp", "2", "--tp_x", "2"}};
  for (std::vector<std::string> words : runs) {
    INFO(words.front() << " .. " << words.back());
    words.insert(words.end(), {"--transport", "local", "--sequence", "128", "--memory_budget"});
    const auto within = [&](std::int64_t budget, const char* recompute = nullptr) {
      std::vector<std::string> all = words;
      all.push_back(std::to_string(budget));
      if (recompute != nullptr) all.insert(all.end(), {"--recompute", recompute});
      return run(w, all);
    };
    const std::string refusal = ended(1, within(1)).text;
    ended(0, within(number_after(refusal, "must be at least ")));
    if (refusal.find(", or ") == std::string::npos) continue;
    const std::int64_t full = number_after(refusal, ", or ");
    CHECK(number_after(ended(1, within(1, "full")).text, "must be at least ") == full);
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
    const outcome done = ended(0, run(w, {"--memory_budget", bytes, "--recompute", kind}));
    // The run prints the peak that the refusal of a smaller budget named, word for word.
    const std::string refused =
        run(w, {"--memory_budget", std::to_string(budget - 1), "--recompute", kind}).text;
    const std::size_t begin = refused.find(" (");
    REQUIRE(begin != std::string::npos);
    const std::size_t middle = refused.find(": ", begin), end = refused.find(" and room", middle);
    const std::string most = refused.substr(begin + 2, middle - begin - 2);
    const std::string live = refused.substr(middle + 2, end - middle - 2);
    CHECK_THAT(done.text,
               Contains("memory " + live + " promised, " + most + " with room for holes"));
    check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
  }
}

TEST_CASE(
    "a trace has every allocation until the third step ends, and fits the peak that was printed") {
  workplace w;
  const outcome done = ended(0, run(w, {"--memory_trace", w / "trace.csv", "--dtype", "f32"}));
  const std::string text = get(w / "trace.csv");
  const velo::plan plan = velo::plan::create();
  plan.read(VELO_PLAN_RMM_LOG, text.data(), text.size());
  const velo_plan_stats found = plan.stats();
  CHECK(found.buffers > 3 * 6 * 20);  // of three steps of six layers
  double printed = 0;
  char prefix = 0;
  const std::size_t at = done.text.find("\nmemory ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(&done.text[at], "\nmemory %lf %cB at the peak", &printed, &prefix) == 2);
  REQUIRE(prefix == 'M');
  CHECK(static_cast<double>(found.lower_bound) == Approx(printed * 1e6).epsilon(0.02));
  CHECK(run(w, {"--memory_trace", w / "trace.csv", "--recompute", "full"}).code == 0);  // replaced
  CHECK(get(w / "trace.csv") != text);
}

TEST_CASE("a trace that cannot be written is refused, or ends alone and fails the run in the end") {
  workplace w;
  put(w / "mine", "precious");
  for (const auto& [place, words] :
       {std::pair(w / "mine", "exists and is not a trace of memory"),
        {w / "none/trace", "cannot write the trace: No such file or directory"},
        {w.path, "cannot write the trace: exists and is no regular file"},
        {std::string("/dev/full"), "cannot write the trace: exists and is no regular file"}}) {
    const outcome done = ended(1, run(w, {"--memory_trace", place}));
    CHECK_THAT(done.text, Catch::StartsWith("pretrain: ") && Contains(words));
    CHECK_FALSE(std::filesystem::exists(w / "out"));
  }
  CHECK(get(w / "mine") == "precious");
  ::mkdir((w / "out").c_str(), 0700);
  CHECK_THAT(run(w, {"--memory_trace", w / "out/loss.svg"}).text,
             Contains("--memory_trace: ") && Contains("is where the run keeps"));
  ::mkdir((w / "disk").c_str(), 0700);
  const outcome full = run(w, {"--memory_trace", w / "disk/trace"}, small_disk(w / "disk", true));
  if (full.code == 77) {
    WARN("not tested: a full disk: no right to mount");
    return;
  }
  CHECK(full.code == 1);
  const std::string why = w / "disk/trace: cannot write the trace: No space left on device; ";
  CHECK_THAT(full.text, Contains(why + "the run goes on") && Contains("\nthe model writes:\n") &&
                            Contains("\npretrain: " + why + "all else of the run is there\n"));
  CHECK(std::filesystem::exists(w / "out/checkpoint/model.safetensors"));
}

TEST_CASE("an adaptive run makes again as much as its budget needs, and no more") {
  workplace w;
  const auto adapted = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--sequence", "128", "--inner", "192"});
    return run(w, more);
  };
  REQUIRE(adapted({"--out", w / "usual"}).code == 0);
  const std::string refusal = adapted({"--memory_budget", "1"}).text;
  const std::int64_t usual = number_after(refusal, "must be at least ");
  const std::int64_t full = number_after(refusal, ", or ");
  std::int64_t earlier = 6;  // layers
  for (const std::int64_t budget : {full, (full + usual) / 2, usual}) {
    const outcome done =
        ended(0, adapted({"--recompute", "adaptive", "--memory_budget", std::to_string(budget)}));
    const std::int64_t again = number_after(done.text, "made again: ");
    CHECK(again <= earlier);
    CHECK((budget < usual || again == 0));
    earlier = again;
    check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
  }
  CHECK(number_after(adapted({"--recompute", "adaptive", "--memory_budget", "1"}).text,
                     "must be at least ") <= full);
}

TEST_CASE("each stage makes again as much as its own budget needs") {
  workplace w;
  const std::vector<std::vector<std::string>> pipelines = {
      {"--pipeline", "1f1b"},
      {"--pipeline", "zbv", "--swap_activations", "host"},
      {"--pipeline", "interleaved", "--vpp", "3"},
      {"--pipeline", "1f1b", "--tp", "2", "--cp", "2", "--plan", "true"},
      {"--pipeline", "seq1f1b", "--sequence_splits", "3", "--tied", "true"},
      {"--pipeline", "seq1f1b", "--sequence_splits", "3", "--cp", "2", "--cp_algorithm", "ulysses"},
      {"--pipeline", "dualpipe"}};
  for (const std::vector<std::string>& words : pipelines) {
    INFO(words[1] << ", " << words.back());
    const auto adapted = [&](std::vector<std::string> more) {
      more.insert(more.end(), words.begin(), words.end());
      more.insert(more.end(),
                  {"--pp", "2", "--accumulation", "4", "--batch", "4", "--sequence", "128",
                   "--inner", "192", "--transport", "local", "--steps", "2", "--warmup", "0"});
      return run(w, more);
    };
    ended(0, adapted({"--out", w / "usual"}));
    const std::string refusal = adapted({"--memory_budget", "1"}).text;
    const std::int64_t usual = number_after(refusal, "must be at least ");
    const std::int64_t full = number_after(refusal, ", or ");
    std::int64_t earlier = 12;  // layers, those of two directions once
    for (const std::int64_t budget : {full, (full + usual) / 2, usual}) {
      INFO(full << " of " << usual << ": " << budget);
      const outcome done =
          ended(0, adapted({"--recompute", "adaptive", "--memory_budget", std::to_string(budget)}));
      const std::int64_t again = number_after(done.text, "made again: ");
      CHECK(again <= earlier);
      CHECK((budget < usual || again == 0));
      const bool nothing =
          done.text.find("made again: 0 layer(s),") != std::string::npos &&
          done.text.find("in 0, gating's output in 0, norms in 0,") != std::string::npos;
      CHECK((budget > full || !nothing));
      earlier = again;
      check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
    }
    CHECK(number_after(adapted({"--recompute", "adaptive", "--memory_budget", "1"}).text,
                       "must be at least ") <= full);
    std::filesystem::remove_all(w / "usual");
    std::filesystem::remove_all(w / "out");
  }
}

TEST_CASE("ranks that share layers choose the same to make again") {
  workplace w;
  for (const std::vector<std::string>& cut :
       {std::vector<std::string>{"--tp", "2"}, {"--cp", "2"}, {"--ranks", "2"}}) {
    const auto adapted = [&](const std::string& budget) {
      std::vector<std::string> words = {"--recompute", "adaptive", "--transport",     "local",
                                        "--sequence",  "128",      "--memory_budget", budget};
      words.insert(words.end(), cut.begin(), cut.end());
      return run(w, words);
    };
    const std::string budget =
        std::to_string(number_after(adapted("1").text, "must be at least ") * 11 / 10);
    const outcome done = ended(0, adapted(budget));
    CHECK(number_after(done.text, "made again: ") > 0);
  }
}
