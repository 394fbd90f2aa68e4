// rotary_position_embedding in plain loops and double: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/rope/rotary_position_embedding.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

// The features of pair p: first and second.
struct pair {
  std::int64_t first, second;
  pair(std::int64_t p, std::int64_t rotated, bool interleaved)
      : first(interleaved ? 2 * p : p), second(interleaved ? 2 * p + 1 : p + rotated / 2) {}
};

template <class T>
void turn(const rotary_slice<T>& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.x_stride;
    T* y = s.y + r * s.y_stride;
    const float* cos = s.cos + r * s.table_stride;
    const float* sin = s.sin + r * s.table_stride;
    for (std::int64_t p = 0; p < s.rotated / 2; ++p) {
      const pair f(p, s.rotated, s.interleaved);
      const double a = to_float(x[f.first]);
      const double b = to_float(x[f.second]);
      if (s.inverse) {
        simd::assign(y[f.first], a * cos[f.first] + b * sin[f.second]);
        simd::assign(y[f.second], b * cos[f.second] - a * sin[f.first]);
      } else {
        simd::assign(y[f.first], a * cos[f.first] - b * sin[f.first]);
        simd::assign(y[f.second], b * cos[f.second] + a * sin[f.second]);
      }
    }
    for (std::int64_t i = s.rotated; i < s.width; ++i) y[i] = x[i];
  }
}

template <class T>
void table(const rotary_table_row<T>& s) {
  for (std::int64_t p = 0; p < s.rotated / 2; ++p) {
    const pair f(p, s.rotated, s.interleaved);
    const double a = to_float(s.x[f.first]);
    const double b = to_float(s.x[f.second]);
    simd::assign(s.dcos[f.first], s.dcos[f.first] + to_float(s.dy[f.first]) * a);
    simd::assign(s.dcos[f.second], s.dcos[f.second] + to_float(s.dy[f.second]) * b);
    simd::assign(s.dsin[f.first], s.dsin[f.first] - to_float(s.dy[f.first]) * b);
    simd::assign(s.dsin[f.second], s.dsin[f.second] + to_float(s.dy[f.second]) * a);
  }
}

}  // namespace

extern const rotary_position_embedding_kernels rotary_position_embedding = {
    {turn<float>, turn<simd::bf16>, turn<simd::f16>},
    {table<float>, table<simd::bf16>, table<simd::f16>}};

}  // namespace velo::ops::reference
