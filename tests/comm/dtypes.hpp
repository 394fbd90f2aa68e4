// Short names of dtypes.
#pragma once

#include "velo/types.h"

namespace velo::testing {

inline constexpr velo_dtype f32{VELO_DTYPE_FLOAT, 32, 1}, f16{VELO_DTYPE_FLOAT, 16, 1},
    bf16{VELO_DTYPE_BFLOAT, 16, 1}, i64{VELO_DTYPE_INT, 64, 1}, u8{VELO_DTYPE_UINT, 8, 1};

}  // namespace velo::testing
