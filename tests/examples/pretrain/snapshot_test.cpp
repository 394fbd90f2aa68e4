// The snapshot of a run's memory: what it holds in each form, where it is refused, and that the run
// is the same with it.
#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <regex>

#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

outcome run(const workplace& w, const std::string& file, std::vector<std::string> more = {}) {
  return w.run(std::move(more), {"--memory_snapshot", file});
}

}  // namespace

TEST_CASE("a snapshot shows the first three steps in the form of its ending, and changes no bit") {
  workplace w;
  const std::vector<std::string> pieces = {"--accumulation", "2"};
  std::vector<std::string> usual = pieces;
  usual.insert(usual.end(), {"--out", w / "usual"});
  REQUIRE(w.run(usual).code == 0);
  for (const auto& [name, begins, ends] : {std::tuple("s.svg", "<svg ", "</svg>\n"),
                                           {"s.json", R"({"segments":[)", "}"},
                                           {"s.pickle", "\x80\x02}(", "."},
                                           {"none", "\x80\x02}(", "."}}) {
    INFO(name);
    ended(0, run(w, w / name, pieces));
    const std::string text = get(w / name);
    CHECK_THAT(text, StartsWith(begins) && EndsWith(ends));
    for (const char* part : {"step 1: forward", "step 2: forward", "step 3: forward", "backward",
                             "optimizer", "gradient", "activation", "workspace"})
      CHECK_THAT(text, Contains(part));
    CHECK_THAT(text, !Contains("step 4"));
    struct stat there {};
    REQUIRE(::stat((w / name).c_str(), &there) == 0);
    CHECK((there.st_mode & 0777) == 0600);
    check_same_state(w / "usual/checkpoint/", w / "out/checkpoint/");
    CHECK(run(w, w / name, {"--steps", "2"}).code == 0);  // replaced
    CHECK_THAT(get(w / name), Contains("step 2: forward") && !Contains("step 3"));
  }
}

TEST_CASE(
    "the report names the purposes of memory as the snapshot does, and as its page shows it") {
  workplace w;
  const std::string report = ended(0, run(w, w / "s.svg")).text;
  const std::string drawn = get(w / "s.svg"), page = get(PRETRAIN_PAGE);
  for (const std::string name : {"parameter", "gradient", "optimizer", "activation", "workspace"}) {
    INFO(name);
    CHECK_THAT(drawn, Contains(">" + name + ", at most "));
    for (const std::string& text : {report, page})
      CHECK(std::regex_search(text, std::regex("[ :,] " + name + R"( [0-9.]+ .?B)")));
  }
}

TEST_CASE("a snapshot may have the longest name that its folder takes, and no longer one") {
  workplace w;
  const std::string longest = w / (std::string(251, 'n') + ".svg");
  ended(0, run(w, longest));
  CHECK_THAT(get(longest), StartsWith("<svg "));
  CHECK_THAT(run(w, w / (std::string(252, 'n') + ".svg")).text,
             Contains("cannot be written: File name too long"));
}

TEST_CASE("a run that fails in its first steps leaves a snapshot of them") {
  workplace w;
  const outcome done = ended(
      1, run(w, w / "s.json", {"--learning_rate", "1000", "--warmup", "0", "--epsilon", "1e-30"}));
  CHECK_THAT(done.text, Contains("pretrain: step ") && Contains("is not finite"));
  CHECK_THAT(get(w / "s.json"), Contains("step 1: forward"));
}

TEST_CASE(
    "a place that can hold no snapshot is refused by the setting's name, and stays as it is") {
  workplace w;
  put(w / "mine.svg", "<svg>precious</svg>");
  put(w / "mine.pickle", "\x80\x04precious");
  ::mkdir((w / "folder").c_str(), 0700);
  REQUIRE(::symlink("mine.svg", (w / "link.svg").c_str()) == 0);
  for (const auto& [place, words] :
       {std::pair(w / "none/s.svg", "cannot be written: No such file or directory"),
        {std::string("/proc/s.svg"), "cannot be written: "},
        {w / "folder", "exists and is no regular file"},
        {w / "link.svg", "exists and is no regular file"},
        {std::string("/dev/full"), "exists and is no regular file"},
        {w / "mine.svg", "exists and is not a snapshot in the form of its ending"},
        {w / "mine.pickle", "exists and is not a snapshot in the form of its ending"}}) {
    const outcome done = ended(1, run(w, place));
    CHECK_THAT(done.text,
               StartsWith("pretrain: --memory_snapshot: " + place + ' ') && Contains(words));
    CHECK(std::count(done.text.begin(), done.text.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(w / "out"));
  }
  CHECK(get(w / "mine.svg") == "<svg>precious</svg>");
  CHECK(get(w / "mine.pickle") == "\x80\x04precious");
  CHECK_THAT(run(w, w / "same", {"--log", w / "same"}).text,
             Contains("memory_snapshot = ") && Contains("must not be log = "));
  ::mkdir((w / "out").c_str(), 0700);
  CHECK_THAT(run(w, w / "out/loss.svg").text,
             Contains("--memory_snapshot: ") && Contains("is where the run keeps"));
}

TEST_CASE(
    "a disk that is full when the snapshot is due fails the run in the end, and harms nothing") {
  workplace w;
  const std::string disk = w / "disk";
  if (!mount_small_disk(disk)) return;
  REQUIRE(run(w, disk + "/s.svg").code == 0);
  const std::string before = get(disk + "/s.svg");
  put(disk + "/more", std::string(60000, 'x'));
  const outcome done = ended(1, run(w, disk + "/s.svg"));
  CHECK_THAT(done.text, Contains(disk + "/s.svg: cannot write the snapshot: ") &&
                            Contains("No space left on device") &&
                            Contains("; the run goes on without it") &&
                            Contains("; all else of the run is there\n"));
  CHECK(std::filesystem::exists(w / "out/checkpoint/model.safetensors"));
  CHECK(get(disk + "/s.svg") == before);
  CHECK(std::distance(std::filesystem::directory_iterator(disk), {}) == 2);
  ::umount(disk.c_str());
}
