// Blocks that a rank lends: where they lie, and that they come back in any order.
#include "comm/transport/shared/lending.hpp"

#include <catch2/catch.hpp>

using velo::comm::lending;

namespace {

constexpr std::size_t line = lending::alignment, room = 16 * line;
struct alignas(line) memory {
  char bytes[room];
};

}  // namespace

TEST_CASE("blocks lie apart, and a gap is used again as soon as it is back") {
  memory all;
  lending of;
  char* const first = of.take(all.bytes, room, 1);
  char* const second = of.take(all.bytes, room, 3 * line);
  char* const third = of.take(all.bytes, room, line + 1);
  CHECK(first == all.bytes + line);
  CHECK(second == first + 2 * line);
  CHECK(third == second + 4 * line);
  lending::give_back(second);
  CHECK(of.take(all.bytes, room, 3 * line + 1) == third + 3 * line);
  char* const again = of.take(all.bytes, room, line);
  CHECK(again == second);
  lending::give_back(first);
  lending::give_back(again);
  CHECK(of.take(all.bytes, room, 4 * line) == first);  // of both gaps together
}

TEST_CASE("there is no room for more than there is") {
  memory all;
  lending of;
  CHECK(of.take(all.bytes, room, room - line + 1) == nullptr);
  CHECK(of.take(all.bytes, room, SIZE_MAX) == nullptr);
  char* const whole = of.take(all.bytes, room, room - line);
  CHECK(whole == all.bytes + line);
  CHECK(of.take(all.bytes, room, 1) == nullptr);
  lending::give_back(whole);
  CHECK(of.take(all.bytes, room, 1) == all.bytes + line);
}
