// A fork while another thread holds a lock of the process: in the child the lock stays held by
// nobody, and the child must still be able to do everything with a context of its own.
//
// The program stands between velo and every way to lock what is in static storage: mutexes, the
// guards of constants made on first use, and the two types of lock that survive a fork. The first
// time a row of the API takes such a lock, and again before it gives it back, the program forks
// there: that thread is in the middle of the lock, as another one may be at any fork. So a new lock
// is tested as soon as a row takes it. The child calls that row, all rows that are neither
// operators' nor slow, and one in eight of the others, each child from another row on. It is given
// a deadline.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "tests/calls/rows.hpp"
#include "velo/adapters.h"

extern "C" char __data_start, _end;  // the linker's: the ends of what is static and writable

namespace {

using namespace velo::testing;

constexpr unsigned deadline_seconds = 60;

bool forking = false;
std::set<std::pair<const void*, int>> seen;  // locks, and which end of them: 0 taken, 1 given back
int children = 0;
std::string broken;  // the rows whose children failed
const char* current = "";

void bind_slot() {
  std::int32_t slot = -1;
  velo_ms_slot_bind(-1, "add", "{}", &slot);
  velo_ms_slot_release(slot);
  velo_ms_slot_release(-5);  // a failure is kept for all threads
}

constexpr int rare_share = 8;

// Every row once, or those of a child that was forked in row `forked_in`; the name of the first
// that fails.
const char* first_failure(const char* forked_in = nullptr) {
  int rare = children;
  for (const call_row& row : every_call_row()) {
    const bool is_rare = row.example != nullptr || row.is_slow;
    const bool due = !is_rare || rare++ % rare_share == 0;
    if (forked_in != nullptr && !due && row.name != forked_in) continue;
    world w;
    current = row.name.c_str();
    row.begin(w);
    if (row.call(w) != VELO_OK) return row.name.c_str();
    row.end(w);
  }
  current = "the adapters' slots";
  bind_slot();
  return nullptr;
}

void overdue(int) {
  constexpr char text[] = " does not return\n";
  (void)!write(STDERR_FILENO, current, std::strlen(current));
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(2);
}

[[noreturn]] void live_as_child() {
  signal(SIGALRM, &overdue);
  alarm(deadline_seconds);
  const std::string forked_in = current;
  const char* failed = first_failure(forked_in.c_str());
  if (failed != nullptr) std::fprintf(stderr, "%s fails in the child\n", failed);
  _exit(failed == nullptr ? 0 : 1);
}

void at(const void* lock, int end) {
  if (!forking || !seen.insert({lock, end}).second) return;
  forking = false;
  ++children;
  const char* row = current;
  const pid_t child = fork();
  if (child == 0) live_as_child();
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) broken += std::string(row) + (end == 0 ? ", locked; " : ", unlocking; ");
  forking = true;
}

bool is_static(const void* address) {
  return &__data_start <= address && address < &_end;
}

}  // namespace

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __real___cxa_guard_acquire(std::int64_t* guard);
void __real___cxa_guard_release(std::int64_t* guard);
bool __real__ZN4velo4core12process_lock4lockEv(void* lock);
void __real__ZN4velo4core12process_lock6unlockEv(void* lock);
void __real__ZN4velo8adapters9fork_lock4lockEv(void* lock);
void __real__ZN4velo8adapters9fork_lock6unlockEv(void* lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  const int status = __real_pthread_mutex_lock(mutex);
  if (is_static(mutex)) at(mutex, 0);
  return status;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (is_static(mutex)) at(mutex, 1);
  return __real_pthread_mutex_unlock(mutex);
}
int __wrap___cxa_guard_acquire(std::int64_t* guard) {
  const int mine = __real___cxa_guard_acquire(guard);
  if (mine != 0) at(guard, 0);
  return mine;
}
void __wrap___cxa_guard_release(std::int64_t* guard) {
  at(guard, 1);
  __real___cxa_guard_release(guard);
}
bool __wrap__ZN4velo4core12process_lock4lockEv(void* lock) {
  const bool taken_over = __real__ZN4velo4core12process_lock4lockEv(lock);
  at(lock, 0);
  return taken_over;
}
void __wrap__ZN4velo4core12process_lock6unlockEv(void* lock) {
  at(lock, 1);
  __real__ZN4velo4core12process_lock6unlockEv(lock);
}
void __wrap__ZN4velo8adapters9fork_lock4lockEv(void* lock) {
  __real__ZN4velo8adapters9fork_lock4lockEv(lock);
  at(lock, 0);
}
void __wrap__ZN4velo8adapters9fork_lock6unlockEv(void* lock) {
  at(lock, 1);
  __real__ZN4velo8adapters9fork_lock6unlockEv(lock);
}

}  // extern "C"

TEST_CASE("a child of a fork under any lock of the process can do everything") {
  every_call_row();  // makes the test's own constants
  forking = true;
  const char* failed = first_failure();
  forking = false;
  INFO((failed == nullptr ? "" : failed));
  CHECK(failed == nullptr);
  CHECK(broken.empty());
  // Handles of six kinds, signatures, closures, two locks of the adapters; each at both ends.
  CHECK(children >= 20);
}
