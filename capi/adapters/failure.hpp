// How an adapter fails: thrown inside as a refusal, turned into the host's kind of error at the
// entry; never beyond it.
//
// A text is one sentence in the form of velo's own records, "velo_ms_cast: x: expected .., got ..";
// a failed call of velo keeps velo's sentence. The latest one is kept for
// velo_adapters_last_error.
#pragma once

#include "velo/status.h"

namespace velo::adapters {

struct refusal {
  velo_status code = VELO_OK;
  bool whole = false;  // a sentence of velo's, which names its function itself
  char text[1200];     // not cleared: every call has one at hand, few write it

  refusal() { text[0] = 0; }
};

// An exported entry's name, written out only when it is needed: "velo_ms_" + "cast", or
// "velo_ms_slot_" + 007 + "(cast)".
struct entry_name {
  const char* prefix;
  const char* name = "";
  int slot = -1;
};

[[noreturn]] void refuse(velo_status code, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
void require(velo_status status);  // throws velo's record unless VELO_OK

// Gives the refusal being handled (or any other exception) its final text, and keeps it for
// velo_adapters_last_error. To be called in a catch (...).
void describe_caught(const entry_name& entry, refusal& failed) noexcept;

void log_failure(const char* host, const refusal& failed) noexcept;

// Runs an entry's body; VELO_OK, or the code of what is now in `failed`.
template <class Body>
velo_status attempt(const entry_name& entry, refusal& failed, Body&& body) noexcept {
  try {
    body();
    return VELO_OK;
  } catch (...) {
    describe_caught(entry, failed);
    return failed.code;
  }
}

}  // namespace velo::adapters
