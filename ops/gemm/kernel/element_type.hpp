// The element types that products multiply.
#pragma once

namespace velo::ops {

enum class element_type : int { f32, bf16 };  // sums are f32 for either

}  // namespace velo::ops
