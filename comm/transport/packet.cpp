// The system calls of packet.hpp, repeated when a signal interrupts them.
#include "comm/transport/packet.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/host/clock.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

using core::now_ns;

constexpr std::int64_t poll_interval_ms = 50;

bool address_of(const std::string& path, sockaddr_un& address) noexcept {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

descriptor new_socket(int more = 0) noexcept {
  return descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | more, 0));
}

// Whether there is something to read before the deadline.
bool readable_by(int line, const deadline& until) {
  while (true) {
    pollfd one{line, POLLIN, 0};
    if (await_readable(&one, 1, until) > 0) return true;
    if (until.is_over()) return false;
  }
}

}  // namespace

descriptor& descriptor::operator=(descriptor&& from) noexcept {
  if (this != &from) {
    if (number_ >= 0) close(number_);
    number_ = from.release();
  }
  return *this;
}

descriptor::~descriptor() {
  if (number_ >= 0) close(number_);
}

int descriptor::release() noexcept {
  return std::exchange(number_, -1);
}

deadline deadline::after(std::int64_t ns, std::function<void()> check) {
  deadline made;
  made.check_ = std::move(check);
  if (__builtin_add_overflow(now_ns(), ns, &made.at_)) made.at_ = INT64_MAX;
  return made;
}

std::int64_t deadline::left_ns() const noexcept {
  return at_ - now_ns();
}

int deadline::left_ms() const noexcept {
  const std::int64_t ms = core::ceil_div(left_ns(), 1000000);
  return static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(ms, 0), poll_interval_ms));
}

descriptor listen_at(const std::string& path) noexcept {
  sockaddr_un address;
  descriptor made = new_socket();
  if (!made || !address_of(path, address) ||
      bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(made.get(), 1024) != 0)
    return descriptor();
  return made;
}

int await_readable(pollfd* lines, std::size_t count, const deadline& until) {
  const int ready = poll(lines, count, until.left_ms());
  if (ready > 0) return ready;
  try {
    until.check();
  } catch (...) {
    // A peer may have sent something and gone, so the failure counts only if nothing can be read.
    const int late = poll(lines, count, 0);
    if (late > 0) return late;
    throw;
  }
  return 0;
}

descriptor accept_now(int listening) noexcept {
  return descriptor(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
}

ino_t inode_at(const std::string& path) noexcept {
  struct stat is {};
  return stat(path.c_str(), &is) == 0 ? is.st_ino : 0;
}

// A listener with a full queue is tried again, since a blocking attempt would ignore the deadline.
descriptor connect_by(const std::function<std::vector<std::string>()>& paths, const deadline& until,
                      socket_file& found) {
  std::int64_t pause_ns = 200000;
  while (true) {
    for (const std::string& path : paths()) {
      sockaddr_un address;
      if (!address_of(path, address)) continue;
      descriptor made = new_socket(SOCK_NONBLOCK);
      if (!made) return made;
      found = {path,
               inode_at(path)};  // read first: a file that replaces it later has another inode
      if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        continue;
      fcntl(made.get(), F_SETFL, 0);
      return made;
    }
    if (until.is_over()) return descriptor();
    until.check();
    const timespec pause{
        0, static_cast<long>(std::min(pause_ns, std::max(until.left_ns(), std::int64_t{1})))};
    nanosleep(&pause, nullptr);
    pause_ns = std::min<std::int64_t>(2 * pause_ns, 5000000);
  }
}

bool is_own_user(int line) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

bool is_closed(int line) noexcept {
  pollfd one{line, POLLRDHUP, 0};
  return poll(&one, 1, 0) > 0;
}

bool send_packet(int line, const void* bytes, std::size_t size, const int* descriptors,
                 std::size_t count) noexcept {
  iovec body{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
  }
  while (true) {
    const ssize_t sent = sendmsg(line, &message, MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent == static_cast<ssize_t>(size);
  }
}

bool receive(int line, void* bytes, std::size_t size, std::vector<descriptor>& passed,
             const deadline& until, std::size_t least, bool* lost) {
  if (!readable_by(line, until)) return false;
  iovec body{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  while ((got = recvmsg(line, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (got < 0) return false;
  if (lost != nullptr) *lost = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int numbers[most_descriptors];
    std::memcpy(numbers, CMSG_DATA(head), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) passed.emplace_back(numbers[i]);
  }
  return got >= static_cast<ssize_t>(least == 0 ? size : least);
}

int open_process(pid_t process) noexcept {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
  errno = ENOSYS;
  return -1;
#endif
}

bool has_ended(int process) noexcept {
  pollfd one{process, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace velo::comm
