// The blocks of a message heap: their addresses, and frees in any order.
#include "comm/transport/shared/messages/message_heap.hpp"

#include <catch2/catch.hpp>

using velo::comm::message_heap;

namespace {

constexpr std::size_t line = message_heap::alignment, room = 16 * line;
struct alignas(line) memory {
  char bytes[room];
};

}  // namespace

TEST_CASE("blocks do not overlap, and a gap is reused as soon as its block is freed") {
  memory all;
  message_heap of;
  char* const first = of.allocate(all.bytes, room, 1);
  char* const second = of.allocate(all.bytes, room, 3 * line);
  char* const third = of.allocate(all.bytes, room, line + 1);
  CHECK(first == all.bytes + line);
  CHECK(second == first + 2 * line);
  CHECK(third == second + 4 * line);
  message_heap::free_block(second);
  CHECK(of.allocate(all.bytes, room, 3 * line + 1) == third + 3 * line);
  char* const again = of.allocate(all.bytes, room, line);
  CHECK(again == second);
  message_heap::free_block(first);
  message_heap::free_block(again);
  CHECK(of.allocate(all.bytes, room, 4 * line) == first);  // both gaps are merged
}

TEST_CASE("the heap allocates no more than its size") {
  memory all;
  message_heap of;
  CHECK(of.allocate(all.bytes, room, room - line + 1) == nullptr);
  CHECK(of.allocate(all.bytes, room, SIZE_MAX) == nullptr);
  char* const whole = of.allocate(all.bytes, room, room - line);
  CHECK(whole == all.bytes + line);
  CHECK(of.allocate(all.bytes, room, 1) == nullptr);
  message_heap::free_block(whole);
  CHECK(of.allocate(all.bytes, room, 1) == all.bytes + line);
}
