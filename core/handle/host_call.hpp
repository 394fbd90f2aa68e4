// Calls into the host's functions - its allocator, its parallel_for, its log sink - and what must
// not come out of them: an exception, or the end of the thread.
//
// velo's frames cannot be unwound by a cancelled thread: no entry is a cancellation point. Entries
// hold an `uncancelled`, but for those of operators and of memory, whose cost it would be a tenth
// of or more; they meet cancellation points in the host's functions alone, which one is held
// around. A request that comes meanwhile takes effect after the call. Cost: 3 to 10 ns.
#pragma once

#include <pthread.h>

#include <new>

#include "core/failure.hpp"

namespace velo::core {

class uncancelled {
 public:
  uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~uncancelled() { pthread_setcancelstate(before_, nullptr); }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Throws VELO_ERR_FOREIGN for the exception in flight. argument: of the record, "" for none.
[[noreturn]] inline void fail_foreign(const char* argument, const char* who) {
  const failure thrown = current_failure();
  fail(VELO_ERR_FOREIGN, argument, "a function that returns", text("an exception from %s", who),
       thrown.cause);
}

// function(): a call of a function of the host, `name` in a record: "allocator.allocate". Throws
// VELO_ERR_FOREIGN.
template <class F>
auto call_host(const char* name, F&& function) {
  const uncancelled here;
  try {
    return function();
  } catch (...) {
    fail_foreign(name, "the host");
  }
}

}  // namespace velo::core
