// How the disk tier reads and writes files: several requests under way at a time.
//
// One thread starts requests and collects completed ones in any order. A request and its memory
// stay in place until it is complete; an engine is destroyed after all are complete. There are two
// engines: io_uring, if the system allows it, and threads that read and write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace velo::memory {

struct disk_request {
  int file = -1;
  bool writes = false;
  char* memory = nullptr;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;
  std::int64_t result = 0;  // bytes read or written, or -errno
};

class disk_engine {
 public:
  disk_engine() = default;
  virtual ~disk_engine() = default;
  disk_engine(const disk_engine&) = delete;
  disk_engine& operator=(const disk_engine&) = delete;

  // The caller keeps fewer than `depth` requests under way.
  virtual void start(disk_request& request) noexcept = 0;
  virtual disk_request& finish() noexcept = 0;  // waits for one of the requests under way
};

// nullptr: the system refuses, and `why` gives the failed call and its error.
std::unique_ptr<disk_engine> make_uring_engine(int depth, std::string& why);

std::unique_ptr<disk_engine> make_thread_engine(int depth);  // throws VELO_ERR_MEMORY

// Runs the request on the calling thread.
std::int64_t read_or_write(const disk_request& request) noexcept;

}  // namespace velo::memory
