// Refusals as rows: each row makes one change to the arguments of a valid call, and the call must
// fail with the row's code and record.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "tests/record.hpp"

namespace velo::testing {

template <class Args>
struct refusal {
  std::function<void(Args&)> change;
  velo_status code;
  std::string argument;
  std::string expected{}, got{};  // empty: not compared
};

// Tries every row on a copy of the valid arguments. `call(args)` returns a status or a call_record;
// a check that fails names its row.
template <class Args, class Call>
void check_refusals(const Args& valid, const Call& call,
                    std::initializer_list<refusal<Args>> rows) {
  int index = 0;
  for (const refusal<Args>& row : rows) {
    INFO("row " << index++ << ": " << row.argument << " " << row.expected);
    Args wrong = valid;
    row.change(wrong);
    const auto result = call(wrong);
    const call_record record = record_of(result);
    CHECK(record.code == row.code);
    if constexpr (std::is_same_v<decltype(result), const velo_status>)
      CHECK(last_record().code == row.code);
    CHECK(record.argument == row.argument);
    if (!row.expected.empty()) CHECK(record.expected == row.expected);
    if (!row.got.empty()) CHECK(record.got == row.got);
  }
}

}  // namespace velo::testing
