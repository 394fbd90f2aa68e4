// Sockets between processes of one host that carry descriptors, with a deadline on every wait.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace velo::comm {

// A descriptor that is closed in the end.
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

// A point in time at which waiting ends. glance: called now and then meanwhile; throws when there
// is nothing to wait for any more.
class deadline {
 public:
  static deadline after(std::int64_t ns, std::function<void()> glance = nullptr);
  std::int64_t left_ns() const noexcept;
  bool is_over() const noexcept { return left_ns() <= 0; }
  int left_ms() const noexcept;  // rounded up, until the next glance; at least 0
  void glance() const {
    if (glance_) glance_();
  }

 private:
  std::int64_t at_ = 0;
  std::function<void()> glance_;
};

inline constexpr std::size_t most_descriptors = 128;  // in one packet

descriptor listen_at(const std::string& path) noexcept;  // none: errno says why
// Waits for whatever may be read of these, until the next glance at most; how many may be.
int await_readable(pollfd* lines, std::size_t count, const deadline& until);
descriptor accept_now(int listening) noexcept;  // none: errno says why
// The file of a socket that was connected to.
struct socket_file {
  std::string path;
  ino_t number = 0;
};
ino_t number_at(const std::string& path) noexcept;  // of the file that is there now; 0: none
// At the first of the paths, which are asked for anew before each attempt, that is listened at.
// None when the deadline comes first, or there is no socket to be had.
descriptor connect_by(const std::function<std::vector<std::string>()>& paths, const deadline& until,
                      socket_file& found);
bool is_own_user(int line) noexcept;
bool is_closed(int line) noexcept;  // by the other side

bool send_packet(int line, const void* bytes, std::size_t size, const int* descriptors,
                 std::size_t count) noexcept;
// Of at least `least` bytes, 0: of `size`; of a longer one the first `size`. False: the other side
// is gone, it said less, or the deadline came first. lost: whether descriptors that it handed over
// found no place here.
bool receive(int line, void* bytes, std::size_t size, std::vector<descriptor>& handed,
             const deadline& until, std::size_t least = 0, bool* lost = nullptr);

int open_process(pid_t process) noexcept;  // a descriptor; -1: errno says why
bool has_ended(int process) noexcept;      // of such a descriptor

}  // namespace velo::comm
