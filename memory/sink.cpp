// Files are written beside their path and take its place by a rename.
#include "memory/sink.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/failure.hpp"

namespace velo::memory {

void buffer_sink::write(const char* bytes, std::size_t count) {
  if (written_ < capacity_)
    std::memcpy(to_ + written_, bytes, std::min<std::uint64_t>(count, capacity_ - written_));
  written_ += count;
}

std::uint64_t buffer_sink::finish() {
  empty();
  if (capacity_ > 0) to_[std::min(written_, capacity_ - 1)] = 0;
  return written_ + 1;
}

file_sink::file_sink(const char* path) : path_(path), written_as_(path_ + ".XXXXXX") {
  if (*path == 0) core::fail(VELO_ERR_ARGUMENT, "path", "the name of a file", "an empty one");
  struct stat there {};
  if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
    core::fail(VELO_ERR_IO, "path", "an ordinary file, or none yet", path,
               S_ISLNK(there.st_mode) ? "a symbolic link" : "something else");
  file_ = mkostemp(written_as_.data(), O_CLOEXEC);
  if (file_ < 0) refuse("a file to write", errno);
}

file_sink::~file_sink() {
  if (file_ < 0) return;
  close(file_);
  unlink(written_as_.c_str());
}

void file_sink::write(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t done = ::write(file_, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse("a file that takes all", errno);
    bytes += done;
    count -= static_cast<std::size_t>(done);
  }
}

// A full disk may show at the close alone.
void file_sink::finish() {
  empty();
  if (close(std::exchange(file_, -1)) != 0 ||
      std::rename(written_as_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(written_as_.c_str());
    refuse("a file that takes all", error);
  }
}

void file_sink::refuse(const char* what, int error) const {
  core::fail(VELO_ERR_IO, "path", what, path_.c_str(), std::strerror(error));
}

}  // namespace velo::memory
