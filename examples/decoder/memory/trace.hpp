// Allocations and frees of a run's memory as a text, --memory_trace FILE: RMM's log, which
// `velo replay` holds pools and plans against.
//
// From the beginning of the run to the end of its third step; what is not freed by then stays. A
// write that fails ends the trace, and the run goes on; its exit code tells.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "examples/new_file.hpp"

namespace decoder {

class memory_trace {
 public:
  explicit memory_trace(const std::string& path);  // an earlier trace is replaced, nothing else

  void add(const char* action, const void* memory, std::int64_t bytes);

  // Why the file is not whole; empty when it is. Nothing is added afterwards.
  std::string finish();

 private:
  std::mutex lock_;  // packs and scratch may be any thread's
  std::unique_ptr<examples::new_file> file_;
  std::string path_;
  long long time_ = 0;
};

}  // namespace decoder
