// One direction of the disk tier: it moves several pages at a time between memory and files.
//
// A transfer makes each page's request and handles its completion. The channel keeps as many
// requests under way as there are operations, for one copy after another. An operation has staging
// memory of one block, aligned for O_DIRECT, for pages whose own memory is not aligned. A copy that
// fails starts no more requests and ends when its last request is complete; other copies go on. One
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
  std::uint32_t stored = 0;    // bytes; 0: the page is not stored
  std::uint32_t checksum = 0;  // of the page's bytes in memory, before packing
  std::uint16_t file = 0;
  bool packed = false;
};

// A copy in progress, page by page.
struct disk_copy {
  tier::copy what;
  std::uint64_t next = 0, end = 0;  // pages of the object that have not begun
  int under_way = 0;                // operations in progress
  int untried = 0;                  // next pages for which packing is not tried
  bool used = false;                // a copy that has not ended uses it
  core::failure why;                // code VELO_OK: no failure
};

struct disk_operation {
  disk_request request;
  char* staging = nullptr;
  disk_copy* of = nullptr;
  std::uint64_t index = 0;  // of the page in its object
  char* memory = nullptr;   // `bytes` bytes of the page
  std::uint32_t bytes = 0;
  bool staged = false;  // it goes through staging memory
  disk_page page;       // where it is written to or read from
};

class disk_transfer {
 public:
  virtual bool next(disk_copy& one) noexcept = 0;       // false: none is ready
  virtual void prepare(disk_operation& operation) = 0;  // throws: the operation does not start
  virtual void meanwhile(disk_operation&) noexcept {}   // called while the operation is under way
  // Called when all bytes are transferred; throws.
  virtual void complete(disk_operation& operation) = 0;
  virtual void abandon(disk_operation&) noexcept {}  // called if the operation's copy has failed
  virtual void done(const disk_copy& one) noexcept = 0;  // called after the copy's last operation
  // Names the page in a failure.
  virtual core::text name(const disk_operation& operation) const = 0;

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

  void run(disk_transfer& transfer) noexcept;          // until no copy is ready or in progress
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
      // One more than operations: every copy but the current one has an operation under way.
      copies_;
  disk_copy* current_ = nullptr;
};

}  // namespace velo::memory
