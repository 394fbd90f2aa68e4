// See disk_system.hpp. Requests come from threads of the swap's; what they look at is set before
// they begin.
#include "tests/memory/swap/disk_system.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <mutex>
#include <thread>

namespace velo::testing {

disk_calls& disk() {
  static disk_calls all;
  return all;
}

namespace {

using fault = disk_calls::fault;

std::mutex lock;

}  // namespace

void end_faults() {
  const std::lock_guard<std::mutex> held(lock);
  disk() = disk_calls{};
}

int writes_under_way() {
  const std::lock_guard<std::mutex> held(lock);
  return disk().inside;
}

namespace {

// A write among others.
void take_time() {
  {
    const std::lock_guard<std::mutex> held(lock);
    disk_calls& d = disk();
    if (!d.slow) return;
    d.together = std::max(d.together, ++d.inside);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::lock_guard<std::mutex> held(lock);
  --disk().inside;
}

// Decides whether one more call fails.
fault strike(bool writes) {
  const std::lock_guard<std::mutex> held(lock);
  disk_calls& d = disk();
  if (d.what == fault::none || d.writes != writes) return fault::none;
  if (d.remaining > 0) return --d.remaining, fault::none;
  const fault now = d.what;
  if (!d.all_later) d.what = fault::none;
  ++d.struck;
  return now;
}

// Half, in whole sectors; what is smaller than two goes as it is.
template <class Int>
Int part_of(Int bytes) {
  return bytes < 8192 ? bytes : bytes / 8192 * 4096;
}

}  // namespace
}  // namespace velo::testing

using namespace velo::testing;
using fault = disk_calls::fault;

extern "C" {

ssize_t __real_pread(int, void*, size_t, off_t);
ssize_t __real_pwrite(int, const void*, size_t, off_t);
int __real_openat(int, const char*, int, ...);
int __real_io_uring_queue_init(unsigned, io_uring*, unsigned);
int __real_io_uring_submit(io_uring*);

ssize_t __wrap_pread(int file, void* to, size_t bytes, off_t at) {
  switch (strike(false)) {
    case fault::error:
      return errno = disk().number, -1;
    case fault::part:
      return __real_pread(file, to, part_of(bytes), at);
    case fault::nothing:
      return 0;
    default:
      return __real_pread(file, to, bytes, at);
  }
}

ssize_t __wrap_pwrite(int file, const void* from, size_t bytes, off_t at) {
  take_time();
  switch (strike(true)) {
    case fault::error:
      return errno = disk().number, -1;
    case fault::part:
      return __real_pwrite(file, from, part_of(bytes), at);
    case fault::nothing:
      return 0;
    default:
      return __real_pwrite(file, from, bytes, at);
  }
}

int __wrap_openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = static_cast<mode_t>(va_arg(more, unsigned));
  va_end(more);
  if (disk().no_nameless && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
  if (disk().no_direct && (flags & O_DIRECT) != 0) return errno = EINVAL, -1;
  return __real_openat(folder, path, flags, mode);
}

int __wrap_io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  return disk().no_ring != 0 ? -disk().no_ring : __real_io_uring_queue_init(entries, ring, flags);
}

// The last request that was put into the ring is the one that is about to go out.
int __wrap_io_uring_submit(io_uring* ring) {
  io_uring_sqe& last = ring->sq.sqes[(ring->sq.sqe_tail - 1) & *ring->sq.kring_mask];
  const bool ours = last.opcode == IORING_OP_READ || last.opcode == IORING_OP_WRITE;
  switch (ours ? strike(last.opcode == IORING_OP_WRITE) : fault::none) {
    case fault::error:
      last.fd = -1;
      break;
    case fault::part:
      last.len = part_of(last.len);
      break;
    case fault::nothing:
      last.len = 0;
      break;
    case fault::refused:
      return -EAGAIN;
    default:
      break;
  }
  return __real_io_uring_submit(ring);
}
}
