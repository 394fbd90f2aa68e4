// What the operating system lets this process do. Asked when somebody wants to know, never at load.
#pragma once

namespace velo::core {

// Whether memory may be written and then executed: hardened kernels and sandboxes may refuse it.
bool can_map_code() noexcept;

}  // namespace velo::core
