// velo's own block product in plain vectors of four floats: what any processor of the platform can
// run.
#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

struct vec {
  using lanes = float __attribute__((vector_size(16)));
  using words = std::uint32_t __attribute__((vector_size(16)));
  static constexpr int width = 4;
  lanes v;

  static vec zero() { return {lanes{}}; }
  static vec load(const float* p) {
    vec x;
    __builtin_memcpy(&x.v, p, sizeof x.v);
    return x;
  }
  static vec broadcast(const float* p) { return {lanes{*p, *p, *p, *p}}; }
  static vec fma(vec a, vec b, vec c) { return {a.v * b.v + c.v}; }
  static vec even(const std::uint32_t* p) {
    words w;
    __builtin_memcpy(&w, p, sizeof w);
    return {reinterpret_cast<lanes>(w << 16)};
  }
  static vec odd(const std::uint32_t* p) {
    words w;
    __builtin_memcpy(&w, p, sizeof w);
    return {reinterpret_cast<lanes>(w & 0xffff0000u)};
  }
  static vec widen(const std::uint16_t* p) {
    const words w{p[0], p[1], p[2], p[3]};
    return {reinterpret_cast<lanes>(w << 16)};
  }
  void store(float* p) const { __builtin_memcpy(p, &v, sizeof v); }
};

constexpr int most_rows = 6, most_columns = 2;

#include "ops/gemm/block_portable.inl"

}  // namespace

void portable_block_scalar(const block_shape& shape, const void* a, const void* b, float* c) {
  block_any(shape, a, b, c);
}

}  // namespace velo::ops
