// One direction of the disk tier: several pages on their way between memory and files.
//
// A transfer says what each page's request is and what follows its end; the channel keeps as many
// requests under way as there are parts. A part has staging memory of one block, aligned as O_DIRECT
// wants it, for pages whose own memory is not. After a failure nothing more is started, and what is
// under way comes back before run() throws. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/failure.hpp"
#include "core/memory.hpp"
#include "memory/swap/disk_engine.hpp"

namespace velo::memory {

// Where a page is in a file.
struct disk_page {
  std::uint64_t offset = 0;
  std::uint32_t stored = 0;    // bytes; 0: nowhere
  std::uint32_t checksum = 0;  // of what the page is in memory
  std::uint16_t file = 0;
  bool packed = false;
};

struct disk_part {
  disk_request request;
  char* staging = nullptr;
  std::uint64_t index = 0;  // of the page in its object
  char* memory = nullptr;   // the page's, `bytes` bytes of it
  std::uint32_t bytes = 0;
  bool staged = false;  // it goes through staging memory
  disk_page page;       // where it is written to or read from
};

class disk_transfer {
 public:
  virtual void prepare(disk_part& part, std::uint64_t number) = 0;  // throws: it does not start
  virtual void meanwhile(disk_part&) noexcept {}                    // while it is under way
  virtual void complete(disk_part& part) = 0;                       // all bytes are there
  virtual void abandon(disk_part&) noexcept {}                      // a request failed
  virtual core::text name(const disk_part& part) const = 0;         // of the page, for a failure

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

  void run(disk_transfer& transfer, std::uint64_t pages);  // throws what the transfer throws, IO
  char* scratch() const noexcept { return scratch_; }      // one block

 private:
  void start_some(disk_transfer& transfer, std::uint64_t pages);
  bool goes_on(disk_part& part) noexcept;
  void end(disk_transfer& transfer, disk_part& part);

  std::unique_ptr<disk_engine> engine_;
  core::memory_source& source_;
  const std::uint64_t bytes_;
  void* memory_;
  char* scratch_;
  std::vector<disk_part> parts_;
  std::vector<disk_part*> idle_;
  std::uint64_t next_ = 0;
};

}  // namespace velo::memory
