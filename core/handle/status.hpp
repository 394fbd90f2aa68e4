// The names and meanings of the codes of velo/status.h, from the spec. Also the texts of statuses
// that host functions return: a record shows the name, not a number. Not hot.
#pragma once

#include <cstdint>

#include "core/failure.hpp"

namespace velo::core {

struct status_row {
  velo_status code;
  const char* name;
  const char* meaning;
};

// nullptr: not a status of velo.
const status_row* find_status(velo_status code) noexcept;

// "VELO_ERR_IO (33)"; "7" for a number that is not a status.
text status_text(velo_status code);

// Throws VELO_ERR_FOREIGN because a host function returned `status` instead of VELO_OK. argument:
// the function, as a record spells it. who: the work that called it, "1B2 of rank 1". before:
// records_written() before the call; if a call of velo failed inside the function, that failure
// becomes the cause.
[[noreturn]] void fail_returned(const char* argument, velo_status status, const char* who,
                                std::uint32_t before);

}  // namespace velo::core
