// The kinds of handles of all modules, as the spec declares them: one `handle_kind` object each,
// such as `kinds::stream` for velo_stream.
//
// The names come only from abi/spec, so a module gets a kind by declaring it there. The layer that
// owns a kind specializes handle_traits for the type of its objects.
#pragma once

#include "core/handle/handle.hpp"

namespace velo::core::kinds {

#define VELO_HANDLE(name, article, order) extern handle_kind name;
#include "abi/generated/handles.inc"
#undef VELO_HANDLE

}  // namespace velo::core::kinds
