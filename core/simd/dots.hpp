// Sums of lanes side by side and far prefetches of the vector type that a file is compiled for,
// with the operations on bytes; nothing in files compiled for no instruction set.
#pragma once

#include "core/simd/bytes.hpp"

#if defined(__AVX512F__)
#include "core/simd/avx512_dots.hpp"
#elif defined(__AVX2__)
#include "core/simd/avx2_dots.hpp"
#endif
