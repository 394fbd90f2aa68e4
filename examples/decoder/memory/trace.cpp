// One line for each event; the event's number stands for its time.
#include "examples/decoder/memory/trace.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

constexpr const char* header = "Thread,Time,Action,Pointer,Size,Stream";

}  // namespace

memory_trace::memory_trace(const std::string& path) : path_(path) {
  const std::string first_line = std::string(header) + '\n';
  const std::string before = beginning_if_any(path, first_line.size());
  if (!before.empty() && before != first_line)
    fail("%s: exists and is not a trace of memory; it is left as it is", path.c_str());
  try {
    file_ = std::make_unique<command::new_file>(path);
    std::fputs(first_line.c_str(), file_->stream());
    file_->put_in_place();
  } catch (const std::runtime_error& reason) {
    fail("%s: cannot write the trace: %s", path.c_str(), reason.what());
  }
}

void memory_trace::add(const char* action, const void* memory, std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!file_) return;
  std::fprintf(file_->stream(), "1,%lld,%s,%p,%lld,0\n", time_++, action, memory,
               static_cast<long long>(bytes));
}

std::string memory_trace::finish() {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!file_) return "";
  const bool whole = std::fflush(file_->stream()) == 0 && !std::ferror(file_->stream());
  std::string why = whole ? "" : path_ + ": cannot write the trace: " + std::strerror(errno);
  file_.reset();
  return why;
}

}  // namespace decoder
