// OpenBLAS in f32 (Debian's build has no bf16 product). Its core type is forced by the
// environment before it is loaded, since its own choice on recent processors is an AVX2
// kernel; see bench_ops.cpp.
#include <cblas.h>

#include "bench/peers/peers.hpp"

namespace velo::bench::openblas {

std::string version() {
  return std::string("OpenBLAS ") + openblas_get_corename();
}

void set_threads(int threads) {
  openblas_set_num_threads(threads);
}

bound_call matmul(const product& p, const void* a, const void* b, void* c) {
  if (p.type != dtype::f32 || p.packed) return {};
  return [=] {
    const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n);
    const auto k = static_cast<blasint>(p.k);
    cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
                p.transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1.0f,
                static_cast<const float*>(a), p.transpose_a ? m : k, static_cast<const float*>(b),
                p.transpose_b ? k : n, p.accumulate_f32 ? 1.0f : 0.0f, static_cast<float*>(c), n);
  };
}

}  // namespace velo::bench::openblas
