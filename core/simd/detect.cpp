// Detects the highest ISA of this machine by CPUID and XCR0.
//
// An ISA is available only if every feature its kernels are compiled with is present, the system
// saves its registers, and all ISAs below it are available. No permission is requested here: AMX
// also needs Linux's permission, which its users request (permission.cpp).
#include "core/simd/detect.hpp"

#include <atomic>

#include "core/host/cpuid.hpp"

namespace velo::core {
machine this_machine() {
  const registers one = cpuid(1), seven = cpuid(7), seven_one = cpuid(7, 1);
  unsigned low = 0, high = 0;
  if (bit(one.c, 27)) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // OSXSAVE
  return {one.c,
          seven.a,
          seven.b,
          seven.c,
          seven.d,
          seven.a < 1 ? 0 : seven_one.a,
          (static_cast<std::uint64_t>(high) << 32) | low};
}

namespace {

struct detection {
  isa which;
  bool (*present)(const machine& m);
};

// Lowest first.
constexpr detection detections[] = {
    {isa::avx2,
     [](const machine& m) {  // FMA, AVX, F16C, AVX2
       return m.saves(0x6) && bit(m.one_c, 12) && bit(m.one_c, 28) && bit(m.one_c, 29) &&
              bit(m.seven_b, 5);
     }},
    {isa::avx512,
     [](const machine& m) {  // F, DQ, BW, VL
       return m.saves(0xe6) && bit(m.seven_b, 16) && bit(m.seven_b, 17) && bit(m.seven_b, 30) &&
              bit(m.seven_b, 31);
     }},
    {isa::avx512_bf16,
     [](const machine& m) {  // BF16, and VNNI, which all processors with it have
       return bit(m.seven_one_a, 5) && bit(m.seven_c, 11);
     }},
    {isa::amx,
     [](const machine& m) {  // BF16, TILE, INT8
       return m.saves(0x60000) && bit(m.seven_d, 22) && bit(m.seven_d, 24) && bit(m.seven_d, 25);
     }},
};

}  // namespace

isa highest_isa(const machine& m) {
  isa highest = isa::scalar;
  for (const detection& d : detections) {
    if (!d.present(m)) break;
    highest = d.which;
  }
  return highest;
}

// Detected once and stored in an atomic, for the reasons given at detect_caches.
isa detect_isa() {
  static std::atomic<int> known{-1};
  int which = known.load(std::memory_order_relaxed);
  if (which < 0) {
    which = static_cast<int>(highest_isa(this_machine()));
    known.store(which, std::memory_order_relaxed);
  }
  return static_cast<isa>(which);
}

}  // namespace velo::core
