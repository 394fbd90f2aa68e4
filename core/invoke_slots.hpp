// The functions that stand in for made ones: 64 slots, each with an entry compiled beforehand.
//
// An entry knows its slot by its template argument and hands the words it received to the slot's
// body. Two entries a slot: one takes six words, which the calling conventions of x86-64 and
// AArch64 pass in registers, one takes eight. A caller that passes fewer leaves the others unread.
// Taking and giving back a slot is one atomic exchange.
#pragma once

#include <atomic>
#include <utility>

#include "core/invoke.hpp"

namespace velo::core::slots {

inline constexpr int count = 64;
inline constexpr int max_words = 8;

struct slot {
  std::atomic<bool> taken{false};
  made_function::body_fn body = nullptr;
  void* user = nullptr;
};
inline slot all[count];

using words6 = std::int32_t (*)(void*, void*, void*, void*, void*, void*);
using words8 = std::int32_t (*)(void*, void*, void*, void*, void*, void*, void*, void*);

template <int Slot, class... Words>
std::int32_t entry(Words... words) {
  word arguments[sizeof...(Words)];
  int i = 0;
  ((arguments[i++].pointer = words), ...);
  return all[Slot].body(all[Slot].user, arguments);
}

template <int... Slots>
void* entry_of(int slot, bool eight, std::integer_sequence<int, Slots...>) {
  static constexpr words6 sixes[] = {&entry<Slots>...};
  static constexpr words8 eights[] = {&entry<Slots>...};
  return eight ? reinterpret_cast<void*>(eights[slot]) : reinterpret_cast<void*>(sixes[slot]);
}
inline void* entry_of(int slot, bool eight) {
  return entry_of(slot, eight, std::make_integer_sequence<int, count>());
}

// A free slot with its body set, -1 when all are taken.
inline int take(made_function::body_fn body, void* user) noexcept {
  for (int i = 0; i < count; ++i) {
    if (all[i].taken.exchange(true, std::memory_order_acquire)) continue;
    all[i].body = body;
    all[i].user = user;
    return i;
  }
  return -1;
}

inline void give_back(int slot) noexcept {
  all[slot].taken.store(false, std::memory_order_release);
}

}  // namespace velo::core::slots
