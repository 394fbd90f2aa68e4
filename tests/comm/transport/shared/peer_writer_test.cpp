// The writer of bytes that peers read: when it uses the cache, and that every byte arrives.
#include "comm/transport/shared/peer_writer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "core/host/cpu.hpp"

namespace comm = velo::comm;
namespace core = velo::core;

namespace {

using comm::cache_probe;

constexpr std::int64_t slot = 64 << 10;

// A probe after so many equal measurements.
cache_probe after(int probes, std::int64_t line_ns) {
  cache_probe made;
  for (int i = 0; i < probes; ++i) made.record(line_ns);
  return made;
}
cache_probe shared() {
  return after(cache_probe::probes_to_switch, cache_probe::remote_line_ns - 1);
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

TEST_CASE("ranks share no cache until several lines in a row came quickly") {
  CHECK_FALSE(cache_probe().shares_cache());
  CHECK_FALSE(
      after(cache_probe::probes_to_switch - 1, cache_probe::remote_line_ns - 1).shares_cache());
  CHECK(shared().shares_cache());
  CHECK_FALSE(after(100, cache_probe::remote_line_ns).shares_cache());
}

TEST_CASE("one disturbed probe changes nothing, several in a row do") {
  cache_probe probe = shared();
  for (int round = 0; round < 20; ++round) {
    for (int slow = 0; slow < cache_probe::probes_to_switch - 1; ++slow) {
      probe.record(cache_probe::remote_line_ns);
      CHECK(probe.shares_cache());
    }
    probe.record(0);
  }
  for (int slow = 0; slow < cache_probe::probes_to_switch; ++slow)
    probe.record(cache_probe::remote_line_ns);
  CHECK_FALSE(probe.shares_cache());
}

TEST_CASE("a rank probes in every operation until it knows, then periodically") {
  const auto until_due = [](cache_probe& probe) {
    int operations = 1;
    while (!probe.is_due()) ++operations;
    return operations;
  };
  cache_probe probe;
  for (int i = 0; i < cache_probe::probes_to_switch; ++i) {
    CHECK(until_due(probe) == 1);
    probe.record(0);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(until_due(probe) == cache_probe::probe_interval);
    probe.record(0);
  }
  CHECK(until_due(probe) == cache_probe::probe_interval);
  probe.record(cache_probe::remote_line_ns);
  CHECK(until_due(probe) == 1);
}

TEST_CASE(
    "short copies use the cache; among ranks that share one, all copies that do not fill it do") {
  const comm::peer_writer close(shared()), distant;
  CHECK(distant.uses_cache(comm::peer_writer::least_probed_bytes - 1));
  CHECK_FALSE(distant.uses_cache(comm::peer_writer::least_probed_bytes));
  CHECK(close.uses_cache(slot));
  CHECK(close.uses_cache(1 << 20));
  CHECK_FALSE(close.uses_cache((1 << 20) + 1));
}

TEST_CASE(
    "every byte arrives, and none beside them, with and without a shared cache, at any size and "
    "offset") {
  std::vector<char> to;
  int round = 0;
  for (const std::int64_t bytes : {0, 1, 63, 4095, 4096, 4097, 16383, 16384, 16385, 40001, 262144,
                                   (1 << 20) - 64, 1 << 20, (1 << 20) + 1})
    for (const std::int64_t offset : {0, 1, 64, 129}) {
      for (const cache_probe& known : {shared(), cache_probe()}) {
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
