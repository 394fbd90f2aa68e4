// See system.hpp.
#include "tests/memory/system.hpp"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tests/memory/swap/disk_system.hpp"

namespace velo::testing {

system_calls& calls() {
  static system_calls all;
  return all;
}

namespace {

bool refuses(bool commit) {
  system_calls& c = calls();
  if (c.remaining < 0 || (c.only_commits && !commit)) return false;
  if (c.remaining > 0) return --c.remaining, false;
  if (!c.all_later) c.remaining = -1;
  c.refused = true;
  errno = ENOMEM;
  return true;
}

}  // namespace
}  // namespace velo::testing

using velo::testing::calls;
using velo::testing::refuses;

extern "C" {

void* __real_mmap(void*, size_t, int, int, int, off_t);
int __real_munmap(void*, size_t);
void* __real_mremap(void*, size_t, size_t, int, ...);
long __real_syscall(long, long, long, long, long, long, long);
int __real_ioctl(int, unsigned long, void*);
int __real_mprotect(void*, size_t, int);
int __real_madvise(void*, size_t, int);
int __real_memfd_create(const char*, unsigned);
int __real_ftruncate(int, off_t);
int __real_fallocate(int, int, off_t, off_t);
int __real_pthread_key_create(pthread_key_t*, void (*)(void*));
ssize_t __real_write(int, const void*, size_t);
int __real_close(int);
int __real_rename(const char*, const char*);
std::FILE* __real_fopen(const char*, const char*);

void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (refuses(false)) return MAP_FAILED;
  void* made = __real_mmap(at, bytes, protection, flags, file, offset);
  if (made != MAP_FAILED && (flags & MAP_FIXED) == 0)  // fixed: in the place of what was mapped
    calls().mapped += static_cast<std::int64_t>(bytes);
  return made;
}
void* __wrap_mremap(void* at, size_t bytes, size_t to_bytes, int flags, void* to) {
  if (calls().no_moves) return errno = EINVAL, MAP_FAILED;
  if (refuses(false)) return MAP_FAILED;
  ++calls().moves;
  return __real_mremap(at, bytes, to_bytes, flags, to);
}
// Six words, as many as a call may have.
long __wrap_syscall(long call, long a, long b, long c, long d, long e, long f) {
  if (call == SYS_userfaultfd && (calls().no_mover || calls().no_moves)) return errno = ENOSYS, -1;
  if (call == SYS_userfaultfd && refuses(false)) return -1;
  return __real_syscall(call, a, b, c, d, e, f);
}
int __wrap_ioctl(int file, unsigned long what, void* argument) {
  if (_IOC_TYPE(what) != UFFDIO) return __real_ioctl(file, what, argument);
  if (refuses(false)) return -1;
  if (_IOC_NR(what) == 5 && calls().busy_pages) return errno = EBUSY, -1;
  const int done = __real_ioctl(file, what, argument);
  if (_IOC_NR(what) == 5 && done == 0) ++calls().moves_alone;
  return done;
}
std::FILE* __wrap_fopen(const char* path, const char* mode) {
  const std::string name = path, list = "/proc/self/cgroup", root = "/sys/fs/cgroup";
  const std::string& groups = calls().groups;
  if (groups.empty() || (name != list && name.compare(0, root.size(), root) != 0))
    return __real_fopen(path, mode);
  const std::string other = name == list ? "/list" : name.substr(root.size());
  return __real_fopen((groups + other).c_str(), mode);
}
int __wrap_munmap(void* at, size_t bytes) {
  calls().mapped -= static_cast<std::int64_t>(bytes);
  return __real_munmap(at, bytes);
}
int __wrap_mprotect(void* at, size_t bytes, int protection) {
  return refuses(true) ? -1 : __real_mprotect(at, bytes, protection);
}
int __wrap_madvise(void* at, size_t bytes, int advice) {
  if (calls().no_release && advice == MADV_DONTNEED) return errno = EINVAL, -1;
  return refuses(false) ? -1 : __real_madvise(at, bytes, advice);
}
// The system's own: the functions of sanitizers lock nothing, and say they did.
int __wrap_mlock(const void* at, size_t bytes) {
  return static_cast<int>(
      __real_syscall(SYS_mlock, reinterpret_cast<long>(at), static_cast<long>(bytes), 0, 0, 0, 0));
}
int __wrap_munlock(const void* at, size_t bytes) {
  return static_cast<int>(__real_syscall(SYS_munlock, reinterpret_cast<long>(at),
                                         static_cast<long>(bytes), 0, 0, 0, 0));
}
int __wrap_memfd_create(const char* name, unsigned flags) {
  return refuses(false) ? -1 : __real_memfd_create(name, flags);
}
int __wrap_ftruncate(int file, off_t bytes) {
  return refuses(true) ? -1 : __real_ftruncate(file, bytes);
}
int __wrap_fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (calls().no_release) return errno = EOPNOTSUPP, -1;
  const velo::testing::disk_calls& d = velo::testing::disk();
  if (mode == 0 && d.no_space != 0 && (!d.no_space_large || bytes > 4096))
    return errno = d.no_space, -1;
  return refuses(false) ? -1 : __real_fallocate(file, mode, offset, bytes);
}
int __wrap_pthread_key_create(pthread_key_t* key, void (*ends)(void*)) {
  return calls().no_keys ? EAGAIN : __real_pthread_key_create(key, ends);
}
ssize_t __wrap_write(int file, const void* bytes, size_t count) {
  if (calls().write_error != 0) return errno = calls().write_error, -1;
  return __real_write(file, bytes, calls().write_short ? std::min<size_t>(count, 1000) : count);
}
int __wrap_close(int file) {
  const int done = __real_close(file);
  return calls().close_error != 0 ? (errno = calls().close_error, -1) : done;
}
int __wrap_rename(const char* from, const char* to) {
  return calls().rename_error != 0 ? (errno = calls().rename_error, -1) : __real_rename(from, to);
}
}
