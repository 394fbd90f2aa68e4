// How a call reaches a function of the library: through the linked symbol, or through a loaded
// function table.
//
// With VELO_DYNAMIC the table pointer is hidden in the program or plugin that includes this, so
// that two plugins may load two libraries. It is null until velo::load succeeds. An earlier call
// throws VELO_ERR_STATE or, without exceptions, ends the program with a message.
#pragma once

#include "velo/detail/mode.hpp"

#ifdef VELO_DYNAMIC

#include "velo/api.h"

VELO_CPP_BEGIN
namespace detail {
__attribute__((visibility("hidden"))) inline const velo_api* table = nullptr;
[[noreturn]] void not_loaded();  // error.hpp
inline const velo_api& api() {
  if (__builtin_expect(table == nullptr, 0)) not_loaded();
  return *table;
}
}  // namespace detail
VELO_CPP_END

#define VELO_FN(name) (::velo::detail::api().name)
#else
#define VELO_FN(name) (::velo_##name)
#endif
