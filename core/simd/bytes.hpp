// The operations on integers of 8 and 4 bits of the vector type that a file is compiled for;
// nothing in files compiled for no instruction set. Headers of kernels that need them include it.
#pragma once

#if defined(__AVX512BF16__)
#include "core/simd/avx512_bf16_bytes.hpp"
#elif defined(__AVX512F__)
#include "core/simd/avx512_bytes.hpp"
#elif defined(__AVX2__)
#include "core/simd/avx2_bytes.hpp"
#endif
