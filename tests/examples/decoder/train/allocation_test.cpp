// A step after the first asks the system for nothing: malloc, mmap, velo's allocator and what the
// pool reserves are counted while it runs. Where layers are recomputed, the records of regions come
// from malloc.
#include <sys/mman.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/train/trainer.hpp"
#include "tests/examples/decoder/temporary.hpp"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// The program's own definitions come before those of the C library, for libvelo.so as well.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  ++allocations;
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept;
}
#include <sys/syscall.h>
#include <unistd.h>
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  ++allocations;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

TEST_CASE("the counters count") {
  const long before = allocations;
  std::free(std::malloc(100));
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(page, 4096);
  CHECK(allocations - before == 2);
}

TEST_CASE("a training step after the first asks the system for no memory") {
  using namespace decoder;
  struct row {
    const char *dtype, *recompute;
  };
  for (const row& each : {row{"bf16", "none"}, row{"f32", "none"}, row{"bf16", "full"}}) {
    INFO(each.recompute << " in " << each.dtype);
    settings s;
    s.memory.recompute = each.recompute;
    s.model.hidden = 64, s.model.inner = 128, s.model.layers = 2, s.model.dtype = each.dtype;
    s.data.sequence = 64, s.data.batch = 4, s.data.accumulation = 2;
    s.run.threads = 2;
    member one(s);
    const corpus text = split_text(some_text(60000), 1 << 20);
    trainer t(one, s, text);
    t.start();
    t.step();
    const long before = allocations;
    const auto in_velo = one.context().stats().allocations;
    const auto reserved = one.memory().stats().bytes_reserved_peak;
    t.step();
    const auto settled = one.memory().stats().bytes_reserved_peak;
    CHECK(settled <=
          reserved + reserved / 256);  // a few pages, where blocks lie otherwise than at first
    for (int i = 0; i < 4; ++i) t.step();
    if (s.memory.recompute == "none") CHECK(allocations == before);
    CHECK(one.context().stats().allocations == in_velo);
    CHECK(one.memory().stats().bytes_reserved_peak == settled);
  }
}
