// A range of addresses, reserved once and backed with memory where it is used. All system calls of
// the pool for memory are behind this class, with a branch for each kind of memory.
//
// Huge pages are requested where memory is used densely: for a host that touches scattered bytes,
// the system would clear 2 MiB for each.
//
// A range never moves and never grows; backing changes in granules. At the frontier it grows in
// steps of at least 2 MiB, so that steady growth costs few calls; below the frontier a granule that
// was trimmed is backed again, zeroed, when it is touched. Not thread-safe. Cost: a system call,
// unless a function's comment says less.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/pool/heap/page_mover.hpp"
#include "velo/pool.h"

namespace velo::memory {

// An array with addresses for its greatest length, whose pages are backed when they are touched.
class sparse_array {
 public:
  sparse_array() = default;
  ~sparse_array();
  sparse_array(const sparse_array&) = delete;
  sparse_array& operator=(const sparse_array&) = delete;

  bool reserve(std::uint64_t bytes) noexcept;  // once; contents zero
  void cut(std::uint64_t bytes) noexcept;      // keeps the pages of so many bytes
  // Whole pages of [start, end) become zero and hold no memory. They stay if the system refuses.
  void let_go(std::uint64_t start, std::uint64_t end) noexcept;
  static std::uint64_t page() noexcept;  // bytes
  void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class address_range {
 public:
  static constexpr std::uint64_t huge = std::uint64_t{2} << 20;  // a huge page

  // wanted: bytes of addresses. If the process does not have so many (strict overcommit, Valgrind),
  // repeated halving finds how many it has, and the range takes a quarter of those, at least 64
  // MiB, to leave some for others. Throws VELO_ERR_MEMORY.
  address_range(velo_pool_kind kind, std::uint64_t wanted);
  ~address_range();
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;

  char* begin() const noexcept { return begin_; }  // at a huge page; SHARED: at a page
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t granule() const noexcept { return granule_; }

  // Backs [start, start + bytes), whole granules, whose contents are then zero. False: the system
  // has no more memory, and nothing changed. Below the frontier it makes no call, except for locked
  // memory.
  bool commit(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Returns the memory of whole granules to the system. False: the system refuses, the contents
  // stay.
  bool decommit(std::uint64_t start, std::uint64_t bytes) noexcept;

  void leave() noexcept { left_ = true; }  // the end of this object ends no mapping

  // These unmap whole granules that are not committed; others may then map them. cut: all addresses
  // from there on, which ends the range; give_up: a hole, which the destructor does not unmap
  // again. False: the system refuses, and nothing changed.
  bool cut(std::uint64_t start) noexcept;
  bool give_up(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Moves the memory behind whole huge pages to others, of this or another range, that are
  // committed and were not touched; the source is then as after decommit. Returns the bytes moved:
  // as many as an open `by` can move; else all, or 0 if the system refuses. It needs ordinary or
  // huge memory and Linux 5.7. Cost: a call, or the mover's; pages are neither touched nor copied.
  std::uint64_t move(std::uint64_t start, std::uint64_t bytes, address_range& to, std::uint64_t at,
                     page_mover& by) noexcept;
  bool can_move() const noexcept { return can_move_; }

  // The file of shared memory, in which an address has the same offset as here; else -1.
  int file() const noexcept { return file_; }
  std::uint64_t unlocked() const noexcept { return unlocked_; }  // bytes whose locking was refused

 private:
  bool open_up_to(std::uint64_t end) noexcept;
  bool lock(std::uint64_t start, std::uint64_t bytes) noexcept;
  void join_pieces(std::uint64_t start, std::uint64_t bytes) noexcept;

  // How densely the host touches its memory: ordinary pools observe it, others assume it.
  enum class use : std::uint8_t { unknown, sparse, dense };
  struct stretch {
    std::uint64_t start, end;
  };
  bool wants_huge(std::uint64_t start, std::uint64_t bytes) noexcept;
  use use_of(const stretch& touched) const noexcept;
  void advise_huge(std::uint64_t start, std::uint64_t end) noexcept;
  static constexpr int most_waiting = 16;
  static constexpr std::uint64_t looked_at_most = 2 * huge;  // at the beginning of a commitment

  velo_pool_kind kind_;
  use use_;
  char* begin_ = nullptr;
  std::uint64_t size_ = 0, granule_ = 0;
  std::uint64_t mapped_ = 0;    // from begin_ on
  std::uint64_t frontier_ = 0;  // addresses below may be touched
  std::uint64_t unlocked_ = 0;
  std::uint64_t lockable_ = 0;  // bytes for which control groups had room when last read
  int file_ = -1;
  bool left_ = false;
  bool can_move_;
  stretch waiting_[most_waiting] = {};  // committed with small pages before the use was known
  int waiting_count_ = 0;
  std::uint64_t probe_ = 0;   // where the last of these commitments begins
  std::uint64_t pieces_ = 0;  // memory that was moved here, each a mapping of its own
  sparse_array is_piece_;     // bytes by huge page: one begins here
};

}  // namespace velo::memory
