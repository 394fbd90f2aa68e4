// Copies of a few bytes: every byte, and none beside them.
#include "comm/operation/short_copy.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace comm = velo::comm;

TEST_CASE("a short copy takes all bytes and none beside them, whatever their number") {
  const std::string from = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
  for (std::size_t bytes = 0; bytes <= 40; ++bytes) {
    std::string to(bytes + 2, '#');
    comm::copy_short(to.data() + 1, from.data() + 1, static_cast<std::int64_t>(bytes));
    CHECK(to == "#" + from.substr(1, bytes) + "#");
  }
  comm::copy_short(nullptr, nullptr, 0);
}
