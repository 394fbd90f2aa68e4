// The limits of this machine, measured in the process that reports shares of them: arithmetic peaks
// and memory patterns, for any number of threads, each thread pinned. One implementation for
// bench_ops, pretrain and `velo info`.
//
// A share of a limit says how much is left to win; a ratio to a peer cannot. Compute loops work in
// registers only (independent accumulators of the widest vectors, or four tiles for AMX). Memory
// patterns run over arrays from DRAM and over 4 MiB arrays from the last level of cache, in useful
// bytes: no read-for-ownership is counted. The figure is the quicker quartile of the repeats. An
// `effort` bounds the cost: `brief` takes under a second for a thread count, `thorough` about 2 s.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "bench/limits/machine.hpp"

namespace velo::bench {

enum class limit : int {
  fma_f32,     // GF/s, the widest vectors; without AVX2 separate products and sums
  dot_bf16,    // GF/s, VDPBF16PS
  amx_bf16,    // GF/s, TDPBF16PS
  read,        // GB/s from DRAM ...
  copy,        // ordinary stores
  copy_nt,     // non-temporal stores
  triad_nt,    // a = b + k c
  scale,       // in place: one read, one write of the same line
  adam,        // four reads, three writes in place
  cache_read,  // GB/s, 4 MiB arrays ...
  cache_copy,  // ordinary stores
  cache_triad,
  cache_adam,
  count
};

const char* limit_name(limit which);
const char* limit_unit(limit which);

class calibration {
 public:
  // 0 where the machine lacks the instruction or the thread count was not measured.
  double at(limit which, int threads) const;
  double& at(limit which, int threads);
  std::vector<int> thread_counts() const;

 private:
  std::map<int, std::array<double, static_cast<std::size_t>(limit::count)>> rates_;
};

// How long to measure. DRAM arrays, four of them, have the bytes of the machine's last cache within
// these bounds; a limit is repeated until its seconds are spent, three times at least.
struct effort {
  std::size_t least_array, largest_array;
  int repeats;
  double seconds;
};
inline constexpr effort thorough{std::size_t{256} << 20, std::size_t{256} << 20, 31, 0.25};
inline constexpr effort quick{std::size_t{128} << 20, std::size_t{128} << 20, 9, 0.25};
inline constexpr effort brief{std::size_t{64} << 20, std::size_t{128} << 20, 9, 0.03};

calibration calibrate(const machine& m, const std::vector<int>& threads, const effort& how);

// The limit of products: for f32 the FMA loop, for bf16 the quickest way this machine multiplies.
double product_peak(const calibration& c, bool bf16, int threads);

// The larger relative change of any limit between two calibrations; `worst` names it.
double drift(const calibration& before, const calibration& after, std::string& worst);
calibration mean(const calibration& before, const calibration& after);

}  // namespace velo::bench
