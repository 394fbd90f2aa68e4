// The engine's kernels over the vectors of one instruction set: micro-kernels and reorders. One
// generated file for each includes it and names `v`, the vector header's namespace, and `this_isa`.
#include "ops/gemm/kernel/micro_kernel.inl"
#include "ops/gemm/kernel/panel_rows.inl"
#include "ops/gemm/kernel/reorder.inl"
#include "ops/gemm/kernel/source_panel.inl"

template <class Operand>
constexpr micro_kernel micro_kernel_of() {
  if constexpr (__is_same(Operand, void)) {
    return nullptr;
  } else {
    return multiply_micro_panel<Operand>;
  }
}

#ifdef VELO_TILES
#include "ops/gemm/kernel/tile_kernels.inl"
constexpr const tile_kernels* tiles_here = &tiles;
#else
constexpr const tile_kernels* tiles_here = nullptr;
#endif

constexpr gemm_kernels kernels = {this_isa,
                                  v::width,
                                  micro_kernel_of<float_operand>(),
                                  micro_kernel_of<v::dot_operand>(),
                                  tiles_here,
                                  f32_reorders,
                                  wide_reorders<simd::bf16>,
                                  wide_reorders<simd::f16>,
                                  pair_reorders,
                                  sources,
                                  strips16,
                                  v::fence,
                                  copy_panel_rows};
