// Words for places, and mappings that grow.
#include "comm/transport/shared/windows.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/handle/failure.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::uint64_t least_window = std::uint64_t{2} << 20;

// A place: the offset, the number of the file, and a bit that nowhere and unread do not have.
constexpr int offset_shift = 2;

}  // namespace

windows::windows(std::shared_ptr<const lent_files> own, std::vector<std::vector<descriptor>> peers)
    : own_(std::move(own)), peers_(peers.size()) {
  for (std::size_t peer = 0; peer < peers.size(); ++peer)
    for (descriptor& file : peers[peer]) peers_[peer].push_back({std::move(file)});
}

windows::~windows() {
  for (const std::vector<window>& peer : peers_)
    for (const window& one : peer)
      if (one.bytes > 0) munmap(one.begin, one.bytes);
}

windows::place windows::find(const void* data, std::int64_t bytes) const noexcept {
  if (bytes == 0) return unread;
  if (own_ == nullptr) return nowhere;
  for (std::size_t i = 0; i < own_->size(); ++i) {
    const lent_file& file = (*own_)[i];
    const auto offset =
        reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(file.begin);
    if (offset < file.bytes && static_cast<std::uint64_t>(bytes) <= file.bytes - offset &&
        (file.pool == nullptr || core::live_slot(file.pool, core::kinds::pool) != nullptr))
      return offset << offset_shift | i << 1 | 1;
  }
  return nowhere;
}

// Beyond the end of the file nothing is touched, so a window may be larger than it is now.
const char* windows::at(int peer, place where, std::int64_t bytes) {
  std::vector<window>& files = peers_[static_cast<std::size_t>(peer)];
  const std::size_t number = where >> 1 & 1;
  if ((where & 1) == 0 || number >= files.size() || bytes < 0) return nullptr;
  window& from = files[number];
  const std::uint64_t offset = where >> offset_shift,
                      needed = offset + static_cast<std::uint64_t>(bytes);
  if (needed > from.there) {  // as much as was there when last looked
    struct stat now {};
    if (fstat(from.file.get(), &now) != 0 || needed > static_cast<std::uint64_t>(now.st_size))
      return nullptr;
    from.there = static_cast<std::uint64_t>(now.st_size);
  }
  if (needed > from.bytes) {
    const std::uint64_t larger = std::max(core::round_up(needed, least_window), 2 * from.bytes);
    void* made = from.bytes == 0 ? mmap(nullptr, larger, PROT_READ, MAP_SHARED, from.file.get(), 0)
                                 : mremap(from.begin, from.bytes, larger, MREMAP_MAYMOVE);
    if (made == MAP_FAILED) throw std::bad_alloc();
    madvise(made, larger, MADV_DONTFORK);
    from.begin = static_cast<char*>(made);
    from.bytes = larger;
  }
  return from.begin + offset;
}

}  // namespace velo::comm
