// Every exported function, as a table for hosts and by name for velo_invoke.
#pragma once

#include "core/invoke.hpp"
#include "velo/api.h"

namespace velo::capi {

inline constexpr std::uint32_t abi_offered =
    100;  // newest ABI of this library, major * 100 + minor

const velo_api& api_table() noexcept;

const core::function_info* find_function(const char* name) noexcept;  // nullptr: none
core::any_function address_of(const core::function_info& function) noexcept;

}  // namespace velo::capi
