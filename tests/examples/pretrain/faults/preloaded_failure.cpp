// Memory that runs out in a program, which is preloaded with this and with failing_memory.cpp.
//
// The environment says which allocation fails: VELO_FAIL_AT, counted from the program's first call
// of signal(), with VELO_FAIL_LATER all later ones, too; and in which process: VELO_FAIL_RANK, the
// value of RANK there, empty where RANK is not set. VELO_FAIL_COUNT names a file to which that
// process writes at its end how many allocations there were.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/faults/failing_memory.hpp"

namespace {

using namespace velo::testing;

const char* text_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool has_begun = false;

void begin() {
  if (has_begun || *text_of("VELO_FAIL_AT") == 0) return;
  if (std::strcmp(text_of("VELO_FAIL_RANK"), text_of("RANK")) != 0) return;
  has_begun = true;
  const bool later = *text_of("VELO_FAIL_LATER") != 0;
  begin_failing(later ? failure_shape::from_then_on : failure_shape::once,
                std::atoi(text_of("VELO_FAIL_AT")));
}

__attribute__((destructor)) void end() {
  if (!has_begun) return;
  const int all = allocations();
  end_failing();
  const int file = ::open(text_of("VELO_FAIL_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) return;
  ::dprintf(file, "%d\n", all);
  ::close(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) sighandler_t signal(int number,
                                                                      sighandler_t handler) {
  static const auto next =
      reinterpret_cast<sighandler_t (*)(int, sighandler_t)>(::dlsym(RTLD_NEXT, "signal"));
  begin();
  return next(number, handler);
}
