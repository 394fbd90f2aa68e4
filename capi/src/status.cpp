// Entries of velo/status.h: the error record and the names of codes.
#include "velo/status.h"

#include <cstddef>

#include "capi/src/boundary.hpp"
#include "core/handle/guard.hpp"
#include "core/handle/status.hpp"

using namespace velo;

namespace {

constexpr std::uint32_t least_error_info = offsetof(velo_error_info, function);

// Runs a body whose own failure must not replace the record that it reads.
template <class F>
velo_status quietly(F&& body) noexcept {
  try {
    body();
    return VELO_OK;
  } catch (...) {
    return core::current_failure().code;
  }
}

}  // namespace

extern "C" {

velo_status velo_last_error(velo_error_info* info) {
  return quietly([&] { capi::write_struct(info, least_error_info, "info", core::last_record()); });
}

velo_status velo_error_text(char* buffer, uint64_t capacity, uint64_t* needed) {
  return quietly([&] {
    char text[1024];
    core::record_text(core::last_record(), text, sizeof text);
    capi::write_text(text, buffer, capacity, needed);
  });
}

velo_status velo_status_describe(velo_status code, const char** name, const char** meaning) {
  return core::guard("velo_status_describe", [&] {
    const core::status_row* const known = core::find_status(code);
    if (known == nullptr)
      core::fail(VELO_ERR_ARGUMENT, "code", "a status code of velo", core::text("%d", code));
    if (name != nullptr) *name = known->name;
    if (meaning != nullptr) *meaning = known->meaning;
  });
}
}
