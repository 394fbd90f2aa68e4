// A check in a child of a fork, as a host that forks sees velo.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace velo::testing {

// The exit status check() gives the child; -1 where a signal ended it. The child runs no
// destructors and no other tests.
template <class F>
int in_child(F&& check) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(static_cast<int>(check()));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns whether check() holds in a child.
template <class F>
bool holds_in_child(F&& check) {
  return in_child([&] { return check() ? 0 : 1; }) == 0;
}

}  // namespace velo::testing
