// How what peers read is written: when a rank goes through the cache, and that every byte arrives.
#include "comm/transport/shared/peer_writer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "core/host/cpu.hpp"

namespace comm = velo::comm;
namespace core = velo::core;

namespace {

using comm::nearness;

constexpr std::int64_t slot = 64 << 10;

// What looks have made of it, so many in a row.
nearness after(int looks, std::int64_t line_ns) {
  nearness made;
  for (int i = 0; i < looks; ++i) made.took(line_ns);
  return made;
}
nearness near() {
  return after(nearness::looks_to_change, nearness::far_line_ns - 1);
}

const comm::reduction_kernels& kernels() {
  return comm::reductions_for(core::detect_isa());
}

std::vector<char> numbered(std::int64_t bytes, int from) {
  std::vector<char> made(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<char>(static_cast<std::size_t>(from) + i * 7 + i / 251);
  return made;
}

}  // namespace

TEST_CASE("ranks are far from each other until lines came quickly, several in a row") {
  CHECK_FALSE(nearness().is_near());
  CHECK_FALSE(after(nearness::looks_to_change - 1, nearness::far_line_ns - 1).is_near());
  CHECK(near().is_near());
  CHECK_FALSE(after(100, nearness::far_line_ns).is_near());
}

TEST_CASE("one disturbed look changes nothing, several in a row do") {
  nearness where = near();
  for (int round = 0; round < 20; ++round) {
    for (int slow = 0; slow < nearness::looks_to_change - 1; ++slow) {
      where.took(nearness::far_line_ns);
      CHECK(where.is_near());
    }
    where.took(0);
  }
  for (int slow = 0; slow < nearness::looks_to_change; ++slow) where.took(nearness::far_line_ns);
  CHECK_FALSE(where.is_near());
}

TEST_CASE("a rank looks in every operation until it knows, then now and then") {
  const auto until_look = [](nearness& where) {
    int operations = 1;
    while (!where.wants_look()) ++operations;
    return operations;
  };
  nearness where;
  for (int look = 0; look < nearness::looks_to_change; ++look) {
    CHECK(until_look(where) == 1);
    where.took(0);
  }
  for (int look = 0; look < 3; ++look) {
    CHECK(until_look(where) == nearness::operations_between);
    where.took(0);
  }
  CHECK(until_look(where) == nearness::operations_between);
  where.took(nearness::far_line_ns);
  CHECK(until_look(where) == 1);
}

TEST_CASE("what is short goes through the cache; where ranks are near, what does not fill it") {
  const comm::peer_writer close(near()), apart;
  CHECK(apart.goes_through(comm::peer_writer::judged_from - 1));
  CHECK_FALSE(apart.goes_through(comm::peer_writer::judged_from));
  CHECK(close.goes_through(slot));
  CHECK(close.goes_through(1 << 20));
  CHECK_FALSE(close.goes_through((1 << 20) + 1));
}

TEST_CASE("every byte arrives, and none beside them, near and far, at any size and offset") {
  std::vector<char> to;
  int round = 0;
  for (const std::int64_t bytes : {0, 1, 63, 4095, 4096, 4097, 16383, 16384, 16385, 40001, 262144,
                                   (1 << 20) - 64, 1 << 20, (1 << 20) + 1})
    for (const std::int64_t offset : {0, 1, 64, 129}) {
      for (const nearness& known : {near(), nearness()}) {
        const std::vector<char> from = numbered(bytes, ++round);
        to.assign(static_cast<std::size_t>(bytes + offset + 64), '#');
        comm::peer_writer(known).copy(kernels(), from.data(), to.data() + offset, bytes);
        const auto first = to.begin() + offset;
        REQUIRE(std::equal(from.begin(), from.end(), first));
        REQUIRE(std::count(to.begin(), first, '#') == offset);
        REQUIRE(std::count(first + bytes, to.end(), '#') == 64);
      }
    }
}
