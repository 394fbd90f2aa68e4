// The function table and its functions' signatures, both generated. A function's address is read
// from its slot.
#include "capi/src/api_table.hpp"

#include <cstddef>
#include <cstring>

#include "velo/velo.h"

namespace velo::capi {
namespace {

using core::direction;
using core::function_info;
using core::parameter_info;
using core::thread_class;
using core::value_type;
#include "abi/generated/functions.inc"

constexpr velo_api table = {
    sizeof(velo_api),
#include "abi/generated/api_table.inc"
};

}  // namespace

const velo_api& api_table() noexcept {
  return table;
}

const core::function_info* find_function(const char* name) noexcept {
  for (const function_info& function : functions)
    if (std::strcmp(function.name, name) == 0) return &function;
  return nullptr;
}

core::any_function address_of(const core::function_info& function) noexcept {
  core::any_function address = nullptr;
  std::memcpy(&address, reinterpret_cast<const char*>(&table) + function.slot, sizeof address);
  return address;
}

}  // namespace velo::capi
