// A file that a user names, written as velo_pool_save writes: to a new file beside the path,
// readable and writable by its owner alone, which takes the path's place by a rename. A link, a
// FIFO or a device at the path is refused and never opened; another hard link of an older file
// keeps its content. The command and the examples write their outputs this way. Cost: system
// calls.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

namespace command {

// A short name in the path's folder, for mkostemp: the path's own may be as long as the file system
// takes.
inline std::string name_beside(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1) + "velo-XXXXXX";
}

// The functions throw std::runtime_error with the reason alone: "Permission denied".
class new_file {
 public:
  explicit new_file(const std::string& path) : path_(path), beside_(name_beside(path)) {
    struct stat there {};
    const bool is_there = ::lstat(path.c_str(), &there) == 0;
    if (!is_there && errno != ENOENT) refuse();
    if (is_there && !S_ISREG(there.st_mode))
      throw std::runtime_error("exists and is no regular file");
    const int file = ::mkostemp(&beside_[0], O_CLOEXEC);
    if (file < 0) refuse();
    stream_.reset(::fdopen(file, "w"));
    if (stream_ == nullptr) {
      const int reason = errno;
      ::close(file);
      ::unlink(beside_.c_str());
      errno = reason;
      refuse();
    }
  }
  ~new_file() {
    if (!beside_.empty()) ::unlink(beside_.c_str());
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  std::FILE* stream() const { return stream_.get(); }

  // Publishes all that was written so far at the path; more may follow through the stream.
  void put_in_place() {
    if (std::fflush(stream()) != 0 || std::ferror(stream()) != 0) refuse();
    place();
  }
  // The same, and the stream is closed: a full disk may show at the close alone.
  void finish() {
    const bool whole = std::ferror(stream()) == 0;
    if (std::fclose(stream_.release()) != 0 || !whole) refuse();
    place();
  }

 private:
  struct closing {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] static void refuse() { throw std::runtime_error(std::strerror(errno)); }
  void place() {
    if (std::rename(beside_.c_str(), path_.c_str()) != 0) refuse();
    beside_.clear();
  }

  std::string path_, beside_;  // beside_: empty when in place
  std::unique_ptr<std::FILE, closing> stream_;
};

inline void write_new_file(const std::string& path, const std::string& text) {
  new_file file(path);
  std::fwrite(text.data(), 1, text.size(), file.stream());
  file.finish();
}

}  // namespace command
