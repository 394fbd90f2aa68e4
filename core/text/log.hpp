// Log lines of a context: a level, a component and a line. Silent by default.
//
// Lines go to the host's sink or, if the host gave none, to stderr in one write. A line that the
// level suppresses costs one load. A sink that throws is ignored: logging cannot fail. A line that
// the sink itself causes goes to stderr, since the sink would cause it again.
#pragma once

#include <atomic>

#include "velo/context.h"

namespace velo::core {

class logger {
 public:
  logger(velo_log_fn sink, void* user) : sink_(sink), user_(user) {}

  // owner: the handle of the object that logs the lines.
  void serve(const void* owner) noexcept { owner_ = owner; }

  bool enabled(velo_log_level level) const noexcept {
    return level <= level_.load(std::memory_order_relaxed);
  }
  void set_level(velo_log_level level) noexcept { level_.store(level, std::memory_order_relaxed); }

  __attribute__((format(printf, 4, 5))) void write(velo_log_level level, const char* component,
                                                   const char* format, ...) const noexcept;

 private:
  velo_log_fn sink_;
  void* user_;
  const void* owner_ = nullptr;
  std::atomic<velo_log_level> level_{VELO_LOG_OFF};
};

const char* log_level_name(velo_log_level level);
bool parse_log_level(const char* name, velo_log_level& out);

// The same if no context, and so no sink, is known: writes to stderr if VELO_LOG asks for warnings.
void warn_without_context(const char* component, const char* line) noexcept;

}  // namespace velo::core
