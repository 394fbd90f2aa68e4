// The slabs: per kind a lock, a FIFO of free slots, and a list of all slots for destroying what a
// context owns.
//
// The lock remembers the process epoch it was taken in: a fork while another thread held it leaves
// it locked for ever in the child, which sees an older epoch in it and takes it over. At worst the
// child then leaks the slot in flight.
#include "core/handle.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "core/process.hpp"

namespace velo::core {
namespace {

constexpr std::uint32_t magic = 0x76656c6f;  // "velo"
constexpr std::size_t slots_per_slab = 16;

class epoch_lock {
 public:
  void lock() noexcept {
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
  void unlock() noexcept { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> holder_{0};
};

struct registry {
  epoch_lock lock;
  slot_header* free_first = nullptr;
  slot_header* free_last = nullptr;
  slot_header* all = nullptr;
};

registry registries[kind_count];

struct holding {
  explicit holding(registry& r) : of(r) { of.lock.lock(); }
  ~holding() { of.lock.unlock(); }
  registry& of;
};

registry& registry_of(kind what) {
  return registries[static_cast<int>(what)];
}

void append_free(registry& r, slot_header* slot) {
  slot->next = nullptr;
  if (r.free_last != nullptr) {
    r.free_last->next = slot;
  } else {
    r.free_first = slot;
  }
  r.free_last = slot;
}

void add_slab(registry& r, kind what, std::size_t object_bytes) {
  const std::size_t stride = (header_bytes + object_bytes + 63) / 64 * 64;
  auto* memory = static_cast<char*>(::operator new (stride* slots_per_slab, std::align_val_t{64}));
  slot_header* rest =
      r.all;  // the list begins with a slab's first slot: a leak checker then sees the slab held
  for (std::size_t i = slots_per_slab; i-- > 0;) {
    auto* slot = new (memory + i * stride) slot_header{};
    slot->magic = magic;
    slot->what = what;
    slot->library = registries;
    slot->next_slot = rest;
    rest = slot;
    append_free(r, slot);
  }
  r.all = rest;
}

struct kind_name {
  const char* live;
  const char* destroyed;
};
constexpr kind_name names[kind_count] = {
    {"a stream", "a destroyed stream"}, {"a closure", "a destroyed closure"},
    {"a kernel", "a destroyed kernel"}, {"a pack", "a destroyed pack"},
    {"an event", "a destroyed event"},  {"a context", "a destroyed context"}};

const kind_name& name_of(kind what) {
  return names[static_cast<int>(what)];
}

}  // namespace

slot_header* reserve_slot(kind what, std::size_t object_bytes) {
  start_process_epoch();
  registry& r = registry_of(what);
  const holding lock(r);
  if (r.free_first == nullptr) add_slab(r, what, object_bytes);
  slot_header* slot = r.free_first;
  r.free_first = slot->next;
  if (r.free_first == nullptr) r.free_last = nullptr;
  return slot;
}

void publish_slot(slot_header* slot, const void* owner, void (*destroy)(slot_header*) noexcept) {
  slot->owner.store(owner, std::memory_order_relaxed);
  slot->destroy = destroy;
  slot->epoch.store(process_epoch(), std::memory_order_relaxed);
  slot->tag.fetch_or(1, std::memory_order_release);
}

void retire_slot(slot_header* slot) noexcept {
  slot->tag.fetch_add(1, std::memory_order_acq_rel);  // live bit off, generation one up
}

void recycle_slot(slot_header* slot) noexcept {
  registry& r = registry_of(slot->what);
  const holding lock(r);
  append_free(r, slot);
}

slot_header* find_slot(const void* handle, kind wanted, const char* argument) {
  if (handle == nullptr) fail(VELO_ERR_NULL, argument, name_of(wanted).live, "NULL");
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  auto* slot = reinterpret_cast<slot_header*>(bits & ~std::uintptr_t{63});
  if (slot->magic != magic) fail(VELO_ERR_HANDLE, argument, name_of(wanted).live, "no velo handle");
  if (slot->library != registries)
    fail(VELO_ERR_HANDLE, argument, name_of(wanted).live, "a handle of another copy of velo");
  const std::uint32_t tag = slot->tag.load(std::memory_order_acquire);
  const bool live = (tag & 1u) != 0 && ((tag >> 1) & 63u) == (bits & 63u);
  if (slot->what != wanted || !live) {
    fail(VELO_ERR_HANDLE, argument, name_of(wanted).live,
         live ? name_of(slot->what).live : name_of(slot->what).destroyed);
  }
  if (slot->epoch.load(std::memory_order_relaxed) != process_epoch()) {
    fail(VELO_ERR_STATE, argument, text("%s made in this process", name_of(wanted).live),
         "one made before fork");
  }
  return slot;
}

void destroy_owned(const void* owner) noexcept {
  const std::uint32_t epoch = process_epoch();
  for (registry& r : registries) {
    while (true) {
      slot_header* found = nullptr;
      {
        const holding lock(r);
        for (slot_header* slot = r.all; slot != nullptr && found == nullptr;
             slot = slot->next_slot) {
          const bool live = (slot->tag.load(std::memory_order_acquire) & 1u) != 0;
          if (live && slot->owner.load(std::memory_order_relaxed) == owner &&
              slot->epoch.load(std::memory_order_relaxed) == epoch)
            found = slot;
        }
      }
      if (found == nullptr) break;
      found->destroy(found);
    }
  }
}

}  // namespace velo::core
