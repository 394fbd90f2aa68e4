// The sentence of a failure, its way to the log, and the last one of the process.
#include "capi/adapters/failure.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "capi/adapters/fork_lock.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

// The last byte of the text is never written, so that a child of a fork in the middle has an end.
class last_failure {
 public:
  void keep(const char* text) {
    const std::lock_guard<fork_lock> lock(lock_);
    std::snprintf(text_, sizeof text_, "%s", text);
  }
  void copy(char (&out)[sizeof(refusal::text)]) {
    const std::lock_guard<fork_lock> lock(lock_);
    std::memcpy(out, text_, sizeof text_);
  }

 private:
  fork_lock lock_;
  char text_[sizeof(refusal::text)] = "";
};

last_failure last;
std::atomic<velo_log_fn> log_function{nullptr};
std::atomic<void*> log_user{nullptr};

}  // namespace

void refuse(velo_status code, const char* format, ...) {
  refusal out;
  out.code = code;
  va_list values;
  va_start(values, format);
  std::vsnprintf(out.text, sizeof out.text, format, values);
  va_end(values);
  throw out;
}

void require(velo_status status) {
  if (status == VELO_OK) return;
  refusal out;
  out.code = status;
  out.whole = true;
  if (velo_error_text(out.text, sizeof out.text, nullptr) != VELO_OK)
    std::snprintf(out.text, sizeof out.text, "velo failed with status %d", status);
  throw out;
}

void describe_caught(const entry_name& name, refusal& failed) noexcept {
  char entry[100];
  if (name.slot < 0)
    std::snprintf(entry, sizeof entry, "%s%s", name.prefix, name.name);
  else
    std::snprintf(entry, sizeof entry, "%s%03d%s%s%s", name.prefix, name.slot,
                  *name.name != 0 ? " (" : "", name.name, *name.name != 0 ? ")" : "");
  try {
    throw;
  } catch (const refusal& thrown) {
    failed.code = thrown.code;
    failed.whole = true;
    // The way by name is an adapter's own affair: its users called the entry.
    const char* text = thrown.text;
    for (const std::string_view by_name : {"velo_op_call: ", "velo_op_infer: "}) {
      if (std::strncmp(text, by_name.data(), by_name.size()) == 0) text += by_name.size();
    }
    if (thrown.whole && text == thrown.text)
      std::snprintf(failed.text, sizeof failed.text, "%s", text);
    else
      std::snprintf(failed.text, sizeof failed.text, "%.80s: %.1100s", entry, text);
  } catch (const std::bad_alloc&) {
    failed.code = VELO_ERR_MEMORY;
    std::snprintf(failed.text, sizeof failed.text, "%s: out of memory", entry);
  } catch (...) {
    failed.code = VELO_ERR_INTERNAL;
    std::snprintf(failed.text, sizeof failed.text, "%s: an exception without a name", entry);
  }
  last.keep(failed.text);
}

void log_failure(const char* host, const refusal& failed) noexcept {
  if (const velo_log_fn log = log_function.load())
    log(log_user.load(), VELO_LOG_ERROR, host, failed.text);
  else
    std::fprintf(stderr, "velo: %s: %s\n", host, failed.text);
}

}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_adapters_set_log(velo_log_fn log, void* user) {
  log_user = user;
  log_function = log;
  return VELO_OK;
}

velo_status velo_adapters_last_error(char* buffer, uint64_t capacity, uint64_t* needed) {
  if (buffer == nullptr && capacity > 0) return VELO_ERR_NULL;
  char text[sizeof(refusal::text)];
  last.copy(text);
  if (needed != nullptr) *needed = std::strlen(text) + 1;
  if (capacity > 0) std::snprintf(buffer, capacity, "%s", text);
  return VELO_OK;
}
