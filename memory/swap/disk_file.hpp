// A nameless file that holds the disk tier's pages, and the map of its space.
//
// The file ends with its last descriptor, and so with the process. It grows in steps of
// preallocated space, so that a full disk is detected before anything is written. Space is counted
// in sectors of 4 KiB, one bit each; a search begins where the previous one ended. Giving space
// back allocates nothing. Thread-safe. Cost: a lock and a few words of the map, and 0.2 ms in a
// full file of 100 GiB.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace velo::memory {

class disk_file {
 public:
  static constexpr std::uint64_t sector = 4096;  // the unit of O_DIRECT

  // direct: opens with O_DIRECT. Throws VELO_ERR_IO naming the directory.
  disk_file(std::string directory, bool direct);
  ~disk_file();
  disk_file(const disk_file&) = delete;
  disk_file& operator=(const disk_file&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  bool is_direct() const noexcept { return direct_; }
  const std::string& directory() const noexcept { return directory_; }

  // Reserves `bytes` bytes, a multiple of the sector, and returns their offset. Throws VELO_ERR_IO
  // (no space), MEMORY.
  std::uint64_t take(std::uint64_t bytes);
  void give(std::uint64_t offset, std::uint64_t bytes) noexcept;

 private:
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

  // In sectors; returns `nowhere` if there is no such space.
  std::uint64_t find(std::uint64_t count) const noexcept;
  std::uint64_t run_between(std::uint64_t from, std::uint64_t to,
                            std::uint64_t count) const noexcept;
  void grow(std::uint64_t count);
  void mark(std::uint64_t first, std::uint64_t count, bool used) noexcept;

  const std::string directory_;
  int descriptor_ = -1;
  bool direct_ = false;

  std::mutex lock_;  // guards the following members
  std::vector<std::uint64_t> used_;
  std::uint64_t sectors_ = 0, hint_ = 0;
};

}  // namespace velo::memory
