// The table of all exported functions, for hosts, and their look-up by name, for velo_invoke.
#pragma once

#include "core/invoke.hpp"
#include "velo/api.h"

namespace velo::capi {

const velo_api& api_table() noexcept;  // its `abi` is the newest that this library offers

const core::function_info* find_function(const char* name) noexcept;  // nullptr: none
core::any_function address_of(const core::function_info& function) noexcept;

}  // namespace velo::capi
