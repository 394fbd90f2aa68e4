// A call of velo, or of the system, that a bench cannot go on without: on failure its sentence is
// printed and the program ends with 2.
#pragma once

#include <errno.h>

#include <cstdio>
#include <cstdlib>

#include "velo/velo.h"

namespace velo::bench {

inline void require(velo_status status) {
  if (status == VELO_OK) return;
  char text[1024] = "";
  velo_error_text(text, sizeof text, nullptr);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
  std::exit(2);
}

// returned: below 0 with errno where the call failed.
inline void require_done(int returned, const char* call) {
  if (returned >= 0) return;
  std::fprintf(stderr, "%s: ", program_invocation_short_name);
  std::perror(call);
  std::exit(2);
}

}  // namespace velo::bench
