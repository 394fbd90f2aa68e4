// A profiler: a recorder of a context from its creation to its stop, and what is read afterwards.
//
// Calls may overlap; a lock orders the stop with them.
#pragma once

#include <mutex>
#include <string>

#include "core/context.hpp"
#include "core/profile/recorder.hpp"
#include "velo/profiler.h"

namespace velo::core {

class profiler {
 public:
  // Throws VELO_ERR_STATE if another profiler of the context records.
  profiler(context& owner, const velo_profiler_desc& desc);
  ~profiler();
  profiler(const profiler&) = delete;
  profiler& operator=(const profiler&) = delete;

  void begin(const char* text);  // throws VELO_ERR_STATE once stopped
  void end();                    // throws VELO_ERR_STATE if no range is open
  void stop();

  void fill(velo_profiler_stats& to) const;
  // Throw VELO_ERR_STATE until stopped.
  void fill(std::int64_t index, velo_profiler_event& to) const;
  std::string trace_events() const;  // a line each
  std::string trace() const;

 private:
  void require_stopped() const;

  context& owner_;
  const int rank_;
  const std::string label_;
  mutable std::mutex lock_;
  recorder events_;
  bool stopped_ = false;
};

template <>
struct handle_traits<profiler> {
  using handle = velo_profiler;
  static constexpr handle_kind& kind = kinds::profiler;
};

}  // namespace velo::core
