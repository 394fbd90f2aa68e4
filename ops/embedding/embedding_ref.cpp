// embedding's gradient in plain loops: the reference for the other kernels.
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/embedding/embedding.hpp"

namespace velo::ops::reference {
namespace {

void copy_row(const row_copy& s) {
  std::memcpy(s.to, s.from, static_cast<std::size_t>(s.bytes));
}

template <class T>
void add(const embedding_row<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i)
    s.dtable[i] = (s.add ? s.dtable[i] : 0.0f) + simd::to_float(s.dy[i]);
}

}  // namespace

extern const embedding_kernels embedding = {copy_row,
                                            {add<float>, add<simd::bf16>, add<simd::f16>}};

}  // namespace velo::ops::reference
