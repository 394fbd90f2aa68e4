// What collectives of a group take, as measured: for each kind the seconds for some numbers of
// bytes, of the slowest rank, and between them a line. Other work on the machine can only lengthen
// a measurement: no number of bytes takes longer than a larger one. Below the first number a call
// costs the latency of that, above the last one the bytes take the bandwidth of the last two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/group/operation.hpp"

namespace velo::comm {

class measured_times {
 public:
  static constexpr std::int64_t sizes[] = {1 << 10, 8 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 2 << 20, 4 << 20,  16 << 20};
  static constexpr std::size_t points = sizeof sizes / sizeof *sizes;
  static constexpr collective kinds[] = {collective::barrier,        collective::all_reduce,
                                         collective::broadcast,      collective::all_gather,
                                         collective::reduce_scatter, collective::all_to_all,
                                         collective::exchange};
  static constexpr std::size_t kind_count = sizeof kinds / sizeof *kinds;

  double* begin() noexcept { return seconds_[0].data(); }  // kind by kind; negative: not measured
  static constexpr std::size_t count = kind_count * points;
  double& at(std::size_t kind, std::size_t point) noexcept { return seconds_[kind][point]; }

  void settle() noexcept;  // what was measured, without what larger sizes show to be too long

  // Of an operation that moves so many bytes of its largest tensor. Negative: not measured.
  double predict(collective kind, std::int64_t bytes) const noexcept;
  double latency(collective kind) const noexcept;    // seconds
  double bandwidth(collective kind) const noexcept;  // bytes a second of the largest sizes

 private:
  static std::size_t row_of(collective kind) noexcept;
  std::array<std::array<double, points>, kind_count> seconds_{};
};

// Bytes of the largest tensor that a rank has in an operation.
std::int64_t whole_bytes(const operation& what, int ranks) noexcept;

}  // namespace velo::comm
