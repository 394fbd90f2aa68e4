// Writing a file beside the path, and renaming it.
#include "core/host/new_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/failure.hpp"

namespace velo::core {
namespace {

// A short name in the path's folder, since the path's own name may have the greatest length that
// the file system allows.
std::string name_beside(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1) + "velo-XXXXXX";
}

}  // namespace

new_file::new_file(const char* path, const char* argument)
    : argument_(argument), path_(path), beside_(name_beside(path_)) {
  if (*path == 0) fail(VELO_ERR_ARGUMENT, argument, "the name of a file", "an empty one");
  struct stat there {};
  const bool is_there = lstat(path, &there) == 0;
  if (!is_there && errno != ENOENT) refuse("a file to write", errno);
  if (is_there && !S_ISREG(there.st_mode))
    fail(VELO_ERR_IO, argument, "an ordinary file, or none yet", path,
         S_ISLNK(there.st_mode) ? "a symbolic link" : "something else");
  file_ = mkostemp(beside_.data(), O_CLOEXEC);
  if (file_ < 0) refuse("a file to write", errno);
}

new_file::~new_file() {
  if (file_ >= 0) close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
}

namespace {

// Keeps the signal of a file that would grow beyond RLIMIT_FSIZE from ending the process: the write
// fails, too, and says so.
class blocked_size_signal {
 public:
  blocked_size_signal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    waits_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  blocked_size_signal(const blocked_size_signal&) = delete;
  ~blocked_size_signal() {
    const timespec now{};
    while (!waits_ && sigtimedwait(&signal_, nullptr, &now) == -1 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_, before_;
  bool waits_;  // one of the host's own, before the write
};

}  // namespace

int new_file::try_write(const char* bytes, std::size_t count) const noexcept {
  const blocked_size_signal guard;
  while (count > 0) {
    const ssize_t done = ::write(file_, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes += done;
    count -= static_cast<std::size_t>(done);
  }
  return 0;
}

void new_file::write(const char* bytes, std::size_t count) {
  if (const int error = try_write(bytes, count); error != 0) refuse("a file that takes all", error);
}

void new_file::put_in_place() {
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) refuse("a file that takes all", errno);
  beside_.clear();
}

void new_file::finish() {
  if (close(std::exchange(file_, -1)) != 0) refuse("a file that takes all", errno);
  put_in_place();
}

void new_file::refuse(const char* expected, int error) const {
  fail(VELO_ERR_IO, argument_, expected, path_.c_str(), std::strerror(error));
}

}  // namespace velo::core
