// Writes each call as a line of RMM's log. Calls are stored as records and formatted 256 at a time,
// so a call costs a lock and a copy. flush() reports an earlier failed write, whose calls are lost.
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <mutex>

#include "core/handle/host_call.hpp"
#include "core/handle/process.hpp"
#include "core/host/new_file.hpp"
#include "memory/adaptor/adaptor.hpp"
#include "memory/pool/brief_lock.hpp"

namespace velo::memory {
namespace {

std::uint64_t address(const void* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p);
}

// Each thread of each process asks Linux once.
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

// The text between the number of a call and its address.
struct action {
  char text[24];
  std::size_t length;
};
template <std::size_t size>
constexpr action make_action(const char (&text)[size]) {
  action made{};
  for (std::size_t i = 0; i + 1 < size; ++i) made.text[i] = text[i];
  made.length = size - 1;
  return made;
}
constexpr action allocated = make_action(",allocate,0x"), freed = make_action(",free,0x"),
                 refused = make_action(",allocate failure,0x");

// A number as text, for consecutive lines in which it is equal or increases by one.
class text_number {
 public:
  text_number() { *first_ = '0'; }
  char* write(char* to) const noexcept {
    std::memcpy(to, first_, longest);  // of constant size, so that the compiler makes no call of it
    return to + (digits_ + longest - first_);
  }
  void set(std::uint64_t n) noexcept {
    first_ = digits_ + longest;
    do *--first_ = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
  }
  void next() noexcept {
    char* digit = digits_ + longest - 1;
    while (digit >= first_ && *digit == '9') *digit-- = '0';
    if (digit < first_) {
      first_ = digit;
      *digit = '0';
    }
    ++*digit;
  }

 private:
  static constexpr std::size_t longest = 24;

  char digits_[2 * longest] = {};  // they end in the middle
  char* first_ = digits_ + longest - 1;
};

// The eight hexadecimal digits of a number below 2^32, in the order of memory: each half byte
// becomes a byte.
std::uint64_t hex_digits(std::uint64_t n) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  n = (n | n << 16) & 0x0000ffff0000ffff;
  n = (n | n << 8) & 0x00ff00ff00ff00ff;
  n = (n | n << 4) & (ones * 15);
  const std::uint64_t above_9 = (n + ones * 6) >> 4 & ones;
  return __builtin_bswap64(n + ones * '0' + above_9 * ('a' - '0' - 10));
}

// Appends the fields of a line without printf, so that the locale does not matter. The buffer has
// room for the longest line.
class line_writer {
 public:
  explicit line_writer(char* to) : at_(to) {}
  void add(char c) noexcept { *at_++ = c; }
  void add(const action& a) noexcept {
    std::memcpy(at_, a.text, sizeof a.text);
    at_ += a.length;
  }
  void add(const text_number& n) noexcept { at_ = n.write(at_); }
  void add(std::uint64_t n) noexcept {
    if (n < 10)
      add(static_cast<char>('0' + n));
    else
      at_ = std::to_chars(at_, at_ + 20, n).ptr;
  }
  // All 16 digits, moved to the front so that the zeros before the number come last.
  void add_hex(std::uint64_t n) noexcept {
    const int digits = n != 0 ? (67 - __builtin_clzll(n)) / 4 : 1;
    n <<= 64 - 4 * digits;
    const std::uint64_t text[] = {hex_digits(n >> 32), hex_digits(n & 0xffffffff)};
    std::memcpy(at_, text, sizeof text);
    at_ += digits;
  }
  char* end() const noexcept { return at_; }

 private:
  char* at_;
};

class trace final : public adaptor {
 public:
  trace(const velo_allocator& upstream, const char* path)
      : adaptor(upstream), file_(path, "desc.path") {
    constexpr char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";
    file_.write(header, sizeof header - 1);
    file_.put_in_place();  // at once: after a flush, the calls so far are at the path
  }
  ~trace() override { write_records(); }

  void* allocate(const memory_request& what) override {
    void* memory = ask(what);
    add(memory == nullptr ? refused : allocated, memory, what);
    return memory;
  }
  void deallocate(void* memory, const memory_request& what) override {
    add(freed, memory, what);  // before another call can get the same memory
    give(memory, what);
  }
  void flush() override {
    const std::lock_guard<brief_lock> lock(lock_);
    write_records();
    if (failed_ != 0)
      core::fail(VELO_ERR_IO, "adaptor", "a file that takes the trace", "a write that failed",
                 std::strerror(failed_));
  }

 private:
  static constexpr int most = 256;
  static constexpr int longest_line = 128;

  struct record {
    const action* done;
    const void* memory;
    const void* stream;
    std::uint64_t bytes;
    pid_t thread;
  };

  void add(const action& done, const void* memory, const memory_request& what) {
    const pid_t thread = thread_number();
    const std::lock_guard<brief_lock> lock(lock_);
    if (count_ == most) write_records();
    records_[count_++] = {&done, memory, what.stream, what.bytes, thread};
  }

  void write_records() noexcept {
    const core::uncancelled here;
    char text[most * longest_line];
    line_writer lines(text);
    for (int i = 0; i < count_; ++i) {
      const record& r = records_[i];
      if (r.thread != thread_) thread_text_.set(static_cast<std::uint64_t>(thread_ = r.thread));
      lines.add(thread_text_);
      lines.add(',');
      lines.add(written_);
      written_.next();
      lines.add(*r.done);
      lines.add_hex(address(r.memory));
      lines.add(',');
      lines.add(r.bytes);
      lines.add(',');
      lines.add(address(r.stream));
      lines.add('\n');
    }
    if (failed_ == 0) failed_ = file_.try_write(text, static_cast<std::size_t>(lines.end() - text));
    count_ = 0;
  }

  core::new_file file_;
  brief_lock lock_;
  record records_[most];
  int count_ = 0;
  int failed_ = 0;  // errno of the first write that failed
  text_number written_, thread_text_;
  pid_t thread_ = 0;  // whose number the text is
};

}  // namespace

std::unique_ptr<adaptor> make_trace(const velo_allocator& upstream, const char* path) {
  return std::make_unique<trace>(upstream, path);
}

}  // namespace velo::memory
