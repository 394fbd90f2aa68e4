// In the place of the library's question to Linux: tiles in software need nobody's permission.
#include "core/simd/detect.hpp"

bool velo::core::amx_permitted() noexcept {
  return true;
}
