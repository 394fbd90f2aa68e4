// What is behind velo_plan: the buffers, and their addresses once they have some.
//
// Adding forgets the addresses, so that they are always those of the buffers there are. A call that
// fails leaves the plan as it was. Not for two threads at once.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/handle_kinds.hpp"
#include "memory/plan.hpp"
#include "memory/plan_csv.hpp"
#include "velo/plan.h"

namespace velo::memory {

class plan {
 public:
  explicit plan(std::int64_t capacity) : capacity_(capacity) {}

  std::int64_t add(std::int64_t lower, std::int64_t upper, std::int64_t size);
  void read(velo_plan_format format, std::string_view text);
  void solve(double seconds, std::uint64_t seed);
  void fill(std::int64_t index, velo_plan_buffer& buffer) const;
  void fill(velo_plan_stats& stats) const;
  std::string write(velo_plan_format format) const;

  // The most bytes of a buffer.
  std::int64_t most() const {
    return capacity_ != 0 ? capacity_ : std::numeric_limits<std::int64_t>::max();
  }
  // What all sizes add up to.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t capacity_;
  std::int64_t bytes_ = 0;
  plan_table table_;
  placement placed_;
  bool solved_ = false;
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::plan> {
  using handle = velo_plan;
  static constexpr handle_kind& kind = kinds::plan;
};
