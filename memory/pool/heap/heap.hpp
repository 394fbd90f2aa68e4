// A heap: one range of addresses, cut into blocks that together cover it without a gap.
//
// A block is in use, free (backed by memory, ready) or uncommitted (addresses alone). At first the
// whole range is one uncommitted block. A request takes the front of a free block that fits well;
// where none does, a growth backs an uncommitted block and merges it with free neighbors. Freed
// blocks merge with free neighbors at once, so that two free blocks never touch, nor two
// uncommitted ones. A trim uncommits whole granules of free blocks: the reserved bytes are those
// of all blocks that are not uncommitted. A growth may take huge pages of free blocks instead of
// new ones.
//
// Not thread-safe except find_quickly(), which may run beside any call that does not end the same
// block: the fields of other blocks that it reads are atomics, and an unused block has no address
// of the range. Cost: a search of the index, in which merged neighbors usually keep their bins; no
// system call except to grow and trim.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/pool/heap/address_range.hpp"
#include "memory/pool/heap/block.hpp"
#include "memory/pool/heap/choice.hpp"
#include "memory/pool/heap/free_index.hpp"

namespace velo::memory {

class heap {
 public:
  // lifetime: of its blocks; wanted: bytes of addresses. Throws VELO_ERR_MEMORY.
  heap(velo_pool_kind kind, std::uint8_t lifetime, std::uint64_t wanted);
  ~heap();
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;

  // A planned growth: the position of a block that needs memory of the system, and the memory to
  // back.
  struct growth {
    block* into = nullptr;    // an uncommitted block; nullptr: no addresses left
    block* joined = nullptr;  // the free block before it, if it makes use of it
    std::uint64_t start = 0, first = 0, last = 0;
    std::uint64_t bytes() const noexcept { return last - first; }
  };

  // size: whole units; alignment: a power of two. A block in use, or nullptr.
  block* take(std::uint64_t size, std::uint64_t alignment) noexcept;
  growth plan_growth(std::uint64_t size, std::uint64_t alignment) const noexcept;
  block* grow(const growth& planned, std::uint64_t size) noexcept;  // nullptr: the system refuses

  block& give(block& freed) noexcept;  // the free block that it is part of now

  // Trims at least `bytes` bytes if there are so many, none of `but`, which may be nullptr. Returns
  // how many, and calls f(start, bytes) for each stretch of them.
  template <class F>
  std::uint64_t trim(std::uint64_t bytes, block* but, F&& f) noexcept;

  // Huge pages that were just committed, and to which memory of free blocks will be moved.
  struct move_target {
    address_range& range;
    std::uint64_t next, end;
    page_mover by;

    void open() noexcept { by.open(range.begin() + next, end - next); }
  };
  move_target move_target_in(const block& grown, const growth& planned) noexcept;
  // Moves at least `bytes` bytes there if there is room and free blocks hold so many whole huge
  // pages. Returns how many, and calls f(start, bytes) for each stretch that moved.
  template <class F>
  std::uint64_t move_out(std::uint64_t bytes, move_target& to, F&& f) noexcept;
  // Undoes a growth, except for the memory from `first` on that was moved there, which is free
  // again.
  void shrink(block& grown, const growth& planned, std::uint64_t first,
              const move_target& filled) noexcept;

  // Gives up the addresses that no block in use needs. Afterwards blocks are only given back.
  void close() noexcept;

