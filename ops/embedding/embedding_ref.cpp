// embedding's gradient in plain loops: the truth the other kernels are held to.
#include "core/simd/scalar.hpp"
#include "ops/embedding/embedding.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void add(const embedding_row<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) s.dtable[i] += simd::to_float(s.dy[i]);
}

}  // namespace

void embedding_add(const embedding_row<float>& s) {
  add(s);
}
void embedding_add(const embedding_row<simd::bf16>& s) {
  add(s);
}

}  // namespace velo::ops::reference
