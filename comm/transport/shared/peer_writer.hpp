// Chooses how a rank writes data for its peers: through the cache or around it.
//
// Non-temporal stores put bytes into memory, from which all peers read equally fast. Stores through
// the cache make writing and reading twice as fast among ranks that share an L3, but ten times
// slower among ranks that do not, since each line has to come from another core complex. The
// topology cannot tell, since the system migrates threads and a hypervisor migrates its processors.
// So a rank periodically times the read of a line that a peer has just written. A probe costs two
// reads of the clock and a line from each peer. A single copy out of the peer's memory
// (process_vm_readv) is slower in both cases, since the kernel pins pages one by one.
#pragma once

#include <cstdint>

#include "comm/reduction/reduction.hpp"

namespace velo::comm {

// Whether peers share a cache with this rank, judged by the latency of cache lines. On Zen 4 a line
// takes 30 to 60 ns within a complex and at least 170 ns from another, the clock included. A single
// probe can be disturbed, so only several in a row change the answer.
class cache_probe {
 public:
  static constexpr std::int64_t remote_line_ns = 100;
  static constexpr int probes_to_switch = 3;
  // Operations between probes, while they agree. A probe of a remote line then adds some 25 ns to
  // an operation, and a migrated thread is noticed within ten operations.
  static constexpr int probe_interval = 8;

  bool shares_cache() const noexcept { return shares_cache_; }
  // Counts an operation and tells whether it should probe.
  bool is_due() noexcept { return until_probe_ <= 1 || --until_probe_ <= 0; }
  void record(std::int64_t line_ns) noexcept {
    const bool shares = line_ns < remote_line_ns;
    disagreeing_ = shares != shares_cache_ ? disagreeing_ + 1 : 0;
    if (disagreeing_ == probes_to_switch) {
      shares_cache_ = shares;
      disagreeing_ = 0;
    }
    until_probe_ = disagreeing_ > 0 ? 1 : probe_interval;
  }

 private:
  bool shares_cache_ = false;
  int disagreeing_ = 0, until_probe_ = 0;
};

class peer_writer {
 public:
  // Shorter data always goes through the cache.
  static constexpr std::int64_t least_probed_bytes = 4096;

  explicit peer_writer(const cache_probe& known = {}) : probe_(known) {}

  void copy(const reduction_kernels& kernels, const void* from, char* to, std::int64_t bytes) const;
  bool uses_cache(std::int64_t bytes) const noexcept;
  cache_probe& probe() noexcept { return probe_; }

 private:
  cache_probe probe_;
};

}  // namespace velo::comm
