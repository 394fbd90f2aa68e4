// Detection of the processor: ISAs are named, ordered and bounded, and nothing is asked of Linux
// before it is needed. The program stands between velo and syscall (--wrap) for that.
#include "core/host/cpu.hpp"

#include <sys/syscall.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "core/context.hpp"
#include "core/simd/detect.hpp"

using namespace velo::core;

namespace {

std::atomic<int> requests{0};  // for the registers of AMX
std::atomic<bool> grants{true};

}  // namespace

extern "C" long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number != SYS_arch_prctl) return __real_syscall(number, a, b, c, d, e, f);
  ++requests;
  return grants ? 0 : -1;
}

TEST_CASE("every ISA has a name that parses back") {
  for (int i = 0; i < 5; ++i) {
    isa found{};
    REQUIRE(parse_isa(isa_name(static_cast<isa>(i)), found));
    CHECK(found == static_cast<isa>(i));
  }
  isa found = isa::avx2;
  CHECK_FALSE(parse_isa("sse9", found));
  CHECK(found == isa::avx2);
}

TEST_CASE("AMX is found without asking Linux for it, and asked for once, by who uses it") {
  constexpr unsigned all = ~0u;
  const machine everything = {all, all, all, all, all, all, ~std::uint64_t{0}};
  CHECK(highest_isa(everything) == isa::amx);
  machine no_tiles = everything;
  no_tiles.saved = 0xe7;  // a system that does not save their registers
  CHECK(highest_isa(no_tiles) == isa::avx512_bf16);
  context_options options;
  options.config_json = R"({"isa": "scalar"})";
  destroy_handle<context>(handle_of(make_context(options)), "context");
  for (const isa below : {isa::scalar, isa::avx2, isa::avx512, isa::avx512_bf16})
    CHECK(permitted(below));
  CHECK(requests == 0);
  grants = false;
  CHECK_FALSE(permitted(isa::amx));
  grants = true;
  CHECK_FALSE(permitted(isa::amx));  // results may not change in the middle
  CHECK(requests == 1);
}

TEST_CASE("the machine offers at least one thread and a first-level cache") {
  CHECK(usable_threads() >= 1);
  const cache_sizes sizes = detect_caches();
  CHECK(sizes.l1d >= 8 << 10);
  CHECK(sizes.l2 >= sizes.l1d);
}
