// The slabs (a FIFO of free slots for each kind), the lists of owned objects, and what is said
// about a handle that is refused.
#include "core/handle.hpp"

#include <sched.h>

#include <cstring>

namespace velo::core {
namespace {

constexpr std::uint32_t magic = 0x76656c6f;  // "velo"
constexpr std::size_t slots_per_slab = 16;
const char this_library = 0;  // its address tells this copy of velo from others

}  // namespace

// The first 64 bytes of a slab; slots follow. Every kind can reach its slabs, so a leak checker
// sees them held.
struct alignas(64) slab {
  slab* before;
};

void epoch_lock::lock() noexcept {
  const std::uint32_t mine = process_epoch();
  while (true) {
    std::uint32_t holder = 0;
    if (holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire)) return;
    if (holder != 0 && holder != mine &&
        holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire))
      return;
    sched_yield();
  }
}

text handle_kind::destroyed() const {
  return text("a destroyed %s", std::strchr(article_, ' ') + 1);
}

void handle_kind::append_free(slot_header* slot) noexcept {
  slot->next = nullptr;
  (free_last_ != nullptr ? free_last_->next : free_first_) = slot;
  free_last_ = slot;
}

void handle_kind::add_slab(std::size_t object_bytes) {
  const std::size_t stride = sizeof(slot_header) + (object_bytes + 63) / 64 * 64;
  const std::size_t bytes = sizeof(slab) + stride * slots_per_slab;
  char* memory = static_cast<char*>(::operator new (bytes, std::align_val_t{64}));
  slabs_ = new (memory) slab{slabs_};
  for (std::size_t i = 0; i < slots_per_slab; ++i) {
    auto* slot = new (memory + sizeof(slab) + i * stride) slot_header{};
    slot->magic = magic;
    slot->library = &this_library;
    slot->kind = this;
    append_free(slot);
  }
}

slot_header* handle_kind::take_slot(std::size_t object_bytes) {
  start_process_epoch();
  const std::lock_guard<epoch_lock> lock(lock_);
  if (free_first_ == nullptr) add_slab(object_bytes);
  slot_header* slot = free_first_;
  free_first_ = slot->next;
  if (free_first_ == nullptr) free_last_ = nullptr;
  return slot;
}

void handle_kind::give_slot(slot_header* slot) noexcept {
  const std::lock_guard<epoch_lock> lock(lock_);
  append_free(slot);
}

void handle_owner::add(slot_header* slot) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  slot_header*& first = first_[slot->kind->order()];
  slot->before = nullptr;
  slot->next = first;
  if (first != nullptr) first->before = slot;
  first = slot;
}

void handle_owner::remove(slot_header* slot) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  (slot->before != nullptr ? slot->before->next : first_[slot->kind->order()]) = slot->next;
  if (slot->next != nullptr) slot->next->before = slot->before;
}

void handle_owner::destroy_owned() noexcept {
  for (slot_header*& first : first_) {
    while (true) {
      slot_header* found = nullptr;
      {
        const std::lock_guard<std::mutex> lock(lock_);
        found = first;
      }
      if (found == nullptr) break;
      found->destroy(found);
    }
  }
}

void publish_slot(slot_header* slot, handle_owner* owner, void (*destroy)(slot_header*) noexcept) {
  slot->owner = owner;
  slot->destroy = destroy;
  slot->epoch.store(process_epoch(), std::memory_order_relaxed);
  slot->tag.fetch_or(1, std::memory_order_release);
  if (owner != nullptr) owner->add(slot);
}

void retire_slot(slot_header* slot) noexcept {
  slot->tag.fetch_add(1, std::memory_order_acq_rel);  // live bit off, generation one up
  if (slot->owner != nullptr) slot->owner->remove(slot);
}

void refuse_handle(const void* handle, const handle_kind& wanted, const char* argument) {
  if (handle == nullptr) fail(VELO_ERR_NULL, argument, wanted.live(), "NULL");
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  const auto* slot = reinterpret_cast<const slot_header*>(bits & ~std::uintptr_t{63});
  if (slot->magic != magic) fail(VELO_ERR_HANDLE, argument, wanted.live(), "no velo handle");
  if (slot->library != &this_library)
    fail(VELO_ERR_HANDLE, argument, wanted.live(), "a handle of another copy of velo");
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  const bool live = (tag & 1u) != 0 && ((tag >> 1) & 63u) == (bits & 63u);
  if (!live) fail(VELO_ERR_HANDLE, argument, wanted.live(), slot->kind->destroyed());
  if (slot->kind != &wanted) fail(VELO_ERR_HANDLE, argument, wanted.live(), slot->kind->live());
  fail(VELO_ERR_STATE, argument, text("%s made in this process", wanted.live()),
       "one made before fork");
}

}  // namespace velo::core
