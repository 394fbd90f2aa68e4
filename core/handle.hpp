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
// 64 bytes, and for each slot 64 bytes and the object. Resolving costs four loads, of two lines,
// and no call; making and destroying take the lock of the kind and that of the owner, whatever
// else exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "core/process.hpp"
#include "velo/types.h"

namespace velo::core {

// A lock that survives a fork: it remembers the process epoch it was taken in. A fork while another
// thread holds it leaves it locked for ever in the child, which sees an older epoch in it and takes
// it over. At worst the child then leaks the slot in flight.
class epoch_lock {
 public:
  void lock() noexcept;
  void unlock() noexcept { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> holder_{0};
};

struct slot_header;
struct slab;

// One kind of handle, of which there is one object: how messages call it, when a context destroys
// what is of this kind, and its slabs.
class handle_kind {
 public:
  // article: "a stream". order: 1 to last_order, the place in the destruction of an owner; 0 for
  // what nobody owns.
  constexpr handle_kind(const char* article, int order) noexcept
      : article_(article), order_(order) {}
  handle_kind(const handle_kind&) = delete;
  handle_kind& operator=(const handle_kind&) = delete;

  static constexpr int last_order = 15;

  const char* live() const noexcept { return article_; }
  text destroyed() const;  // "a destroyed stream"
  int order() const noexcept { return order_; }

  slot_header* take_slot(std::size_t object_bytes);  // throws bad_alloc; the same bytes each time
  void give_slot(slot_header* slot) noexcept;        // the object is gone; the slot may be reused

 private:
  void add_slab(std::size_t object_bytes);
  void append_free(slot_header* slot) noexcept;

  const char* article_;
  int order_;
  epoch_lock lock_;
  slot_header* free_first_ = nullptr;
  slot_header* free_last_ = nullptr;
  slab* slabs_ = nullptr;
};

// Owns objects behind handles and destroys them in the order of their kinds, the newest of a kind
// first. Thread-safe.
class handle_owner {
 public:
  handle_owner() = default;
  ~handle_owner() { destroy_owned(); }
  handle_owner(const handle_owner&) = delete;
  handle_owner& operator=(const handle_owner&) = delete;

  void destroy_owned() noexcept;

  // For make_object and destroy_object.
  void add(slot_header* slot) noexcept;
  void remove(slot_header* slot) noexcept;

 private:
  std::mutex lock_;
  slot_header* first_[handle_kind::last_order + 1] = {};
};

struct alignas(64) slot_header {
  std::uint32_t magic;
  std::atomic<std::uint32_t> tag;  // generation << 1 | live
  const void* library;  // magic and this keep their places: another release reads no further
  handle_kind* kind;
  std::atomic<std::uint32_t> epoch;  // of the process it was made in: another one after fork
  handle_owner* owner;               // nullptr: none
  slot_header* next;                 // among the free slots, or among its owner's of this kind
  slot_header* before;               // among its owner's
  void (*destroy)(slot_header*) noexcept;
};
static_assert(sizeof(slot_header) == 64);

// The untyped half, handle.cpp.
void publish_slot(slot_header* slot, handle_owner* owner, void (*destroy)(slot_header*) noexcept);
void retire_slot(slot_header* slot) noexcept;  // handles to it are refused from here on
[[noreturn]] void refuse_handle(const void* handle, const handle_kind& wanted,
                                const char* argument);  // throws NULL, HANDLE, STATE

// The slot a handle names, or nullptr when it is not a live handle of that kind made in this
// process. A kind's address is that of this copy of velo: a slot of another copy never has it.
inline slot_header* live_slot(const void* handle, const handle_kind& wanted) noexcept {
  if (handle == nullptr) return nullptr;
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  auto* slot = reinterpret_cast<slot_header*>(bits & ~std::uintptr_t{63});
  if (slot->kind != &wanted) return nullptr;
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  const auto generation = static_cast<std::uint32_t>(bits & 63u);
  if ((tag & 127u) != (generation << 1 | 1u)) return nullptr;
  return slot->epoch.load(std::memory_order_relaxed) == process_epoch() ? slot : nullptr;
}

// argument: as the caller spells it, "stream".
inline slot_header* find_slot(const void* handle, const handle_kind& wanted, const char* argument) {
  slot_header* found = live_slot(handle, wanted);
  if (__builtin_expect(found == nullptr, 0)) refuse_handle(handle, wanted, argument);
  return found;
}

// Which kind of handle an object of type T has: specialize with `using handle` and `static
// constexpr handle_kind& kind`.
template <class T>
struct handle_traits;

inline const void* handle_of_slot(const slot_header* slot) {
  const auto generation = slot->tag.load(std::memory_order_relaxed) >> 1;
  return reinterpret_cast<const char*>(slot) + (generation & 63u);
}

template <class T>
T* object_in(slot_header* slot) {
  return std::launder(reinterpret_cast<T*>(slot + 1));
}

// The object behind a handle; throws as refuse_handle does.
template <class T>
T& resolve(typename handle_traits<T>::handle handle, const char* argument) {
  return *object_in<T>(find_slot(handle, handle_traits<T>::kind, argument));
}

// The object behind a handle that was checked and cannot have been destroyed since.
template <class T>
T& object_of(typename handle_traits<T>::handle handle) {
  const auto bits = reinterpret_cast<std::uintptr_t>(static_cast<const void*>(handle));
  return *object_in<T>(reinterpret_cast<slot_header*>(bits & ~std::uintptr_t{63}));
}

// The handle of an object made by make_object.
template <class T>
typename handle_traits<T>::handle handle_of(const T& object) {
  const auto* slot = reinterpret_cast<const slot_header*>(&object) - 1;
  return static_cast<typename handle_traits<T>::handle>(const_cast<void*>(handle_of_slot(slot)));
}

template <class T>
void destroy_object(slot_header* slot) noexcept {
  retire_slot(slot);
  object_in<T>(slot)->~T();
  slot->kind->give_slot(slot);
}

// Makes an object in a slot. owner: destroys it at the latest when it goes itself; may be nullptr.
template <class T, class... Args>
T& make_object(handle_owner* owner, Args&&... args) {
  static_assert(alignof(T) <= 64);
  handle_kind& kind = handle_traits<T>::kind;
  slot_header* slot = kind.take_slot(sizeof(T));
  T* object = nullptr;
  try {
    object = new (slot + 1) T(std::forward<Args>(args)...);
  } catch (...) {
    kind.give_slot(slot);
    throw;
  }
  publish_slot(slot, owner, &destroy_object<T>);
  return *object;
}

// Destroys what a handle names; throws as resolve does.
template <class T>
void destroy_handle(typename handle_traits<T>::handle handle, const char* argument) {
  destroy_object<T>(find_slot(handle, handle_traits<T>::kind, argument));
}

}  // namespace velo::core
