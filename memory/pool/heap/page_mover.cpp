// The system calls of userfaultfd, and the handling of a page that moved in part.
#include "memory/pool/heap/page_mover.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "memory/pool/heap/address_range.hpp"

namespace velo::memory {
namespace {

// Constants from headers newer than those we build with.
constexpr std::uint64_t feature_move = std::uint64_t{1} << 16;
constexpr int user_mode_only = 1;
struct move_request {
  std::uint64_t to, from, bytes, mode;
  std::int64_t moved;
};
constexpr unsigned long move_pages = _IOWR(UFFDIO, 0x05, move_request);

constexpr std::uint64_t huge = address_range::huge;
constexpr std::chrono::microseconds too_long{50};  // for a huge page
constexpr int most_slow = 3;                       // in a row: a single one may be chance

std::uint64_t number(const char* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

void page_mover::open(char* to, std::uint64_t bytes) noexcept {
  const long file = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | user_mode_only);
  if (file < 0) return;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = feature_move;
  uffdio_register all{};
  all.range = {number(to), bytes};
  all.mode = UFFDIO_REGISTER_MODE_MISSING;
  file_ = static_cast<int>(file);
  if (ioctl(file_, UFFDIO_API, &api) != 0 || ioctl(file_, UFFDIO_REGISTER, &all) != 0) {
    ::close(file_);
    file_ = -1;
    return;
  }
  start_ = to;
  bytes_ = bytes;
  slow_ = 0;
}

// A child of a fork may also hold the file, so closing it does not end the registration.
void page_mover::close() noexcept {
  if (file_ < 0) return;
  uffdio_range all{number(start_), bytes_};
  if (ioctl(file_, UFFDIO_UNREGISTER, &all) != 0)
    (void)mmap(start_, bytes_, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ::close(file_);
  file_ = -1;
}

std::uint64_t page_mover::move(char* from, std::uint64_t bytes, char* to) noexcept {
  std::uint64_t done = 0;
  while (file_ >= 0 && done < bytes) {
    const auto before = std::chrono::steady_clock::now();
    if (!move_one(from + done, to + done)) break;
    done += huge;
    slow_ = std::chrono::steady_clock::now() - before > too_long ? slow_ + 1 : 0;
    if (slow_ == most_slow) close();
  }
  return done;
}

// Pages that were never touched cannot be moved, and of small pages only some may move. The rest is
// returned to the system, since the target may be backed by as much new memory.
bool page_mover::move_one(char* from, char* to) noexcept {
  std::uint64_t done = 0;
  bool known = true;
  for (int tries = 0; tries < 16; ++tries) {
    move_request request{number(to) + done, number(from) + done, huge - done, 0, 0};
    if (ioctl(file_, move_pages, &request) == 0) return true;
    if (request.moved > 0) done += static_cast<std::uint64_t>(request.moved);
    if (done == huge) return true;
    known = errno == EAGAIN || errno == ENOENT;
    if (errno != EAGAIN) break;
  }
  return known && madvise(from + done, huge - done, MADV_DONTNEED) == 0;
}

}  // namespace velo::memory
