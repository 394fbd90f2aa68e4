// Everything a user can get wrong, and machines that let go: a clear message, exit code 1, the
// previous checkpoint intact.
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "tests/examples/pretrain/workplace.hpp"

using Catch::Matchers::Contains;

namespace {

void refused(const outcome& done, const std::string& words) {
  INFO(done.text);
  CHECK(done.code == 1);
  CHECK_THAT(done.text, Catch::Matchers::StartsWith("pretrain: ") || Contains("\npretrain: "));
  CHECK_THAT(done.text, Contains(words));
}

// Root reads everything, by two capabilities; a program started without them in its bounds does
// not.
void lay_down_powers() {
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
}

}  // namespace

TEST_CASE("mistakes on the command line end the program with a sentence and code 1") {
  refused(run_program({"--stepps", "5"}), "--stepps: no such flag; did you mean --steps?");
  refused(run_program({"--resume", "/proc/nonexistent"}), "no such checkpoint");
}

TEST_CASE("help explains every setting and exits with 0") {
  const outcome done = run_program({"--help"});
  CHECK(done.code == 0);
  CHECK_THAT(done.text, Contains("--resume DIR") && Contains("--learning_rate") && Contains("130"));
}

TEST_CASE(
    "a configuration that is malformed or contradicts itself is refused with line and column") {
  workplace w;
  const std::string config = put(w / "c.json", "{\n  \"model\": {\"hidden\": 64,}\n}\n");
  refused(w.run({"--config", config}), "c.json:2:");
  put(config, "{\"model\":\n {\"heads\": 5}}");
  refused(run_program({"--config", config, "--paths", w / "text"}),
          "c.json:2:12: hidden = 256 must be a multiple of heads = 5");
  refused(run_program({"--config", w / "none.json"}), "none.json: cannot open: No such file");
}

TEST_CASE("data that is missing, empty or too short is refused") {
  workplace w;
  refused(w.run({"--paths", w / "none"}), "none: ");
  put(w / "empty", "");
  refused(run_program({"--paths", w / "empty"}), "no text");
  put(w / "short", some_text(1000));
  refused(run_program({"--paths", w / "short"}), "too short");
  refused(w.run({"--sequence", "60000"}), "too short for a window");
}

TEST_CASE("data that may not be read is refused") {
  workplace w;
  ::chmod(w.path.c_str(), 0755);
  ::chmod((w / "text").c_str(), 0);
  refused(run_program({"--paths", w / "text", "--out", w / "never"}, lay_down_powers),
          "text: cannot open: Permission denied");
  ::mkdir((w / "closed").c_str(), 0);
  refused(run_program({"--paths", w.path, "--out", w / "never"}, lay_down_powers),
          "Permission denied");
  ::chmod((w / "closed").c_str(), 0700);
}

TEST_CASE("a damaged checkpoint is refused by resume and by generate") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  for (const char* name :
       {"model.safetensors", "training_state.safetensors", "trainer.json", "config.json"}) {
    const std::string path = w / "out/checkpoint/" + name, good = get(path);
    std::string flipped = good;
    flipped[good.size() / 2] ^= 4;
    put(path, flipped);
    refused(run_program({"--resume", w / "out/checkpoint"}),
            std::string(name) + ": damaged checkpoint");
    put(path, good.substr(0, good.size() - 1));
    refused(run_program({"--resume", w / "out/checkpoint"}),
            std::string(name) + ": damaged checkpoint");
    refused(run_program({"--generate", "a", "--load", w / "out/checkpoint"}), "damaged checkpoint");
    put(path, good);
  }
  CHECK(run_program({"--resume", w / "out/checkpoint"}).code == 0);
}

TEST_CASE("a resumed run may change neither the model nor the data") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  refused(run_program({"--resume", w / "out/checkpoint", "--layers", "3"}),
          "--layers: layers = 3, but the checkpoint has 2");
  refused(run_program({"--resume", w / "out/checkpoint", "--batch", "8"}), "--batch: batch = 8");
  put(w / "text", some_text(60000, 2));
  refused(run_program({"--resume", w / "out/checkpoint"}),
          "the data is not what the checkpoint was trained on");
}

TEST_CASE("a checkpoint that meets a size limit leaves the previous one") {
  workplace w;
  REQUIRE(w.run({"--stop_after", "2"}).code == 0);
  const auto limit = [] {
    const rlimit small{50000, 50000};
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  refused(run_program({"--resume", w / "out/checkpoint"}, limit), "cannot write: File too large");
  CHECK(decoder::checkpoint_reader(w / "out/checkpoint").step() == 2);
}

TEST_CASE("a full disk leaves the previous checkpoint") {
  workplace w;
  const std::string disk = w / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=768k") != 0) {
    WARN("not tested: a full disk, but as a size limit: no right to mount");
    return;
  }
  // The state of this model takes about 400 KiB: one fits, the second beside it does not.
  ended(0, w.run({"--out", disk, "--stop_after", "2"}));
  refused(run_program({"--resume", disk + "/checkpoint"}), "No space left on device");
  CHECK(decoder::checkpoint_reader(disk + "/checkpoint").step() == 2);
  ::umount(disk.c_str());
}

