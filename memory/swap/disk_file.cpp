// The directory is opened first and the file is made inside it, so that the checks and the file
// refer to the same directory.
#include "memory/swap/disk_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/failure.hpp"
#include "core/round_up.hpp"

namespace velo::memory {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t first_step = (std::uint64_t{64} << 20) / disk_file::sector;
constexpr std::uint64_t largest_step = (std::uint64_t{1} << 30) / disk_file::sector;
constexpr mode_t owner_alone = S_IRUSR | S_IWUSR;

[[noreturn]] void refuse(const std::string& directory, const char* expected) {
  const int why = errno;
  core::fail(VELO_ERR_IO, "desc.directories", expected, core::text("%s", directory.c_str()),
             core::text("%s", std::strerror(why)));
}

class opened_directory {
 public:
  explicit opened_directory(int opened) : opened_(opened) {}
  ~opened_directory() {
    if (opened_ >= 0) close(opened_);
  }
  opened_directory(const opened_directory&) = delete;
  opened_directory& operator=(const opened_directory&) = delete;
  operator int() const { return opened_; }

 private:
  int opened_;
};

// Makes a file without a name; O_EXCL prevents that it gets one later.
int open_nameless(int directory, int extra) {
  return openat(directory, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC | extra, owner_alone);
}

// Makes a file with a random name and removes the name at once, for file systems without nameless
// files.
int open_unlinked(int directory, int extra) {
  for (int tries = 0; tries < 16; ++tries) {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return -1;
    char name[40];
    std::snprintf(name, sizeof name, ".velo-swap-%016llx", static_cast<unsigned long long>(random));
    const int opened = openat(
        directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | extra, owner_alone);
    if (opened >= 0 && unlinkat(directory, name, 0) != 0) {
      const int why = errno;
      close(opened);
      errno = why;
      return -1;
    }
    // A file system that refuses `extra` may have made the file before it refused.
    if (opened < 0 && errno == EINVAL) {
      unlinkat(directory, name, 0);
      errno = EINVAL;
    }
    if (opened >= 0 || errno != EEXIST) return opened;
  }
  return -1;
}

int open_file(int directory, int extra) {
  const int opened = open_nameless(directory, extra);
  if (opened >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return opened;
  return open_unlinked(directory, extra);
}

}  // namespace

disk_file::disk_file(std::string directory, bool direct) : directory_(std::move(directory)) {
  const opened_directory in(
      open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (in < 0) refuse(directory_, "a directory that is no symbolic link");
  if (direct) descriptor_ = open_file(in, O_DIRECT);
  direct_ = descriptor_ >= 0;
  if (descriptor_ < 0 && (!direct || errno == EINVAL)) descriptor_ = open_file(in, 0);
  if (descriptor_ < 0) refuse(directory_, "a directory in which files can be made");
}

disk_file::~disk_file() {
  close(descriptor_);
}

std::uint64_t disk_file::run_between(std::uint64_t from, std::uint64_t to,
                                     std::uint64_t count) const noexcept {
  std::uint64_t run = 0;
  for (std::uint64_t at = from; at < to;) {
    const std::uint64_t word = used_[at / word_bits];
    const bool whole = at % word_bits == 0 && to - at >= word_bits;
    if (whole && (word == 0 || ~word == 0)) {
      run = word == 0 ? run + word_bits : 0;
      at += word_bits;
    } else {
      run = (word >> at % word_bits & 1) == 0 ? run + 1 : 0;
      ++at;
    }
    if (run >= count) return at - run;
  }
  return nowhere;
}

std::uint64_t disk_file::find(std::uint64_t count) const noexcept {
  const std::uint64_t behind = run_between(hint_, sectors_, count);
  if (behind != nowhere) return behind;
  return run_between(0, std::min(hint_ + count, sectors_), count);
}

void disk_file::mark(std::uint64_t first, std::uint64_t count, bool used) noexcept {
  for (std::uint64_t at = first; at < first + count; ++at) {
    const std::uint64_t bit = std::uint64_t{1} << at % word_bits;
    used ? used_[at / word_bits] |= bit : used_[at / word_bits] &= ~bit;
  }
}

// Grows the file by at least `count` sectors, usually by more. If the file system cannot
// preallocate, the file grows with holes, and the writes detect a full disk.
void disk_file::grow(std::uint64_t count) {
  const std::uint64_t step = std::clamp(sectors_ / 8, first_step, largest_step);
  used_.reserve((sectors_ + std::max(count, step)) / word_bits + 1);
  int why = 0;
  for (const std::uint64_t more : {std::max(count, step), count}) {
    const auto begin = static_cast<off_t>(sectors_ * sector);
    const auto bytes = static_cast<off_t>(more * sector);
    do {
      why = fallocate(descriptor_, 0, begin, bytes) == 0 ? 0 : errno;
    } while (why == EINTR);
    if (why == EOPNOTSUPP || why == ENOSYS)
      why = ftruncate(descriptor_, begin + bytes) == 0 ? 0 : errno;
    if (why != 0) continue;
    sectors_ += more;
    used_.resize(core::ceil_div(sectors_, word_bits));
    return;
  }
  core::fail(VELO_ERR_IO, "", core::concat(count * sector, " bytes more in ", directory_),
             "no space", core::text("%s", std::strerror(why)));
}

std::uint64_t disk_file::take(std::uint64_t bytes) {
  const std::uint64_t count = bytes / sector;
  const std::lock_guard<std::mutex> lock(lock_);
  std::uint64_t first = find(count);
  if (first == nowhere) {
    grow(count);
    first = find(count);
  }
  mark(first, count, true);
  hint_ = first + count;
  return first * sector;
}

void disk_file::give(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  mark(offset / sector, bytes / sector, false);
}

}  // namespace velo::memory
