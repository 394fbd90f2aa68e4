// Unix sockets between processes of one host, which pass file descriptors. Every wait has a
// deadline.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace velo::comm {

// An owned file descriptor.
class descriptor {
 public:
  explicit descriptor(int number = -1) noexcept : number_(number) {}
  descriptor(descriptor&& from) noexcept : number_(from.release()) {}
  descriptor& operator=(descriptor&& from) noexcept;
  ~descriptor();

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int release() noexcept;

 private:
  int number_;
};

// The time at which a wait ends. check: called periodically during the wait; throws to end it
// early.
class deadline {
 public:
  static deadline after(std::int64_t ns, std::function<void()> check = nullptr);
  std::int64_t left_ns() const noexcept;
  bool is_over() const noexcept { return left_ns() <= 0; }
  int left_ms() const noexcept;  // rounded up, at most the poll interval; at least 0
  void check() const {
    if (check_) check_();
  }

 private:
  std::int64_t at_ = 0;
  std::function<void()> check_;
};

inline constexpr std::size_t most_descriptors = 128;  // in one packet

descriptor listen_at(const std::string& path) noexcept;  // empty: errno says why
// Waits for readable sockets, at most for the poll interval; returns their number.
int await_readable(pollfd* lines, std::size_t count, const deadline& until);
descriptor accept_now(int listening) noexcept;  // empty: errno says why
// The file of a connected socket.
struct socket_file {
  std::string path;
  ino_t inode = 0;
};
ino_t inode_at(const std::string& path) noexcept;  // 0: there is no file
// Connects to the first path at which a process listens. paths() is called before each attempt. The
// descriptor is empty if the deadline comes first or no socket can be made.
descriptor connect_by(const std::function<std::vector<std::string>()>& paths, const deadline& until,
                      socket_file& found);
bool is_own_user(int line) noexcept;
bool is_closed(int line) noexcept;  // by the other side

bool send_packet(int line, const void* bytes, std::size_t size, const int* descriptors,
                 std::size_t count) noexcept;
// Receives a packet. Accepts `least` bytes or more (0: `size`), and drops bytes beyond `size`.
// Returns false if the peer is gone or sent less, or if the deadline came first. lost: whether some
// passed descriptors did not fit in this process.
bool receive(int line, void* bytes, std::size_t size, std::vector<descriptor>& passed,
             const deadline& until, std::size_t least = 0, bool* lost = nullptr);

int open_process(pid_t process) noexcept;  // a pidfd; -1: errno says why
bool has_ended(int process) noexcept;      // takes a pidfd

}  // namespace velo::comm
