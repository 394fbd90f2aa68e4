// Locks the folder and tries everything that will be written.
#include "examples/decoder/checkpoint/out_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/failure.hpp"

namespace decoder {

namespace fs = std::filesystem;

out_folder::out_folder(const std::string& path) : path_(path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("%s: cannot create: %s", path.c_str(), error.message().c_str());
  lock();
  require_place(checkpoint());
  const fs::file_status curve_now = fs::symlink_status(curve(), error);
  if (fs::exists(curve_now) && !fs::is_regular_file(curve_now))
    fail("%s: exists and is no regular file; the curve is to be drawn there", curve().c_str());
}

void out_folder::lock() {
  const std::string name = path_ + "/.lock";
  lock_ = descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock_.get() < 0 && errno == ELOOP)
    fail("%s: exists and is no regular file; the run's lock is to be there", name.c_str());
  if (lock_.get() < 0) fail("%s: cannot create: %s", name.c_str(), std::strerror(errno));
  struct stat there {};
  if (::fstat(lock_.get(), &there) != 0 || !S_ISREG(there.st_mode) || there.st_nlink > 1)
    fail("%s: exists and is no regular file of one name; the run's lock is to be there",
         name.c_str());
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("%s: cannot lock: %s", name.c_str(), std::strerror(errno));
    const std::string process = read_whole_file(name);
    fail("%s: another run (process %s) writes here; wait for it, or give this one its own --out",
         path_.c_str(), process.c_str());
  }
  const std::string process = std::to_string(::getpid());
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::write(lock_.get(), process.data(), process.size()) != static_cast<ssize_t>(process.size()))
    fail("%s: cannot write: %s", name.c_str(), std::strerror(errno));
}

void out_folder::require_apart(const char* flag, const std::string& file) const {
  const auto whole = [](const std::string& path) { return fs::weakly_canonical(path).string(); };
  const std::string where = whole(file);
  for (const std::string& own : {checkpoint(), curve(), path_ + "/.lock"}) {
    if (where == whole(own) || where.rfind(whole(own) + "/", 0) == 0)
      fail("%s: %s is where the run keeps %s", flag, file.c_str(), own.c_str());
  }
}

std::string out_folder::place_for_earlier() const {
  if (!fs::exists(checkpoint())) return "";
  for (int i = 1;; ++i) {
    std::string name = checkpoint() + "." + std::to_string(i);
    if (!fs::exists(fs::symlink_status(name))) return name;
  }
}

}  // namespace decoder
