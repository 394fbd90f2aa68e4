// The limits of this machine, measured in the process that benches: arithmetic peaks and memory
// patterns, for one thread and more, each thread pinned.
//
// A share of a limit says how much is left to win; a ratio to a peer cannot. Compute loops work in
// registers only (24 independent accumulators, or four tiles for AMX). Memory patterns run over 256
// MiB arrays (from DRAM) and over 4 MiB arrays (from the last level of cache), in useful bytes: no
// read-for-ownership is counted. The figure is the quicker quartile of seven repeats. Cost: about 4
// s for one and two threads; measured before and after the rows, since the host may move us.
#pragma once

#include <array>
#include <string>

#include "bench/machine.hpp"

namespace velo::bench {

enum class limit : int {
  fma_f32,     // GF/s, the widest vectors
  dot_bf16,    // GF/s, VDPBF16PS
  amx_bf16,    // GF/s, TDPBF16PS
  read,        // GB/s from DRAM ...
  copy,        // ordinary stores
  copy_nt,     // non-temporal stores
  triad_nt,    // a = b + k c
  scale,       // in place: one read, one write of the same line
  adam,        // four reads, three writes in place
  cache_copy,  // GB/s, 4 MiB arrays, ordinary stores
  cache_triad,
  count
};

const char* limit_name(limit which);
const char* limit_unit(limit which);

struct calibration {
  static constexpr int max_threads = 2;
  std::array<std::array<double, max_threads>, static_cast<std::size_t>(limit::count)> rates{};

  // 0 where the machine lacks the instruction or the thread count was not measured.
  double at(limit which, int threads) const;
  double& at(limit which, int threads);
};

calibration calibrate(const machine& m, int max_threads, bool quick);

// The larger relative change of any limit between two calibrations; `worst` names it.
double drift(const calibration& before, const calibration& after, std::string& worst);
calibration mean(const calibration& before, const calibration& after);

}  // namespace velo::bench
