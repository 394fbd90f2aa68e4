// The libraries velo is measured against in the same process: oneDNN called directly and OpenBLAS.
//
// Each function binds one problem to its buffers and returns the call to be timed; whatever a user
// would do once (making the primitive, packing the weights) happens while binding. An empty call
// means that the peer is absent or does not offer the problem. Peers are optional: CMake links the
// real file of each or the `_absent` one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/harness/dtype.hpp"

namespace velo::bench {

// c[m,n] = a b with a [m,k] (or [k,m] transposed) and b [k,n] (or [n,k]), row-major.
struct product {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  dtype type = dtype::f32;
  bool packed = false;          // b is brought into the library's own layout beforehand
  bool accumulate_f32 = false;  // c is f32 whatever the inputs, and is added to
};

using bound_call = std::function<void()>;

namespace onednn {
std::string version();  // empty when absent
void set_threads(int threads);
bound_call matmul(const product& p, const void* a, const void* b, void* c);
std::string matmul_kernel(const product& p);  // the implementation it picks, "brg:avx512_core" say
bound_call cast(dtype from, dtype to, std::int64_t rows, std::int64_t columns, const void* in,
                void* out);
bound_call add(dtype type, std::int64_t rows, std::int64_t columns, const void* a, const void* b,
               void* c);
bound_call layer_norm(dtype type, std::int64_t rows, std::int64_t columns, const void* x, void* y);
}  // namespace onednn

namespace openblas {
std::string version();  // with the core type in use
void set_threads(int threads);
bound_call matmul(const product& p, const void* a, const void* b, void* c);
}  // namespace openblas

}  // namespace velo::bench
