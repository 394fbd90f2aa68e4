// Encoding locations as words, and growing the mappings.
#include "comm/transport/shared/peer_mappings.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::uint64_t least_mapping = std::uint64_t{2} << 20;

// A location holds the offset, the index of the file, and a bit that `unmapped` and `unread` do not
// have.
constexpr int offset_shift = 2;

}  // namespace

peer_mappings::peer_mappings(std::shared_ptr<const registered_files> own,
                             std::vector<std::vector<descriptor>> peers)
    : own_(std::move(own)), peers_(peers.size()) {
  for (std::size_t peer = 0; peer < peers.size(); ++peer)
    for (descriptor& file : peers[peer]) peers_[peer].push_back({std::move(file)});
}

peer_mappings::~peer_mappings() {
  for (const std::vector<mapping>& peer : peers_)
    for (const mapping& one : peer)
      if (one.bytes > 0) munmap(one.begin, one.bytes);
}

peer_mappings::location peer_mappings::find(const void* data, std::int64_t bytes) const noexcept {
  if (bytes == 0) return unread;
  if (own_ == nullptr) return unmapped;
  for (std::size_t i = 0; i < own_->size(); ++i) {
    const registered_file& file = (*own_)[i];
    const auto offset =
        reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(file.begin);
    if (offset < file.bytes && static_cast<std::uint64_t>(bytes) <= file.bytes - offset &&
        (file.pool == nullptr || core::live_slot(file.pool, core::kinds::pool) != nullptr))
      return offset << offset_shift | i << 1 | 1;
  }
  return unmapped;
}

// A mapping may exceed the file, since bytes beyond its end are never touched.
const char* peer_mappings::address(int peer, location where, std::int64_t bytes) {
  std::vector<mapping>& files = peers_[core::at(peer)];
  const std::size_t number = where >> 1 & 1;
  if ((where & 1) == 0 || number >= files.size() || bytes < 0) return nullptr;
  mapping& from = files[number];
  const std::uint64_t offset = where >> offset_shift,
                      needed = offset + static_cast<std::uint64_t>(bytes);
  if (needed > from.file_bytes) {
    struct stat now {};
    if (fstat(from.file.get(), &now) != 0 || needed > static_cast<std::uint64_t>(now.st_size))
      return nullptr;
    from.file_bytes = static_cast<std::uint64_t>(now.st_size);
  }
  if (needed > from.bytes) {
    const std::uint64_t larger = std::max(core::round_up(needed, least_mapping), 2 * from.bytes);
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
