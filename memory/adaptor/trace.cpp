// Writes each call as a line of RMM's log. Calls are kept as records and formatted when 4096 are
// together, so that a call costs a lock and a copy; a write that fails is kept and said by flush,
// and the calls it lost are no more.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>

#include "core/host_call.hpp"
#include "core/process.hpp"
#include "memory/adaptor/adaptor.hpp"

namespace velo::memory {
namespace {

std::uint64_t address(const void* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p);
}

// Asked of Linux once by each thread of each process.
pid_t thread_number() noexcept {
  struct known {
    std::uint32_t epoch;
    pid_t number;
  };
  static thread_local known mine{0, 0};
  const std::uint32_t epoch = core::process_epoch();
  if (epoch == 0 || mine.epoch != epoch) mine = {epoch, static_cast<pid_t>(syscall(SYS_gettid))};
  return mine.number;
}

// One behind the other, without a look at the locale; there is room for the longest line.
class line_writer {
 public:
  explicit line_writer(char* to) : at_(to) {}
  line_writer& operator<<(const char* text) noexcept {
    while (*text != 0) *at_++ = *text++;
    return *this;
  }
  line_writer& operator<<(std::uint64_t n) noexcept { return add(n, 10); }
  line_writer& add(std::uint64_t n, int base) noexcept {
    at_ = std::to_chars(at_, at_ + 20, n, base).ptr;
    return *this;
  }
  char* end() const noexcept { return at_; }

 private:
  char* at_;
};

class trace final : public adaptor {
 public:
  trace(const velo_allocator& upstream, const char* path)
      : adaptor(upstream),
        file_(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (file_ < 0)
      core::fail(VELO_ERR_IO, "desc.path", "a file to write", path, std::strerror(errno));
    constexpr char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";
    write_out(header, sizeof header - 1);
  }
  ~trace() override {
    write_records();
    close(file_);
  }

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    add(memory == nullptr ? "allocate failure" : "allocate", memory, what);
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    add("free", memory, what);  // before another call can be given the same memory
    give(memory, what);
  }
  void flush() override {
    const std::lock_guard<std::mutex> lock(lock_);
    write_records();
    if (failed_ != 0)
      core::fail(VELO_ERR_IO, "adaptor", "a file that takes the trace", "a write that failed",
                 std::strerror(failed_));
  }

 private:
  static constexpr int most = 4096;
  static constexpr int longest_line = 128;

  struct record {
    const char* action;
    const void* memory;
    const void* stream;
    std::uint64_t bytes;
    pid_t thread;
  };

  void add(const char* action, const void* memory, const memory_request& what) {
    const pid_t thread = thread_number();
    const std::lock_guard<std::mutex> lock(lock_);
    if (count_ == most) write_records();
    records_[count_++] = {action, memory, what.stream, what.bytes, thread};
  }

  void write_records() noexcept {
    const core::uncancelled here;
    char text[64 * longest_line];
    int length = 0;
    for (int i = 0; i < count_; ++i) {
      const record& r = records_[i];
      line_writer line(text + length);
      line << static_cast<std::uint64_t>(r.thread) << "," << written_++ << "," << r.action << ",0x";
      line.add(address(r.memory), 16) << "," << r.bytes << "," << address(r.stream) << "\n";
      length = static_cast<int>(line.end() - text);
      if (length < static_cast<int>(sizeof text) - longest_line && i + 1 < count_) continue;
      write_out(text, static_cast<std::size_t>(length));
      length = 0;
    }
    count_ = 0;
  }

  void write_out(const char* text, std::size_t length) noexcept {
    while (length > 0 && failed_ == 0) {
      const ssize_t done = write(file_, text, length);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) failed_ = errno;
      if (done > 0) text += done, length -= static_cast<std::size_t>(done);
    }
  }

  const int file_;
  std::mutex lock_;
  record records_[most];
  int count_ = 0;
  int failed_ = 0;  // errno of the first write that failed
  std::uint64_t written_ = 0;
};

}  // namespace

std::unique_ptr<adaptor> make_trace(const velo_allocator& upstream, const char* path) {
  return std::make_unique<trace>(upstream, path);
}

}  // namespace velo::memory
