// Stands in for malloc: counts blocks, and fails on demand.
#include "tests/faults/failing_memory.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace velo::testing {
namespace {

std::atomic<failure_shape> failing{failure_shape::never};
std::atomic<int> remaining{0};  // allocations until the one that fails
std::atomic<int> period{0};     // between those that fail
std::atomic<bool> failed{false};
std::atomic<bool> of_one_thread{false};
std::atomic<std::int64_t> blocks{0};
thread_local bool is_the_thread = false;

bool fails_now() {
  const failure_shape how = failing.load();
  if (how == failure_shape::never || (of_one_thread.load() && !is_the_thread)) return false;
  const int left = remaining.fetch_sub(1);
  if (left > 1 || (left < 1 && how == failure_shape::once)) return false;
  if (how == failure_shape::each) remaining = period.load();
  failed = true;
  errno = ENOMEM;
  return true;
}

void* counted(void* block) {
  if (block != nullptr) ++blocks;
  return block;
}

void begin(failure_shape how, int n, bool here) {
  remaining = period = n;
  failed = false;
  is_the_thread = of_one_thread = here;
  failing = how;
}

}  // namespace

void begin_failing(failure_shape how, int n) {
  begin(how, n, false);
}
void begin_failing_here(failure_shape how, int n) {
  begin(how, n, true);
}
// of_one_thread stays: another thread may have read `failing` already.
bool end_failing() {
  failing = failure_shape::never;
  is_the_thread = false;
  return failed;
}
int allocations() {
  return period - remaining;
}
std::int64_t live_blocks() {
  return blocks;
}

}  // namespace velo::testing

using velo::testing::blocks;
using velo::testing::counted;
using velo::testing::fails_now;

#pragma GCC visibility push(default)  // shared libraries are to call these, too
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

void* malloc(std::size_t bytes) {
  return fails_now() ? nullptr : counted(__libc_malloc(bytes));
}
void* calloc(std::size_t items, std::size_t bytes) {
  return fails_now() ? nullptr : counted(__libc_calloc(items, bytes));
}
void* realloc(void* memory, std::size_t bytes) {
  if (fails_now()) return nullptr;
  void* block = __libc_realloc(memory, bytes);
  return memory == nullptr ? counted(block) : block;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails_now() ? nullptr : counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = fails_now() ? nullptr : counted(__libc_memalign(alignment, bytes));
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  if (memory != nullptr) --blocks;
  __libc_free(memory);
}

}  // extern "C"
#pragma GCC visibility pop
