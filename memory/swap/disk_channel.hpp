// One direction of the disk tier: several pages on their way between memory and files.
//
// A transfer makes each page's request and handles its completion; the channel keeps as many
// requests under way as there are operations, for one copy after another. An operation has staging
// memory of one block, aligned for O_DIRECT, for pages whose own memory is not aligned. A copy that
// fails starts no more requests and ends when those under way are complete; other copies go on. One
// thread at a time. Allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/failure.hpp"
#include "core/host/memory.hpp"
#include "memory/swap/disk_engine.hpp"
#include "memory/swap/tier.hpp"

namespace velo::memory {

// The position of a page in a file.
struct disk_page {
  std::uint64_t offset = 0;
  std::uint32_t stored = 0;    // bytes; 0: nowhere
  std::uint32_t checksum = 0;  // of the page's bytes in memory
  std::uint16_t file = 0;
  bool packed = false;
};

// A copy on its way, page by page.
struct disk_copy {
  tier::copy what;
  std::uint64_t next = 0, end = 0;  // pages of its object that have not begun
  int under_way = 0;                // operations
  int untried = 0;                  // pages that are not to be packed
  bool used = false;                // by a copy that has not ended
  core::failure why;                // code VELO_OK: it has not failed
};

struct disk_operation {
  disk_request request;
  char* staging = nullptr;
  disk_copy* of = nullptr;
  std::uint64_t index = 0;  // of the page in its object
  char* memory = nullptr;   // the page's, `bytes` bytes of it
  std::uint32_t bytes = 0;
  bool staged = false;  // it goes through staging memory
  disk_page page;       // where it is written to or read from
};

class disk_transfer {
 public:
  virtual bool next(disk_copy& one) noexcept = 0;        // false: none is ready
  virtual void prepare(disk_operation& operation) = 0;   // throws: it does not start
  virtual void meanwhile(disk_operation&) noexcept {}    // while it is under way
  virtual void complete(disk_operation& operation) = 0;  // all bytes are there; throws
  virtual void abandon(disk_operation&) noexcept {}      // its copy failed
  virtual void done(const disk_copy& one) noexcept = 0;  // nothing of it is under way any more
  virtual core::text name(const disk_operation& operation) const = 0;  // of the page, for a failure

 protected:
  ~disk_transfer() = default;
};

class disk_channel {
 public:
  // Throws MEMORY.
  disk_channel(std::unique_ptr<disk_engine> engine, core::memory_source& memory, int depth,
               std::uint64_t block);
  ~disk_channel();
  disk_channel(const disk_channel&) = delete;
  disk_channel& operator=(const disk_channel&) = delete;

  void run(disk_transfer& transfer) noexcept;          // until no copy is ready or under way
  char* scratch() const noexcept { return scratch_; }  // one block

 private:
  bool has_page(disk_transfer& transfer) noexcept;
  void start_some(disk_transfer& transfer) noexcept;
  bool goes_on(disk_operation& operation) noexcept;
  void take_back(disk_transfer& transfer, disk_operation& operation) noexcept;
  void retire(disk_transfer& transfer, disk_copy& one) noexcept;
  static void check_result(disk_transfer& transfer, disk_operation& operation);

  std::unique_ptr<disk_engine> engine_;
  core::memory_source& source_;
  const std::uint64_t bytes_;
  void* memory_;
  char* scratch_;
  std::vector<disk_operation> operations_;
  std::vector<disk_operation*> idle_;
  std::vector<disk_copy>
      copies_;  // one more than operations: each but the current has one under way
  disk_copy* current_ = nullptr;
};

}  // namespace velo::memory
