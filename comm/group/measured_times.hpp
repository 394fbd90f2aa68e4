// The measured times of a group's calls. For each kind of call: the seconds of the slowest rank at
// several sizes, with linear interpolation between them.
//
// Other work on the machine can only lengthen a measurement, so no size is recorded as slower than
// a larger one. Sizes below the first point take the latency of that point; sizes above the last
// take the bandwidth of the last two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "comm/operation/operation.hpp"

namespace velo::comm {

class measured_times {
 public:
  static constexpr std::int64_t sizes[] = {1 << 10, 8 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 2 << 20, 4 << 20,  16 << 20};
  static constexpr std::size_t points = sizeof sizes / sizeof *sizes;
  static constexpr call_kind kinds[] = {collective::barrier,        collective::all_reduce,
                                        collective::broadcast,      collective::all_gather,
                                        collective::reduce_scatter, collective::all_to_all,
                                        other_call::exchange};
  static constexpr std::size_t kind_count = sizeof kinds / sizeof *kinds;

  double* begin() noexcept { return seconds_[0].data(); }  // kind by kind; negative: not measured
  static constexpr std::size_t count = kind_count * points;
  double& at(std::size_t kind, std::size_t point) noexcept { return seconds_[kind][point]; }

  void settle() noexcept;  // lowers each time to the least of the larger sizes

  // bytes: the size of a call's largest tensor. Returns a negative number if nothing was measured.
  double predict(call_kind kind, std::int64_t bytes) const noexcept;
  double latency(call_kind kind) const noexcept;    // seconds
  double bandwidth(call_kind kind) const noexcept;  // bytes a second of the largest sizes

 private:
  static std::size_t row_of(call_kind kind) noexcept;
  std::array<std::array<double, points>, kind_count> seconds_{};
};

// The bytes of the largest tensor that a rank has in an operation.
std::int64_t whole_bytes(const operation& what, int ranks) noexcept;

}  // namespace velo::comm
