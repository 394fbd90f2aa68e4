// Formatting into a fixed buffer: a long line is cut, nothing is allocated.
#include "core/text/log.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"

namespace velo::core {
namespace {

constexpr const char* level_names[] = {"off", "error", "warn", "info", "debug"};

void write_stderr(velo_log_level level, const char* component, const char* line) noexcept {
  char whole[1200];
  const int length = std::snprintf(whole, sizeof whole, "velo %s %s: %s\n", log_level_name(level),
                                   component, line);
  if (length <= 0) return;
  const auto bytes = static_cast<std::size_t>(length) < sizeof whole
                         ? static_cast<std::size_t>(length)
                         : sizeof whole - 1;
  if (write(STDERR_FILENO, whole, bytes) < 0) return;  // no place is left to report this
}

}  // namespace

void logger::write(velo_log_level level, const char* component, const char* format,
                   ...) const noexcept {
  if (!enabled(level) || level == VELO_LOG_OFF) return;
  char line[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  const uncancelled here;
  if (sink_ == nullptr || is_inside(owner_, part::logs))
    return write_stderr(level, component, line);
  const inside_scope mine(owner_, part::logs);
  try {
    sink_(user_, level, component, line);
  } catch (...) {
    return;
  }
}

const char* log_level_name(velo_log_level level) {
  return level_names[level];
}

bool parse_log_level(const char* name, velo_log_level& out) {
  for (velo_log_level i = VELO_LOG_OFF; i <= VELO_LOG_DEBUG; ++i) {
    if (std::strcmp(name, level_names[i]) != 0) continue;
    out = i;
    return true;
  }
  return false;
}

void warn_without_context(const char* component, const char* line) noexcept {
  const char* wish = std::getenv("VELO_LOG");
  velo_log_level level = VELO_LOG_OFF;
  if (wish != nullptr && parse_log_level(wish, level) && level >= VELO_LOG_WARN)
    write_stderr(VELO_LOG_WARN, component, line);
}

}  // namespace velo::core
