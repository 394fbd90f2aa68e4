// Which ISA this machine has: CPUID, XCR0 and, for AMX, the permission of Linux.
//
// An ISA is granted only when every feature its kernels are compiled with is present, the system
// saves its registers, and all ISAs below it are granted. Asking for AMX permission is the one
// lasting act: Linux grants it to the whole process, once, and asking again is free.
#include <sys/syscall.h>
#include <unistd.h>

#include "core/cpu.hpp"
#include "core/cpuid.hpp"

namespace velo::core {
namespace {

struct machine {
  unsigned one_c, seven_a, seven_b, seven_d, seven_one_a;
  std::uint64_t saved;  // XCR0: the register files the system saves on a switch

  bool saves(std::uint64_t files) const { return (saved & files) == files; }
};

machine this_machine() {
  const registers one = cpuid(1), seven = cpuid(7), seven_one = cpuid(7, 1);
  unsigned low = 0, high = 0;
  if (bit(one.c, 27)) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // OSXSAVE
  return {one.c,
          seven.a,
          seven.b,
          seven.d,
          seven.a < 1 ? 0 : seven_one.a,
          (static_cast<std::uint64_t>(high) << 32) | low};
}

bool amx_permitted() {
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

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
    {isa::avx512_bf16, [](const machine& m) { return bit(m.seven_one_a, 5); }},
    {isa::amx,
     [](const machine& m) {
       return m.saves(0x60000) && bit(m.seven_d, 22) && bit(m.seven_d, 24) && amx_permitted();
     }},
};

}  // namespace

isa detect_isa() {
  const machine m = this_machine();
  isa highest = isa::scalar;
  for (const detection& d : detections) {
    if (!d.present(m)) break;
    highest = d.which;
  }
  return highest;
}

}  // namespace velo::core
