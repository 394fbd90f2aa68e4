// The slabs (a FIFO of free slots for each kind), the lists of owned objects, and the refusal of
// wrong handles.
#include "core/handle/handle.hpp"

#include <sched.h>

#include <cstring>
#include <new>

#include "core/round_up.hpp"

namespace velo::core {
namespace {

constexpr std::uint32_t magic = 0x76656c6f;  // "velo"
constexpr std::size_t slots_per_slab = 16;
const char this_library = 0;  // its address identifies this copy of velo
constexpr std::uint32_t live = 1, claimed = 2;

// Claims the slot if it is live, unclaimed and still has the tag `seen`. Returns whether it did.
bool claim_live(slot_header& slot, std::uint32_t seen) noexcept {
  return (seen & (live | claimed)) == live &&
         slot.tag.compare_exchange_strong(seen, seen | claimed, std::memory_order_acq_rel);
}

}  // namespace

// The first 64 bytes of a slab; the slots follow. Slabs are linked from their kind, so that a leak
// checker finds them reachable.
struct alignas(64) slab {
  slab* before;
};

text handle_kind::destroyed() const {
  return text("a destroyed %s", std::strchr(article_, ' ') + 1);
}

void handle_kind::append_free(slot_header* slot) noexcept {
  slot->next = nullptr;
  (free_last_ != nullptr ? free_last_->next : free_first_) = slot;
  free_last_ = slot;
}

void handle_kind::add_slab(std::size_t object_bytes) {
  const std::size_t stride = sizeof(slot_header) + round_up(object_bytes, 64);
  const std::size_t bytes = sizeof(slab) + stride * slots_per_slab;
  char* memory = static_cast<char*>(::operator new (bytes, std::align_val_t{64}));
  if (reinterpret_cast<std::uintptr_t>(memory) >> address_bits != 0) {
    ::operator delete (memory, std::align_val_t{64});
    throw std::bad_alloc();
  }
  slabs_ = new (memory) slab{slabs_};
  for (std::size_t i = 0; i < slots_per_slab; ++i) {
    auto* slot = new (memory + sizeof(slab) + i * stride) slot_header{};
    slot->magic = magic;
    slot->library = &this_library;
    slot->kind = this;
    append_free(slot);
  }
}

// If the lock was held at the fork, the child drops the parent's free slots, since their list may
// be half changed.
void handle_kind::set_up_after(const process_guard& lock) noexcept {
  if (lock.taken_over()) free_first_ = free_last_ = nullptr;
}

slot_header* handle_kind::take_slot(std::size_t object_bytes) {
  const process_guard lock(lock_);
  set_up_after(lock);
  if (free_first_ == nullptr) add_slab(object_bytes);
  slot_header* slot = free_first_;
  free_first_ = slot->next;
  if (free_first_ == nullptr) free_last_ = nullptr;
  return slot;
}

void handle_kind::give_slot(slot_header* slot) noexcept {
  if (slot->tag.load(std::memory_order_relaxed) >> 2 > last_generation) return;
  const process_guard lock(lock_);
  set_up_after(lock);
  append_free(slot);
}

void handle_owner::add(slot_header* slot) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  slot_header*& first = first_[slot->kind->order()];
  slot->next = first;
  if (first != nullptr) first->before.store(slot, std::memory_order_relaxed);
  first = slot;
}

void handle_owner::remove(slot_header* slot) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  auto* before = static_cast<slot_header*>(slot->before.load(std::memory_order_relaxed));
  (before != nullptr ? before->next : first_[slot->kind->order()]) = slot->next;
  if (slot->next != nullptr) slot->next->before.store(before, std::memory_order_relaxed);
  slot->before.store(const_cast<void*>(handle_), std::memory_order_relaxed);
}

// If another thread is destroying an object, that thread removes it from the list.
void handle_owner::destroy_owned() noexcept {
  for (slot_header*& first : first_) {
    while (true) {
      slot_header* found = nullptr;
      bool mine = false;
      {
        const std::lock_guard<std::mutex> lock(lock_);
        found = first;
        mine = found != nullptr && claim_live(*found, found->tag.load(std::memory_order_relaxed));
      }
      if (found == nullptr) break;
      mine ? found->destroy(found) : static_cast<void>(sched_yield());
    }
  }
}

void publish_slot(slot_header* slot, handle_owner* owner, void (*destroy)(slot_header*) noexcept) {
  slot->owner = owner;
  slot->destroy = destroy;
  slot->before.store(nullptr, std::memory_order_relaxed);
  slot->epoch.store(process_epoch(), std::memory_order_relaxed);
  slot->tag.fetch_or(live, std::memory_order_release);
  if (owner != nullptr) owner->add(slot);
}

slot_header* claim_slot(const void* handle, const handle_kind& wanted, const char* argument) {
  slot_header* slot = find_slot(handle, wanted, argument);
  if (!claim_live(*slot, generation_named(handle) << 2 | live))
    refuse_handle(handle, wanted, argument);
  return slot;
}

void unclaim_slot(slot_header* slot) noexcept {
  slot->tag.fetch_and(~claimed, std::memory_order_release);
}

// The caller has claimed the slot. This clears live and claimed and increments the generation.
void retire_slot(slot_header* slot) noexcept {
  if (slot->owner != nullptr) slot->owner->remove(slot);
  slot->tag.fetch_add(4 - live - claimed, std::memory_order_acq_rel);
}

const void* owner_of_misused(const void* handle) noexcept {
  const slot_header* slot = slot_named(handle);
  if (handle == nullptr || slot->magic != magic || slot->library != &this_library) return nullptr;
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  if (tag == (generation_named(handle) + 1) << 2) {
    const void* owner = slot->before.load(std::memory_order_acquire);
    return slot->tag.load(std::memory_order_relaxed) == tag ? owner : nullptr;
  }
  const bool lives = (tag & ~claimed) == (generation_named(handle) << 2 | live);
  return lives && slot->owner != nullptr ? slot->owner->handle() : nullptr;
}

void refuse_handle(const void* handle, const handle_kind& wanted, const char* argument) {
  if (handle == nullptr) fail(VELO_ERR_NULL, argument, wanted.live(), "NULL");
  const slot_header* slot = slot_named(handle);
  if (slot->magic != magic) fail(VELO_ERR_HANDLE, argument, wanted.live(), "no velo handle");
  if (slot->library != &this_library)
    fail(VELO_ERR_HANDLE, argument, wanted.live(), "a handle of another copy of velo");
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  const bool lives = (tag & ~claimed) == (generation_named(handle) << 2 | live);
  if (!lives) fail(VELO_ERR_HANDLE, argument, wanted.live(), slot->kind->destroyed());
  if (slot->kind != &wanted) fail(VELO_ERR_HANDLE, argument, wanted.live(), slot->kind->live());
  if (slot->epoch.load(std::memory_order_relaxed) == process_epoch())  // claimed by another thread
    fail(VELO_ERR_HANDLE, argument, wanted.live(), slot->kind->destroyed());
  fail(VELO_ERR_STATE, argument, text("%s made in this process", wanted.live()),
       "one made before fork");
}

}  // namespace velo::core