  // The block last shown at an address, which may no longer be in use; nullptr: none.
  block* find(const void* memory) const noexcept {
    const auto at = static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin());
    if (at >= range_.size() || at % unit != 0) return nullptr;
    block& large = shown(of_pages_[at / fine]);
    if (large.first() == at) return &large;
    block& small = shown(of_units_[at / unit]);
    return small.first() == at ? &small : nullptr;
  }
  // The same in a heap whose blocks have no fronts, for a block of `bytes` bytes. With another
  // number of bytes it finds nothing, or the same block.
  __attribute__((always_inline)) bool find_quickly(const void* memory, std::uint64_t bytes,
                                                   block*& found) const noexcept {
    const auto at = static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin());
    // A rotation instead of a shift: an address inside of a unit becomes larger than all units.
    const std::uint64_t number = at / unit | at << (64 - unit_bits);
    if (__builtin_expect(number >= units_, 0)) return false;
    found = &shown(has_page(bytes) ? of_pages_[at / fine] : of_units_[number]);
    return __builtin_expect(found->begins_at(at), 1);
  }
  bool outside(const void* memory) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin()) >=
           range_.size();
  }
  const block* enclosing(const void* memory) const noexcept;  // a walk; nullptr: none in use

  // The address of the caller's bytes, `front` units into a block in use, and registers the block
  // for find().
  char* show(block& taken, std::uint64_t bytes) noexcept {
    const std::uint64_t first = taken.first();
    entry(first, bytes)
        .store(static_cast<std::uint32_t>(&taken - blocks_), std::memory_order_relaxed);
    return range_.begin() + first;
  }
  char* memory_of(const block& b) const noexcept { return range_.begin() + b.start; }

  std::uint8_t lifetime() const noexcept { return lifetime_; }
  std::uint64_t reserved() const noexcept { return reserved_; }
  std::uint64_t free_bytes() const noexcept { return free_.bytes(); }
  bool has_free(std::uint64_t bytes) const noexcept {  // bytes: at most the range's size
    return free_.find(bytes) != nullptr;
  }
  const block* largest_free() const noexcept { return free_.largest(); }
  const block* first() const noexcept { return first_; }
  const address_range& range() const noexcept { return range_; }

 private:
  struct stretch {
    std::uint64_t start = 0, bytes = 0;
  };
  stretch with_holes(const block& b, std::uint64_t start, std::uint64_t bytes) const noexcept;
  stretch uncommit(block& b, std::uint64_t most) noexcept;
  stretch move_one(std::uint64_t most, move_target& to) noexcept;
  void drop(block& b, std::uint64_t start, std::uint64_t size) noexcept;
  void forget(const block& uncommitted, std::uint64_t start, std::uint64_t size) noexcept;
  __attribute__((always_inline)) block& cut_front(block& from, std::uint64_t size) noexcept;
  block* carve(block& from, std::uint64_t start, std::uint64_t size) noexcept;
  growth growth_into(block& uncommitted, std::uint64_t size,
                     std::uint64_t alignment) const noexcept;
  block& split(block& b, std::uint64_t at) noexcept;  // the part behind `at`
  void absorb(block& b) noexcept;                     // the block behind b becomes part of it
  __attribute__((always_inline)) void put_aside(block& gone, choice is_one) noexcept;
  block& merged(block& b) noexcept;  // with the neighbors of its state
  // Whether descriptions are left for that many operations.
  bool can_split(std::uint64_t operations = 1) const noexcept {
    return most_blocks_ - blocks_made_ + spares_ >= operations * most_splits;
  }
  __attribute__((always_inline)) block& new_block() noexcept;
  free_index& index_of(const block& b) noexcept;

  // The entry that says which block was last shown there, for so many bytes. It takes no branch,
  // which would be mispredicted by a caller that uses many sizes.
  std::atomic<std::uint32_t>& entry(std::uint64_t first, std::uint64_t bytes) const noexcept {
    std::atomic<std::uint32_t>*page = of_pages_ + first / fine, *own = of_units_ + first / unit;
    return *(has_page(bytes) ? page : own);
  }
  block& shown(const std::atomic<std::uint32_t>& entry) const noexcept {
    return blocks_[entry.load(std::memory_order_relaxed)];
  }
  static bool has_page(std::uint64_t bytes) noexcept { return bytes > fine - unit; }

  static constexpr std::uint64_t most_splits = 4;  // of one operation
  static constexpr int most_looks = 64;            // uncommitted blocks examined for a growth
  // A growth needs two operations: itself, and the one that undoes it. Trims and moves in between
  // leave room for the second.
  static constexpr std::uint64_t with_the_way_back = 2;

  static constexpr int unit_bits = 6;
  static_assert(unit == 1 << unit_bits);

  address_range range_;
  std::uint64_t units_ = range_.size() / unit;
  sparse_array blocks_memory_, of_units_memory_, of_pages_memory_;
  block* blocks_ = nullptr;  // [0] is no block, and has no address of the range
  // The number of the block last shown at an address: by page for blocks so large that only one can
  // begin in a page, so that their entries stay in the processor's caches, else by unit.
  std::atomic<std::uint32_t>* of_units_ = nullptr;
  std::atomic<std::uint32_t>* of_pages_ = nullptr;
  std::uint64_t blocks_made_ = 1, most_blocks_ = 0;
  block* spare_ = nullptr;
  std::uint64_t spares_ = 0;
  block* first_ = nullptr;
  block* last_ = nullptr;
  free_index free_, uncommitted_;
  std::uint64_t reserved_ = 0;
  std::uint8_t lifetime_;
};

// It begins with large blocks, which give the most memory for a system call.
template <class F>
std::uint64_t heap::trim(std::uint64_t bytes, block* but, F&& f) noexcept {
  if (but != nullptr) free_.remove(*but);
  std::uint64_t let_go = 0;
  while (let_go < bytes && can_split(with_the_way_back)) {
    stretch trimmed;
    for (block *b = free_.large(), *next = nullptr; b != nullptr && trimmed.bytes == 0; b = next) {
      next = b->right;  // of the same bin: a block that has nothing to trim stays in it
      trimmed = uncommit(*b, bytes - let_go);
    }
    if (trimmed.bytes == 0) break;
    let_go += trimmed.bytes;
    f(trimmed.start, trimmed.bytes);
  }
  if (but != nullptr) free_.insert(*but);
  reserved_ -= let_go;
  return let_go;
}

template <class F>
std::uint64_t heap::move_out(std::uint64_t bytes, move_target& to, F&& f) noexcept {
  std::uint64_t moved = 0;
  while (moved < bytes && to.next < to.end && can_split(with_the_way_back)) {
    const stretch gone = move_one(bytes - moved, to);
    if (gone.bytes == 0) break;
    moved += gone.bytes;
    f(gone.start, gone.bytes);
  }
  reserved_ -= moved;
  return moved;
}

}  // namespace velo::memory
