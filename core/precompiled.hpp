// 64 precompiled trampolines, for processes in which libffi may not generate closures.
//
// Each trampoline knows its index by its template argument and passes the words that it received to
// the body stored there. Every index has two trampolines: one takes six words, which the calling
// conventions of x86-64 and AArch64 pass in registers, one takes eight. A caller that passes fewer
// leaves the others unread. Taking and giving back an index is one atomic exchange.
#pragma once

#include <atomic>
#include <utility>

#include "core/invoke.hpp"

namespace velo::core::precompiled {

inline constexpr int count = 64;
inline constexpr int max_words = 8;

struct place {
  std::atomic<bool> taken{false};
  made_function::body_fn body = nullptr;
  void* user = nullptr;
};
inline place all[count];

using words6 = std::int64_t (*)(void*, void*, void*, void*, void*, void*);
using words8 = std::int64_t (*)(void*, void*, void*, void*, void*, void*, void*, void*);

template <int Place, class... Words>
std::int64_t entry(Words... words) {
  word arguments[sizeof...(Words)];
  int i = 0;
  ((arguments[i++].pointer = words), ...);
  return all[Place].body(all[Place].user, arguments).i64;
}

template <int... Places>
void* entry_of(int place, bool eight, std::integer_sequence<int, Places...>) {
  static constexpr words6 sixes[] = {&entry<Places>...};
  static constexpr words8 eights[] = {&entry<Places>...};
  return eight ? reinterpret_cast<void*>(eights[place]) : reinterpret_cast<void*>(sixes[place]);
}
inline void* entry_of(int place, bool eight) {
  return entry_of(place, eight, std::make_integer_sequence<int, count>());
}

// Takes a free index and sets its body; -1: none is free.
inline int take(made_function::body_fn body, void* user) noexcept {
  for (int i = 0; i < count; ++i) {
    if (all[i].taken.exchange(true, std::memory_order_acquire)) continue;
    all[i].body = body;
    all[i].user = user;
    return i;
  }
  return -1;
}

inline void give_back(int place) noexcept {
  all[place].taken.store(false, std::memory_order_release);
}

}  // namespace velo::core::precompiled
