// The list of objects in use by a thread, and the refusal to destroy them.
#include "core/handle/inside.hpp"

#include <algorithm>

#include "core/failure.hpp"

namespace velo::core {
namespace {

const void* handle_in(std::uintptr_t word) noexcept {
  return reinterpret_cast<const void*>(word & ~std::uintptr_t{63});
}
part part_in(std::uintptr_t word) noexcept {
  return static_cast<part>(word & 63);
}

}  // namespace

__thread inside_scope::list inside_scope::here;

bool is_inside(const void* handle) noexcept {
  const inside_scope::list& mine = inside_scope::here;
  if (mine.count > inside_scope::most) return true;
  return std::any_of(mine.notes, mine.notes + mine.count, [&](std::uintptr_t word) {
    return handle_in(word) == handle || owner_of_misused(handle_in(word)) == handle;
  });
}

bool carries_for(const void* owner) noexcept {
  const inside_scope::list& mine = inside_scope::here;
  const std::uintptr_t* end = mine.notes + std::min(mine.count, inside_scope::most);
  return std::any_of(mine.notes, end, [&](std::uintptr_t word) {
    return part_in(word) == part::carries && owner_of_misused(handle_in(word)) == owner;
  });
}

bool inside_scope::has(const void* handle, part how) const noexcept {
  const std::uintptr_t wanted = word_of(handle, how);
  for (std::uint32_t i = 0; i < std::min(of_.count, most); ++i)
    if (of_.notes[i] == wanted) return true;
  return false;
}

bool is_inside(const void* handle, part how) noexcept {
  return inside_scope().has(handle, how);
}

void require_outside(const void* handle, const char* argument) {
  if (!is_inside(handle)) return;
  fail(VELO_ERR_STATE, argument,
       text("%s that no unfinished call of this thread uses", slot_named(handle)->kind->live()),
       "one in use by the call whose function of the host this is");
}

}  // namespace velo::core
