// The objects that handle_kinds.hpp declares, initialized before any code runs.
#include "core/handle/handle_kinds.hpp"

namespace velo::core::kinds {

#define VELO_HANDLE(name, article, order) handle_kind name(article, order);
#include "abi/generated/handles.inc"
#undef VELO_HANDLE

}  // namespace velo::core::kinds
