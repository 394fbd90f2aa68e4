// Names of status codes, and the failure of a host function that returned one.
#include "core/handle/status.hpp"

#include "core/handle/record.hpp"

namespace velo::core {
namespace {

constexpr status_row rows[] = {
#include "abi/generated/errors.inc"
};

}  // namespace

const status_row* find_status(velo_status code) noexcept {
  for (const status_row& row : rows)
    if (row.code == code) return &row;
  return nullptr;
}

text status_text(velo_status code) {
  const status_row* const known = find_status(code);
  return known == nullptr ? text("%d", code) : text("%s (%d)", known->name, code);
}

void fail_returned(const char* argument, velo_status status, const char* who,
                   std::uint32_t before) {
  char cause[sizeof failure::cause] = "";
  if (const velo_error_info* left = record_left(status, before))
    record_text(*left, cause, sizeof cause);
  fail(VELO_ERR_FOREIGN, argument, "VELO_OK", text("%s from %s", status_text(status).buffer, who),
       cause);
}

}  // namespace velo::core
