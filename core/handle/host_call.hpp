// Calls of the host's functions (its allocator, its parallel_for, its log sink). Neither an
// exception nor a cancellation of the thread may come out of them.
//
// velo's frames cannot be unwound by a cancelled thread, so no entry is a cancellation point.
// Entries hold an `uncancelled`, with two exceptions: entries that read the record, which call no
// function of the host, and entries of operators and of memory, for which it would cost a tenth of
// their time or more. The latter meet cancellation points only in the host's functions, and hold an
// `uncancelled` around each of those calls. A request that arrives meanwhile takes effect after the
// call. Cost: 3 to 10 ns.
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

// Throws VELO_ERR_FOREIGN for the exception in flight. argument: the record's argument; "": none.
[[noreturn]] inline void fail_foreign(const char* argument, const char* who) {
  const failure thrown = current_failure();
  fail(VELO_ERR_FOREIGN, argument, "a function that returns", text("an exception from %s", who),
       thrown.cause);
}

// Calls function(), which calls a function of the host. name: that function in a record,
// "allocator.allocate". Throws VELO_ERR_FOREIGN.
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
