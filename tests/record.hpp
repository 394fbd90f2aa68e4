// The record that a failed call leaves on its thread, as strings, and the check of a refusal.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <ostream>
#include <string>

#include "velo/status.h"

namespace velo::testing {

struct call_record {
  velo_status code = VELO_OK;
  std::int32_t rank = -1;
  std::string function, argument, expected, got, cause;
};

inline std::ostream& operator<<(std::ostream& out, const call_record& one) {
  return out << one.argument << ": expected " << one.expected << ", got " << one.got << " "
             << one.cause;
}

// The record of the last failure on this thread. It asserts nothing, so any thread may call it.
inline call_record last_record() {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  if (velo_last_error(&info) != VELO_OK) return {};
  return {info.code, info.rank, info.function, info.argument, info.expected, info.got, info.cause};
}

// The status of a call, and its record if it failed. Any thread may call it.
inline call_record record_of(velo_status code) {
  call_record all;
  if (code != VELO_OK) all = last_record();
  all.code = code;
  return all;
}

inline const call_record& record_of(const call_record& record) {
  return record;
}

// Checks that a call, by its status or its record, is refused with this code, and that the record
// names this argument.
#define CHECK_REFUSED(call, wanted_code, wanted_argument)                              \
  do {                                                                                 \
    const velo::testing::call_record refused_record_ = velo::testing::record_of(call); \
    INFO(refused_record_);                                                             \
    CHECK(refused_record_.code == (wanted_code));                                      \
    CHECK(refused_record_.argument == (wanted_argument));                              \
  } while (false)

}  // namespace velo::testing
