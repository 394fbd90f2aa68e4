// The codes of velo/status.h: what each is called and means, from the spec. And statuses that
// functions of the host return, in the texts of records: a host reads a name, not a number. Not
// hot.
#pragma once

#include <cstdint>

#include "core/failure.hpp"

namespace velo::core {

struct status_row {
  velo_status code;
  const char* name;
  const char* meaning;
};

// nullptr: no status of velo's.
const status_row* find_status(velo_status code) noexcept;

// "VELO_ERR_IO (33)"; of a number that is no status "7".
text status_text(velo_status code);

// A function of the host returned `status` instead of VELO_OK: throws VELO_ERR_FOREIGN. argument:
// the function, as a record spells it. who: what called it did, "1B2 of rank 1". before:
// records_written() before the call: of a function that failed in a call of velo's that failure is
// the cause.
[[noreturn]] void fail_returned(const char* argument, velo_status status, const char* who,
                                std::uint32_t before);

}  // namespace velo::core