TEST_CASE("an output that cannot be written is refused before training, with the reason") {
  workplace w;
  ::chmod(w.path.c_str(), 0755);
  put(w / "odd/checkpoint/mine", "precious");
  put(w / "drawn/loss.svg/mine", "precious");
  ::mkdir((w / "closed").c_str(), 0555);
  ::mkdir((w / "locked").c_str(), 0755);
  ::close(::creat((w / "locked/.lock").c_str(), 0666));
  ::chmod((w / "locked").c_str(), 0555);
  struct row {
    std::string out;
    const char* sentence;
  };
  const row rows[] = {{"/dev/full", "/dev/full: cannot create: "},
                      {"/proc/none", "/proc/none: cannot create: "},
                      {w / "text", "text: cannot create: "},
                      {w / "text/below", "text/below: cannot create: Not a directory"},
                      {w / "closed/below", "closed/below: cannot create: Permission denied"},
                      {w / "closed", "closed/.lock: cannot create: Permission denied"},
                      {w / "locked", "locked/checkpoint.saving: cannot create: Permission denied"},
                      {w / "odd", "odd/checkpoint: exists and is not a checkpoint"},
                      {w / "drawn", "drawn/loss.svg: exists and is no regular file"}};
  for (const row& each : rows) {
    const outcome done = w.run({"--out", each.out}, lay_down_powers);
    refused(done, each.sentence);
    CHECK_THAT(done.text, !Contains("model  ") && !Contains("bits/byte"));
  }
  CHECK(get(w / "odd/checkpoint/mine") == "precious");
}

TEST_CASE("a lock or a log is never written over what is something else") {
  workplace w;
  put(w / "mine", "precious");
  ::mkdir((w / "linked").c_str(), 0755);
  REQUIRE(::symlink((w / "mine").c_str(), (w / "linked/.lock").c_str()) == 0);
  refused(w.run({"--out", w / "linked"}), "linked/.lock: exists and is no");
  ::mkdir((w / "shared").c_str(), 0755);
  REQUIRE(::link((w / "mine").c_str(), (w / "shared/.lock").c_str()) == 0);
  refused(w.run({"--out", w / "shared"}), "of one name; the run's lock");
  REQUIRE(::mkfifo((w / "pipe").c_str(), 0600) == 0);
  for (const char* place : {"linked/.lock", "pipe"})
    refused(w.run({"--log", w / place}), "exists and is");
  refused(w.run({"--log", "/dev/full"}), "exists and is no regular file");
  refused(w.run({"--log", w / "mine"}), "mine: exists and is not a log");
  refused(w.run({"--log", w / "text"}), "text: exists and is not a log");
  for (const char* place : {"out/checkpoint", "out/checkpoint/log", "out/loss.svg", "out/.lock"})
    refused(w.run({"--log", w / place}), "is where the run keeps");
  CHECK(get(w / "mine") == "precious");
}

TEST_CASE("a setting that no checkpoint could write down is refused before training") {
  workplace w;
  const std::string odd = "caf\xe9";
  for (const char* flag : {"--out", "--paths", "--log", "--sample_prompt"}) {
    const outcome done = w.run({flag, w / odd});
    refused(done, std::string(flag) + ": expected UTF-8, got other bytes");
  }
  put(w / "c.json", "\xef\xbb\xbf{}");
  refused(w.run({"--config", w / "c.json"}), "c.json: expected JSON, got a byte");
}

TEST_CASE("a run goes on without a log that cannot be written, and without a reader") {
  workplace w;
  ::mkdir((w / "disk").c_str(), 0700);
  const outcome done = w.run({"--log", w / "disk/log"}, small_disk(w / "disk", false));
  if (done.code == 77) {
    WARN("not tested: a full disk: no right to mount");
  } else {
    CHECK(done.code == 1);
    const std::string why = w / "disk/log: cannot write the log: No space left on device; ";
    CHECK_THAT(done.text, Contains(why + "the run goes on") && Contains("\nthe model writes:\n") &&
                              Contains("\npretrain: " + why + "all else of the run is there\n"));
    CHECK_NOTHROW(get(w / "out/checkpoint/CHECKSUMS"));
  }
  const auto no_reader = [] {
    int ends[2];
    if (::pipe(ends) != 0 || ::close(ends[0]) != 0 || ::dup2(ends[1], 1) != 1) ::_exit(9);
  };
  CHECK(w.run({"--out", w / "unread"}, no_reader).code == 0);
  CHECK_NOTHROW(get(w / "unread/checkpoint/CHECKSUMS"));
}

TEST_CASE("output that cannot be written is a failure where it is the result") {
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), 1); };
  const outcome help = run_program({"--help"}, full);
  CHECK(help.code == 1);
  CHECK_THAT(help.text, Contains("cannot write the output: No space left"));
}

TEST_CASE("with the standard files closed nothing is printed into others") {
  workplace w;
  const auto close_all = [] {
    for (int number = 0; number < 3; ++number) ::close(number);
  };
  CHECK(w.run({"--log", w / "log"}, close_all).code == 0);
  CHECK_THAT(get(w / "log"), Catch::StartsWith(R"({"step": 1, )") && !Contains("model  "));
  CHECK_THAT(get(w / "out/.lock"), !Contains("model  "));
}

TEST_CASE("two runs do not share an output; a killed one gives it free") {
  workplace w;
  const auto words = tiny(w.path, {"--steps", "100000"});
  child first(words);
  first.wait_for("3/100000  ");
  const outcome second = w.run({});
  refused(second, "out: another run (process " + std::to_string(first.id()) + ") writes here");
  first.send(SIGINT);
  CHECK(first.finish().code == 130);
  child third({"--resume", w / "out"});
  third.wait_for("/100000  ");
  refused(run_program({"--resume", w / "out"}), "another run (process");
  ::kill(third.id(), SIGKILL);
  CHECK(third.finish().code == 128 + SIGKILL);
  CHECK(run_program({"--resume", w / "out", "--stop_after", "4"}).code == 0);
}
