// Register-only loops at the issue limit of the arithmetic units. Written in assembler because a
// compiler may fold, reorder or spill what is to be counted. Operands are ordinary numbers: zeros
// draw less power and would flatter the clock.
#include <cstdint>

#include "bench/limits/calibration_loops.hpp"

namespace velo::bench {
namespace {

constexpr float half = 0.5f;
constexpr float one = 1;  // products by anything else would end as denormals

// The loop for any x86-64: six products and six sums of four floats, in separate instructions.
void multiply_add_sse2(std::int64_t rounds) {
  asm volatile(
      "movss %[one], %%xmm14\n"
      "shufps $0, %%xmm14, %%xmm14\n"
      ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11\n"
      "movaps %%xmm14, %%xmm\\i\n"
      ".endr\n"
      ".balign 32\n"
      "1:\n"
      ".irp i, 0,1,2,3,4,5\n"
      "mulps %%xmm14, %%xmm\\i\n"
      ".endr\n"
      ".irp i, 6,7,8,9,10,11\n"
      "addps %%xmm14, %%xmm\\i\n"
      ".endr\n"
      "decq %[rounds]\n"
      "jnz 1b\n"
      : [rounds] "+r"(rounds)
      : [one] "m"(one)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14");
}

// 12 accumulators of 8 floats: two units of latency four need eight.
__attribute__((target("avx2,fma"))) void fma_avx2(std::int64_t rounds) {
  asm volatile(
      "vbroadcastss %[half], %%ymm14\n"
      "vbroadcastss %[half], %%ymm15\n"
      ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11\n"
      "vxorps %%ymm\\i, %%ymm\\i, %%ymm\\i\n"
      ".endr\n"
      ".balign 32\n"
      "1:\n"
      ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\i\n"
      ".endr\n"
      "decq %[rounds]\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : [rounds] "+r"(rounds)
      : [half] "m"(half)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
}

// 24 accumulators of 16 floats; `instruction` adds to them from pairs of what `broadcast` spread.
#define VELO_ZMM_LOOP(broadcast, instruction, element)                                            \
  asm volatile(                                                                                   \
      broadcast                                                                                   \
      " %[operand], %%zmm30\n" broadcast                                                          \
      " %[operand], %%zmm31\n"                                                                    \
      ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"                   \
      "vpxorq %%zmm\\i, %%zmm\\i, %%zmm\\i\n"                                                     \
      ".endr\n"                                                                                   \
      ".balign 32\n"                                                                              \
      "1:\n"                                                                                      \
      ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n" instruction       \
      " %%zmm30, %%zmm31, %%zmm\\i\n"                                                             \
      ".endr\n"                                                                                   \
      "decq %[rounds]\n"                                                                          \
      "jnz 1b\n"                                                                                  \
      "vzeroupper\n"                                                                              \
      : [rounds] "+r"(rounds)                                                                     \
      : [operand] "m"(element)                                                                    \
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",     \
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", \
        "xmm20", "xmm21", "xmm22", "xmm23", "xmm30", "xmm31")

__attribute__((target("avx512f"))) void fma_avx512(std::int64_t rounds) {
  VELO_ZMM_LOOP("vbroadcastss", "vfmadd231ps", half);
}

__attribute__((target("avx512f,avx512bf16"))) void dot_bf16(std::int64_t rounds) {
  const std::uint32_t pair = 0x3f003f00u;  // two bf16 halves
  VELO_ZMM_LOOP("vpbroadcastd", "vdpbf16ps", pair);
}

#undef VELO_ZMM_LOOP

// Two tiles of A times two of B into four accumulators: the 32 x 32 block every AMX kernel
// is made of.
void amx_bf16(std::int64_t rounds) {
  alignas(64) std::uint8_t config[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    config[16 + 2 * tile] = 64;  // bytes a row
    config[48 + tile] = 16;      // rows
  }
  alignas(64) std::uint16_t values[512];
  for (std::uint16_t& value : values) value = 0x3f00;
  asm volatile(
      "ldtilecfg %[config]\n"
      "tilezero %%tmm0\n"
      "tilezero %%tmm1\n"
      "tilezero %%tmm2\n"
      "tilezero %%tmm3\n"
      "tileloadd (%[values],%[stride],1), %%tmm4\n"
      "tileloadd (%[values],%[stride],1), %%tmm5\n"
      "tileloadd (%[values],%[stride],1), %%tmm6\n"
      "tileloadd (%[values],%[stride],1), %%tmm7\n"
      ".balign 32\n"
      "1:\n"
      "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n"
      "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
      "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n"
      "tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
      "decq %[rounds]\n"
      "jnz 1b\n"
      "tilerelease\n"
      : [rounds] "+r"(rounds)
      : [config] "m"(config), [values] "r"(values), [stride] "r"(std::int64_t{64})
      : "cc", "memory");
}

}  // namespace

const compute_loop sse2_loop{multiply_add_sse2, 12 * 4.0};
const compute_loop fma_avx2_loop{fma_avx2, 12 * 8 * 2.0};
const compute_loop fma_avx512_loop{fma_avx512, 24 * 16 * 2.0};
const compute_loop dot_bf16_loop{dot_bf16, 24 * 32 * 2.0};
const compute_loop amx_bf16_loop{amx_bf16, 4 * 16 * 16 * 32 * 2.0};

}  // namespace velo::bench
