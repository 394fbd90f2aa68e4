// Handles: what a velo_stream, velo_context .. pointer is, and how a wrong one is told from a right
// one.
//
// An object lives in a slot of a slab of its kind. A slot is 64-byte aligned and begins with a
// header: magic, the copy of velo it belongs to (a process may hold several, of several releases),
// kind, and a tag that counts lives (generation) and says whether the slot is in use. The handle is
// the slot's address with the generation in its six low bits, so a destroyed handle is refused even
// after its slot has a new tenant; slots are reused in FIFO order, and a stale handle could only be
// taken for a live one after 64 reuses of that very slot.
//
// Slabs are the one piece of process-wide mutable state in velo: constant-initialized, grown on
// demand, never freed, because a stale handle must stay readable to be refused. What a slab costs:
// 64 bytes and the object per slot. Resolving costs five loads of one line and no system call;
// making and destroying take a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "velo/types.h"

namespace velo::core {

// In the order in which a context destroys what it owns.
enum class kind : std::uint8_t { stream, closure, kernel, pack, event, context };
inline constexpr int kind_count = 6;

// Says which kind of handle an object of type T has: specialize with `using handle` and `static
// constexpr kind id`.
template <class T>
struct handle_traits;

struct slot_header {
  std::uint32_t magic;
  kind what;
  const void* library;  // magic and this keep their places: another release reads no further
  std::atomic<std::uint32_t> tag;  // generation << 1 | live
  std::atomic<std::uint32_t>
      epoch;  // process generation the object was made in: another one after fork
  std::atomic<const void*> owner;  // the context of the object; nullptr for a context itself
  void (*destroy)(slot_header*) noexcept;
  slot_header* next;  // in the free list, or in the list of all slots of a slab
  slot_header* next_slot;
};
inline constexpr std::size_t header_bytes = 64;
static_assert(sizeof(slot_header) <= header_bytes);

// The untyped half, handle.cpp.
slot_header* reserve_slot(kind what, std::size_t object_bytes);  // throws bad_alloc
void publish_slot(slot_header* slot, const void* owner, void (*destroy)(slot_header*) noexcept);
void retire_slot(slot_header* slot) noexcept;   // handles to it are refused from here on
void recycle_slot(slot_header* slot) noexcept;  // the object is gone; the slot may be reused
slot_header* find_slot(const void* handle, kind wanted,
                       const char* argument);    // throws NULL, HANDLE, STATE
void destroy_owned(const void* owner) noexcept;  // every live object of a context, kind by kind

inline const void* handle_of_slot(const slot_header* slot) {
  const auto generation = slot->tag.load(std::memory_order_relaxed) >> 1;
  return reinterpret_cast<const char*>(slot) + (generation & 63u);
}

template <class T>
T* object_in(slot_header* slot) {
  return std::launder(reinterpret_cast<T*>(reinterpret_cast<char*>(slot) + header_bytes));
}

// The object behind a handle. argument: as the caller spells it, "stream".
template <class T>
T& resolve(typename handle_traits<T>::handle handle, const char* argument) {
  return *object_in<T>(find_slot(handle, handle_traits<T>::id, argument));
}

// The handle of an object made by make_object.
template <class T>
typename handle_traits<T>::handle handle_of(const T& object) {
  const auto* slot =
      reinterpret_cast<const slot_header*>(reinterpret_cast<const char*>(&object) - header_bytes);
  return static_cast<typename handle_traits<T>::handle>(const_cast<void*>(handle_of_slot(slot)));
}

template <class T>
void destroy_object(slot_header* slot) noexcept {
  retire_slot(slot);
  object_in<T>(slot)->~T();
  recycle_slot(slot);
}

// Makes an object in a slot. owner: its context (destroying that destroys this too), or nullptr.
template <class T, class... Args>
T& make_object(const void* owner, Args&&... args) {
  static_assert(alignof(T) <= 64);
  slot_header* slot = reserve_slot(handle_traits<T>::id, sizeof(T));
  T* object = nullptr;
  try {
    object = new (reinterpret_cast<char*>(slot) + header_bytes) T(std::forward<Args>(args)...);
  } catch (...) {
    recycle_slot(slot);
    throw;
  }
  publish_slot(slot, owner, &destroy_object<T>);
  return *object;
}

// Destroys what a handle names; throws as resolve does.
template <class T>
void destroy_handle(typename handle_traits<T>::handle handle, const char* argument) {
  destroy_object<T>(find_slot(handle, handle_traits<T>::id, argument));
}

}  // namespace velo::core
