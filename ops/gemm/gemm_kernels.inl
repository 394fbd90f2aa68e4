// The engine's kernels over the vectors of one instruction set: micro-kernels and moves; included by
// one thin file each, which names `simd`, the vector header's namespace.
#include "ops/gemm/micro_kernel.inl"
#include "ops/gemm/moves.inl"

template <class Operand>
constexpr micro_kernel micro_kernel_of() {
  if constexpr (__is_same(Operand, void)) {
    return nullptr;
  } else {
    return multiply_micro_panel<Operand>;
  }
}

constexpr gemm_kernels kernels_with(const tile_kernels* tiles) {
  return {micro_kernel_of<float_operand>(),
          micro_kernel_of<simd::dot_operand>(),
          tiles,
          f32_moves,
          wide_moves,
          pair_moves,
          strips16};
}
