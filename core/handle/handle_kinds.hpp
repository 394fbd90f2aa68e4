// The kinds of handles of all modules, as the spec declares them: one object of `handle_kind` each,
// `kinds::stream` for velo_stream.
//
// The names come from abi/spec alone, so a module gets a kind by declaring it there. What a layer
// does with its kind is its own: it specializes handle_traits for the type of its objects.
#pragma once

#include "core/handle/handle.hpp"

namespace velo::core::kinds {

#define VELO_HANDLE(name, article, order) extern handle_kind name;
#include "abi/generated/handles.inc"
#undef VELO_HANDLE

}  // namespace velo::core::kinds
