// Handles: what a velo_stream or velo_context pointer means, and how an invalid one is detected.
//
// An object lives in a slot of a slab of its kind. A slot is 64-byte aligned and begins with a
// header: a magic number, the copy of velo that it belongs to (a process may hold several, of
// several releases), the kind, and a tag with a generation and whether the slot is in use. The
// handle is the slot's address, of 47 bits as all addresses of a Linux process, with the 16-bit
// generation above them: a positive number that cannot be dereferenced. The handle of a destroyed
// object is refused for ever, because its slot has another generation; a slot that has used up its
// generations is retired.
//
// Slabs are the only process-wide mutable state in velo. They are constant-initialized, grown on
// demand and never freed, because a stale handle must stay readable to be refused. A slab takes 64
// bytes, and each slot 64 bytes and the object. Resolving a handle costs four loads from two cache
// lines and no call; making and destroying take the locks of the kind and of the owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "core/handle/process.hpp"
#include "velo/types.h"

namespace velo::core {

struct slot_header;
struct slab;

// One kind of handle, a single object. It holds the kind's name in messages, its place in the
// destruction order of a context, and its slabs.
class handle_kind {
 public:
  // article: "a stream". order: the place in an owner's destruction order, 1 to last_order; 0 for
  // objects without an owner.
  constexpr handle_kind(const char* article, int order) noexcept
      : article_(article), order_(order) {}
  handle_kind(const handle_kind&) = delete;
  handle_kind& operator=(const handle_kind&) = delete;

  static constexpr int last_order = 15;

  const char* live() const noexcept { return article_; }
  text destroyed() const;  // "a destroyed stream"
  int order() const noexcept { return order_; }

  // Throws bad_alloc. Every call has the same object_bytes.
  slot_header* take_slot(std::size_t object_bytes);
  void give_slot(slot_header* slot) noexcept;  // after the object's destruction

 private:
  void add_slab(std::size_t object_bytes);
  void append_free(slot_header* slot) noexcept;
  void set_up_after(const process_guard& lock) noexcept;

  const char* article_;
  int order_;
  process_lock lock_;
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

  // make_object and destroy_object alone call these.
  void add(slot_header* slot) noexcept;
  void remove(slot_header* slot) noexcept;

  // The handle of the owner itself, which messages about a destroyed handle name; nullptr: none.
  const void* handle() const noexcept { return handle_; }

 protected:
  void set_handle(const void* mine) noexcept { handle_ = mine; }

 private:
  const void* handle_ = nullptr;
  std::mutex lock_;
  slot_header* first_[handle_kind::last_order + 1] = {};
};

struct alignas(64) slot_header {
  std::uint32_t magic;
  std::atomic<std::uint32_t> tag;  // generation << 2 | claimed << 1 | live
  const void* library;             // other releases read magic and this, so both keep their offsets
  handle_kind* kind;
  std::atomic<std::uint32_t> epoch;  // of the process that made the object; differs after fork
  handle_owner* owner;               // nullptr: none
  slot_header* next;          // in the list of free slots, or of the owner's objects of this kind
  std::atomic<void*> before;  // in the owner's list; the owner's handle once the slot is not in use
  void (*destroy)(slot_header*) noexcept;
};
static_assert(sizeof(slot_header) == 64);

// The address part and the generation of a handle. All copies of velo in a process agree on the
// address part.
inline constexpr int address_bits = 47;
inline constexpr std::uint32_t last_generation = 0xffff;
inline slot_header* slot_named(const void* handle) noexcept {
  constexpr std::uintptr_t address = (std::uintptr_t{1} << address_bits) - 64;
  return reinterpret_cast<slot_header*>(reinterpret_cast<std::uintptr_t>(handle) & address);
}
inline std::uint32_t generation_named(const void* handle) noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> address_bits);
}

// The untyped functions, in handle.cpp.
void publish_slot(slot_header* slot, handle_owner* owner, void (*destroy)(slot_header*) noexcept);
void retire_slot(slot_header* slot) noexcept;  // from here on handles to the slot are refused
slot_header* claim_slot(const void* handle, const handle_kind& wanted, const char* argument);
void unclaim_slot(slot_header* slot) noexcept;
// The owner's handle, for a handle that was passed to a wrong call or whose object was just
// destroyed. The owner need not be live. nullptr: unknown, or another object has the slot.
const void* owner_of_misused(const void* handle) noexcept;
[[noreturn]] void refuse_handle(const void* handle, const handle_kind& wanted,
                                const char* argument);  // throws NULL, HANDLE, STATE

// The slot of a handle, or nullptr unless it is a live handle of that kind made in this process.
// The address of a kind is unique to this copy of velo, so slots of another copy never match.
inline slot_header* live_slot(const void* handle, const handle_kind& wanted) noexcept {
  if (handle == nullptr) return nullptr;
  slot_header* slot = slot_named(handle);
  if (slot->kind != &wanted) return nullptr;
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  if ((tag & ~2u) != (generation_named(handle) << 2 | 1u)) return nullptr;
  return slot->epoch.load(std::memory_order_relaxed) == process_epoch() ? slot : nullptr;
}

// argument: as the caller spells it, "stream".
inline slot_header* find_slot(const void* handle, const handle_kind& wanted, const char* argument) {
  slot_header* found = live_slot(handle, wanted);
  if (__builtin_expect(found == nullptr, 0)) refuse_handle(handle, wanted, argument);
  return found;
}

// The kind of the handles of T. Specializations have `using handle` and `static constexpr
// handle_kind& kind`.
template <class T>
struct handle_traits;

inline const void* handle_of_slot(const slot_header* slot) {
  const std::uintptr_t generation = slot->tag.load(std::memory_order_relaxed) >> 2;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(slot) |
                                       generation << address_bits);
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

// The object behind a handle that was checked and whose object cannot have been destroyed since.
template <class T>
T& object_of(typename handle_traits<T>::handle handle) {
  return *object_in<T>(slot_named(handle));
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

// Makes an object in a slot. owner: destroys the object at the latest in its own destruction; may
// be nullptr.
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

// The right to destroy the object of a live handle. Only one thread at a time has it; other threads
// are refused as if the object were destroyed. The right is given back if it was not used.
template <class T>
class claim {
 public:
  // Throws as resolve does.
  claim(typename handle_traits<T>::handle handle, const char* argument)
      : slot_(claim_slot(handle, handle_traits<T>::kind, argument)) {}
  ~claim() {
    if (slot_ != nullptr) unclaim_slot(slot_);
  }
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;

  T& object() const { return *object_in<T>(slot_); }
  void destroy() { destroy_object<T>(std::exchange(slot_, nullptr)); }

 private:
  slot_header* slot_;
};

// Destroys the object of a handle; throws as resolve does.
template <class T>
void destroy_handle(typename handle_traits<T>::handle handle, const char* argument) {
  claim<T>(handle, argument).destroy();
}

}  // namespace velo::core
