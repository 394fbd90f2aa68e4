// Allocations and frees of a run's memory as text, --memory_trace FILE, in RMM's log format, which
// `velo replay` runs on pools and plans.
//
// It covers the run up to the end of its third step. A failed write ends the trace, not the run;
// the exit code reports it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tools/velo/new_file.hpp"

namespace decoder {

class memory_trace {
 public:
  explicit memory_trace(const std::string& path);  // replaces an earlier trace, refuses other files

  void add(const char* action, const void* memory, std::int64_t bytes);

  // Ends the trace and returns why the file is not whole; empty when it is.
  std::string finish();

 private:
  std::mutex lock_;  // any thread may allocate packs and scratch
  std::unique_ptr<command::new_file> file_;
  std::string path_;
  long long time_ = 0;
};

}  // namespace decoder
