// Memory running out in every function of the API: the n-th allocation of a call fails, by itself,
// with all that follow or with each n-th, for n = 1, 2, .. until a call asks for fewer. Each time
// the status is VELO_ERR_MEMORY, the same call then succeeds as if nothing had been, and nothing is
// lost.
//
// A program of its own, because it stands in for malloc: it counts blocks, and fails on demand, for
// everybody in the process - velo, its worker threads, the libraries below it - and for the host's
// allocator.
#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>

#include "tests/calls/rows.hpp"

namespace {

enum class shape { never, once, from_then_on, each };
std::atomic<shape> failing{shape::never};
std::atomic<int> remaining{0};  // allocations until the one that fails
std::atomic<int> period{0};     // between those that fail
std::atomic<bool> failed{false};
std::atomic<std::int64_t> blocks{0};

bool fails_now() {
  const shape how = failing.load();
  if (how == shape::never) return false;
  const int left = remaining.fetch_sub(1);
  if (left > 1 || (left < 1 && how == shape::once)) return false;
  if (how == shape::each) remaining = period.load();
  failed = true;
  errno = ENOMEM;
  return true;
}

void* counted(void* block) {
  if (block != nullptr) ++blocks;
  return block;
}

}  // namespace

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

namespace {

using namespace velo::testing;

std::int64_t host_bytes = 0;

const velo_allocator host = {
    sizeof(velo_allocator), 0, nullptr,
    [](void*, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
      void* block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      if (block != nullptr) host_bytes += static_cast<std::int64_t>(bytes);
      return block;
    },
    [](void*, void* block, std::uint64_t bytes, const velo_device*, void*) {
      host_bytes -= static_cast<std::int64_t>(bytes);
      std::free(block);
    }};

struct outcome {
  velo_status status;  // of the call whose n-th allocation failed
  velo_status again;   // of the same call after it
  bool failed;         // an allocation did
  char text[400];      // of the thread's record
};

// One round of a row. The text of a loader's failure belongs to the thread: it is taken away.
outcome round_of(const call_row& row, shape how, int n) {
  world w(&host);
  row.begin(w);
  remaining = period = n;
  failed = false;
  failing = how;
  outcome seen{row.call(w), VELO_OK, false, ""};
  failing = shape::never;
  seen.failed = failed;
  velo_error_text(seen.text, sizeof seen.text, nullptr);
  if (seen.status != VELO_OK) seen.again = row.call(w);
  row.end(w);
  while (dlerror() != nullptr) {
  }
  return seen;
}

}  // namespace

TEST_CASE("every function of the spec has a row") {
  const std::vector<std::string> missing = functions_without_a_row();
  INFO("no row in tests/calls/*_rows.cpp: "
       << Catch::StringMaker<std::vector<std::string>>::convert(missing));
  CHECK(missing.empty());
}

TEST_CASE("the stand-in for malloc fails the calls that a test asks for") {
  const std::int64_t before = blocks;
  failing = shape::once;
  remaining = 2;
  void* volatile first = std::malloc(8);
  void* volatile second = std::malloc(8);
  void* volatile third = std::malloc(8);
  failing = shape::never;
  CHECK(blocks == before + 2);
  CHECK(first != nullptr);
  CHECK(second == nullptr);
  CHECK(third != nullptr);
  std::free(first);
  std::free(third);
}

// The answer is remembered for the life of the process, so this test comes before all that ask.
TEST_CASE("whether closures can be made is not remembered from a moment without memory") {
  for (const shape how : {shape::from_then_on, shape::once}) {
    failed = true;
    for (int n = 1; failed; ++n) {
      std::int32_t available = 0;
      remaining = n;
      failed = false;
      failing = how;
      const velo_status status = velo_capability_query(VELO_CAP_CLOSURES, &available);
      failing = shape::never;
      INFO("allocation " << n << ", status " << status);
      CHECK((status == VELO_OK ? available == 1 : status == VELO_ERR_MEMORY));
      REQUIRE(n < 100);
    }
  }
}

TEST_CASE("an allocation that fails is a status in every function, changes and loses nothing") {
  int failures = 0;
  for (const call_row& row : every_call_row()) {
    for (int warm = 0; warm < 3; ++warm) {  // slabs, interned signatures, stacks of threads
      const outcome first = round_of(row, shape::never, 0);
      INFO(row.name);
      REQUIRE(first.status == VELO_OK);
    }
    for (const shape how : {shape::once, shape::from_then_on, shape::each}) {
      bool more = true;
      for (int n = 1; more; ++n) {
        INFO(row.name << ", allocation " << n
                      << (how == shape::once   ? ""
                          : how == shape::each ? " and each as many later"
                                               : " and all later"));
        const std::int64_t before = blocks, bytes = host_bytes;
        const outcome seen = round_of(row, how, n);
        const std::int64_t lost = blocks - before;
        INFO("status " << seen.status << ", then " << seen.again << ": " << seen.text);
        more = seen.failed;
        failures += seen.status != VELO_OK;
        CHECK((seen.status == VELO_OK || (seen.failed && seen.status == VELO_ERR_MEMORY)));
        CHECK(seen.again == VELO_OK);
        CHECK(lost == 0);
        CHECK(host_bytes == bytes);
        REQUIRE(n < 1000);
      }
    }
  }
  CHECK(failures > 900);
}
