// A save that is killed at any change of a name: renames and removals of this program go through
// the functions below, which end the process before or after the n-th, or play a file system that
// cannot exchange two names.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "tests/examples/decoder/temporary.hpp"

namespace {

int changes_left = -1;  // -1: nobody is killed
bool dies_before = false, can_exchange = true;

// Counts a change; the process ends at the one chosen.
template <class Change>
int counted(Change change) {
  const bool last = changes_left == 0;
  if (changes_left >= 0) --changes_left;
  if (last && dies_before) ::_exit(9);
  const int result = change();
  if (last) ::_exit(9);
  return result;
}

}  // namespace

#pragma GCC visibility push(default)  // the C++ library removes directories
extern "C" {
int rename(const char* from, const char* to) noexcept {
  return counted([&] { return static_cast<int>(::syscall(SYS_rename, from, to)); });
}
int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (!can_exchange) return errno = EINVAL, -1;
  return counted(
      [&] { return static_cast<int>(::syscall(SYS_renameat2, at, from, to_at, to, flags)); });
}
int unlinkat(int at, const char* name, int flags) noexcept {
  return counted([&] { return static_cast<int>(::syscall(SYS_unlinkat, at, name, flags)); });
}
}
#pragma GCC visibility pop

namespace decoder {
namespace {

struct scene {
  std::string folder;
  float weight = 1;
  checkpoint contents(std::int64_t step) {
    checkpoint made;
    made.step = step;
    made.settings = "{}";
    made.weights = {{"w", element::f32, {1}, &weight}};
    return made;
  }
  std::string place() const { return folder + "/checkpoint"; }
  void save(std::int64_t step, bool keep) {
    save_checkpoint(place(), contents(step), keep ? place() + ".1" : "");
  }
};

bool stands(const std::string& place, std::int64_t step) {
  try {
    return checkpoint_reader(place).step() == step;
  } catch (const std::exception&) {
    return false;
  }
}

// Saves step 2 over step 1, dying at change `n`; whether it came so far.
bool dies_at(scene& s, int n, bool keep) {
  const pid_t child = ::fork();
  if (child == 0) {
    changes_left = n;
    s.save(2, keep);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0));
  return WEXITSTATUS(status) == 9;
}

// Steps of a run that goes on: it opens the checkpoint, makes the place its own, and reads.
void goes_on(const scene& s) {
  checkpoint_reader reader(s.folder);
  require_place(s.place());
  reader.require_unchanged();
  float weight = 0;
  reader.read_weights({{"w", element::f32, {1}, &weight}});
  CHECK(weight == s.weight);
}

TEST_CASE("a save killed at any rename or removal leaves a checkpoint, and the next one saves") {
  can_exchange = GENERATE(true, false);
  dies_before = GENERATE(true, false);
  const bool keep = GENERATE(true, false);
  bool died = true;
  int n = 0;
  for (; died; ++n) {
    temporary t;
    scene s{t.path};
    s.save(1, false);
    died = dies_at(s, n, keep);
    INFO("change " << n << (dies_before ? " not made" : " made") << ", keep " << keep
                   << ", exchange " << can_exchange);
    CHECK((stands(s.folder, 1) || stands(s.folder, 2)));
    if (keep) CHECK((stands(s.place(), 1) || stands(s.place() + ".1", 1)));
    const bool kept = stands(s.place() + ".1", 1);
    REQUIRE_NOTHROW(goes_on(s));
    REQUIRE_NOTHROW(s.save(3, false));
    CHECK(stands(s.place(), 3));
    CHECK(stands(s.place() + ".1", 1) == kept);
  }
  CHECK(n > 3);
  can_exchange = true;
}

}  // namespace
}  // namespace decoder
