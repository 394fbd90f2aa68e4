// How what peers read is written: when a rank goes through the cache, and that every byte arrives.
#include "comm/transport/peer_writer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "core/cpu.hpp"

namespace comm = velo::comm;
namespace core = velo::core;

namespace {

using comm::nearness;

constexpr std::int64_t slot = 64 << 10, lines = slot / nearness::line_bytes;
constexpr std::int64_t quick_ns = lines * nearness::slow_line_ns;
constexpr std::int64_t settling_ns = lines * nearness::slow_while_settling_ns;

// After as many quick pieces as it takes.
nearness settled() {
  nearness made;
  for (std::int64_t bytes = 0; bytes < nearness::settling_bytes; bytes += slot)
    made.took(slot, quick_ns, 0);
  return made;
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

TEST_CASE("ranks are far from each other until lines came quickly") {
  nearness where;
  CHECK_FALSE(where.is_near());
  CHECK(where.wants_trial(0));
  where.took(slot, settling_ns + 1, 0);
  CHECK_FALSE(where.is_near());
  where.took(slot, settling_ns, 0);
  CHECK(where.is_near());
  CHECK_FALSE(where.wants_trial(nearness::most_pause_ns));
}

TEST_CASE("what was around the cache before may take longer, what follows may not") {
  nearness where;
  for (std::int64_t bytes = 0; bytes < nearness::settling_bytes; bytes += slot) {
    where.took(slot, settling_ns, 0);
    CHECK(where.is_near());
  }
  where.took(slot, quick_ns + 1, 0);
  CHECK_FALSE(where.is_near());
  CHECK(settled().is_near());
}

TEST_CASE("after slow pieces a rank waits for the next trial, twice as long each time") {
  nearness where;
  std::int64_t now = 0, pause = nearness::least_pause_ns;
  for (int slow = 0; slow < 20; ++slow) {
    CHECK(where.wants_trial(now));
    where.took(slot, settling_ns + 1, now);
    CHECK_FALSE(where.wants_trial(now + pause - 1));
    now += pause;
    pause = std::min(2 * pause, nearness::most_pause_ns);
    where.took(slot, quick_ns, now);  // now and then one is quick that should not be
    CHECK(where.is_near());
    where.took(slot, settling_ns + 1, now);
    CHECK_FALSE(where.wants_trial(now + pause - 1));
    now += pause;
    pause = std::min(2 * pause, nearness::most_pause_ns);
  }
  for (int quick = 0; quick < 40; ++quick) where.took(slot, quick_ns, now);
  where.took(slot, quick_ns + 1, now);
  CHECK(where.wants_trial(now + nearness::least_pause_ns));
}

TEST_CASE("pieces that may be tried move on as those do that go through the cache") {
  nearness far;
  far.took(slot, settling_ns + 1,
           std::numeric_limits<std::int64_t>::max() - nearness::most_pause_ns);
  CHECK(comm::peer_writer(settled()).may_go_through(1));
  CHECK(comm::peer_writer().may_go_through(slot));
  CHECK_FALSE(comm::peer_writer().may_go_through(4096));
  CHECK_FALSE(comm::peer_writer(far).may_go_through(slot));
}

TEST_CASE("every byte arrives, and none beside them, near and far, at any size and offset") {
  nearness far;
  far.took(slot, settling_ns + 1,
           std::numeric_limits<std::int64_t>::max() - nearness::most_pause_ns);
  std::vector<char> to;
  int round = 0;
  for (const std::int64_t bytes : {0, 1, 63, 4095, 4096, 4097, 16383, 16384, 16385, 40001, 262144,
                                   (1 << 20) - 64, 1 << 20, (1 << 20) + 1})
    for (const std::int64_t offset : {0, 1, 64, 129}) {
      for (const nearness& known : {settled(), far, nearness()}) {
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

TEST_CASE("a piece that was tried is judged, at whatever speed") {
  const std::vector<char> from = numbered(slot, 1);
  std::vector<char> to(static_cast<std::size_t>(slot));
  bool judged = false;
  for (int trial = 0; trial < 1000 && !judged; ++trial) {  // the thread may lose its processor
    comm::peer_writer writer;
    writer.copy(kernels(), from.data(), to.data(), slot);
    judged = writer.is_near() || !writer.may_go_through(slot);
  }
  CHECK(judged);
}
