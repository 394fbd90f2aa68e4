// Moves the memory behind huge pages into one stretch of addresses, many of them, by userfaultfd.
//
// A call of mremap takes a mapping apart and makes a new one; UFFDIO_MOVE (Linux 6.8) changes page
// tables alone, in a third of the time, and leaves no mappings behind. The stretch is registered as
// long as the mover is open, and no thread may touch it meanwhile, since it would wait for a
// handler that does not exist. The pages belong to free blocks, so their contents do not matter. If
// the system lacks the call or refuses it, nothing is moved and mremap remains. Cost: five calls,
// 20 us, and 1.5 us for a huge page. Small pages take a hundred times as long: after three it
// closes.
#pragma once

#include <cstdint>

namespace velo::memory {

class page_mover {
 public:
  static constexpr std::uint64_t least = std::uint64_t{16} << 20;  // fewer bytes do not pay

  page_mover() = default;
  ~page_mover() { close(); }
  page_mover(const page_mover&) = delete;
  page_mover& operator=(const page_mover&) = delete;

  // to: whole huge pages that are accessible and were not touched. If it cannot be opened, moves
  // return 0.
  void open(char* to, std::uint64_t bytes) noexcept;
  void close() noexcept;

  // Returns the bytes moved: whole huge pages, from the first on.
  std::uint64_t move(char* from, std::uint64_t bytes, char* to) noexcept;

 private:
  bool move_one(char* from, char* to) noexcept;

  int file_ = -1;
  char* start_ = nullptr;
  std::uint64_t bytes_ = 0;
  int slow_ = 0;  // huge pages in a row that took too long
};

}  // namespace velo::memory
