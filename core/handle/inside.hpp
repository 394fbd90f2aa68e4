// The objects that unfinished calls of a thread use: the thread is "inside" them.
//
// Such a call may run a function of the host (an allocator, a log function, a reduction ..) and use
// its objects again when that function returns. The function must therefore not destroy them:
// capi::destroy asks is_inside() and refuses. Entries note their arguments (core::use), lanes note
// their owner, and calls of the host's functions note the calling object. A thread that runs
// another thread's call takes over that thread's notes.
//
// Invariant: a note ends with the scope in which it was made. Notes beyond the list's capacity are
// only counted, and then every object counts as in use. A scope or a note costs the look-up of the
// thread's list and a store.
#pragma once

#include <cstdint>

#include "core/handle/handle.hpp"

namespace velo::core {

// A call's use of an object while the host's function runs.
enum class part : std::uintptr_t {
  given,    // the call uses it again afterwards
  carries,  // the thread runs work of the object; waiting for that work here would deadlock
  logs      // the thread writes a log line of the object
};

class inside_scope {
 public:
  inside_scope() noexcept : of_(here), before_(of_.count) { ++of_.open; }
  inside_scope(const void* handle, part how) noexcept : inside_scope() { note(of_, handle, how); }
  ~inside_scope() {
    of_.count = before_;
    --of_.open;
  }
  inside_scope(const inside_scope&) = delete;
  inside_scope& operator=(const inside_scope&) = delete;

  // For this scope, if it is the innermost one: needs no look-up of the thread's list.
  void add(const void* handle, part how) const noexcept { note(of_, handle, how); }
  bool has(const void* handle, part how) const noexcept;

  // For the innermost scope. Does nothing if no scope is open or the handle is nullptr.
  static void note(const void* handle, part how) noexcept { note(here, handle, how); }

  // The notes of a thread, to be taken over by another thread that runs its call.
  static constexpr std::uint32_t most = 32;
  struct list {
    std::uint32_t open, count;
    std::uintptr_t notes[most];
  };
  static list notes() noexcept { return here; }
  static void take_over(const list& notes) noexcept { here = notes; }

 private:
  friend bool is_inside(const void* handle) noexcept;
  friend bool is_inside(const void* handle, part how) noexcept;
  friend bool carries_for(const void* owner) noexcept;

  // Handles are multiples of 64.
  static std::uintptr_t word_of(const void* handle, part how) noexcept {
    return reinterpret_cast<std::uintptr_t>(handle) | static_cast<std::uintptr_t>(how);
  }

  static void note(list& of, const void* handle, part how) noexcept {
    if (of.open == 0 || handle == nullptr) return;
    if (of.count < most) of.notes[of.count] = word_of(handle, how);
    ++of.count;
  }

  static __thread list here;

  list& of_;  // the thread's list, looked up once
  const std::uint32_t before_;
};

// Whether an unfinished call of this thread uses the object or, if it is a context, an object that
// it owns.
bool is_inside(const void* handle) noexcept;
// Whether an unfinished call of this thread has a note of this part.
bool is_inside(const void* handle, part how) noexcept;

// Whether this thread runs work of an object of this owner.
bool carries_for(const void* owner) noexcept;

// Throws STATE when an unfinished call of this thread uses the object of a live handle.
void require_outside(const void* handle, const char* argument);

// As resolve(); the object is in use until the entry's guard ends.
template <class T>
T& use(typename handle_traits<T>::handle handle, const char* argument) {
  T& found = resolve<T>(handle, argument);
  inside_scope::note(handle, part::given);
  return found;
}
template <class T>
T& use(const inside_scope& here, typename handle_traits<T>::handle handle, const char* argument) {
  T& found = resolve<T>(handle, argument);
  here.add(handle, part::given);
  return found;
}

}  // namespace velo::core
