// avx512_bf16.hpp for processors with tiles beside the vectors. Only files compiled for AMX may
// include this; VELO_TILES tells them that the tile intrinsics are there.
#pragma once

#include "core/simd/avx512_bf16.hpp"

#define VELO_TILES

namespace velo::simd::amx {
using namespace avx512_bf16;
}  // namespace velo::simd::amx
