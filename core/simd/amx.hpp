// avx512_bf16.hpp for processors that also have tiles. Only files compiled for AMX may include
// this; VELO_TILES tells them that the tile intrinsics are available.
#pragma once

#include "core/simd/avx512_bf16.hpp"

#define VELO_TILES

namespace velo::simd::amx {
using namespace avx512_bf16;
}  // namespace velo::simd::amx
