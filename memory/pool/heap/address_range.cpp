// The four kinds of memory in terms of Linux.
#include "memory/pool/heap/address_range.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"
#include "core/host/cgroup.hpp"
#include "core/round_up.hpp"

namespace velo::memory {
namespace {

constexpr std::uint64_t smallest_range = std::uint64_t{64} << 20;
constexpr std::uint64_t largest_step = std::uint64_t{256} << 20;
constexpr std::uint64_t most_pieces = 8192;  // of the 65530 mappings that a process may have

void* reserve(std::uint64_t bytes, int protection, int flags, int file) noexcept {
  void* start = mmap(nullptr, bytes, protection, flags | MAP_NORESERVE, file, 0);
  return start == MAP_FAILED ? nullptr : start;
}

// Replaces pages by fresh ones. It fails only if Linux has no memory for its own bookkeeping.
void map_anew(char* at, std::uint64_t bytes, bool huge) noexcept {
  static_cast<void>(mmap(at, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
  if (huge) madvise(at, bytes, MADV_HUGEPAGE);
}

}  // namespace

// Reserves one huge page more than the range, so that the range can begin at one; the rest is never
// touched.
address_range::address_range(velo_pool_kind kind, std::uint64_t wanted)
    : kind_(kind),
      use_(kind == VELO_POOL_ORDINARY ? use::unknown : use::dense),
      can_move_(kind == VELO_POOL_ORDINARY || kind == VELO_POOL_HUGE) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  granule_ = kind == VELO_POOL_HUGE ? huge : page;
  if (kind == VELO_POOL_SHARED) {
    file_ = memfd_create("velo_pool", MFD_CLOEXEC);
    if (file_ < 0) core::fail(VELO_ERR_MEMORY, "desc.kind", "a file in memory", "none");
  }
  const auto reserve_all = [&] {
    return kind == VELO_POOL_SHARED
               ? reserve(size_ + huge, PROT_READ | PROT_WRITE, MAP_SHARED, file_)
               : reserve(size_ + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  };
  size_ = core::round_up(std::max(wanted, smallest_range), huge);
  void* start = reserve_all();
  const bool scarce = start == nullptr;
  while (start == nullptr && size_ > smallest_range) {
    size_ = std::max(core::round_up(size_ / 2, huge), smallest_range);
    start = reserve_all();
  }
  if (scarce && start != nullptr && size_ > smallest_range) {
    munmap(start, size_ + huge);
    size_ = std::max(core::round_up(size_ / 4, huge), smallest_range);
    start = reserve_all();
  }
  if (start != nullptr && can_move_ && !is_piece_.reserve(size_ / huge)) can_move_ = false;
  if (start == nullptr) {
    if (file_ >= 0) close(file_);
    core::fail(
        VELO_ERR_MEMORY, "", core::concat(smallest_range, " bytes of addresses in one piece"),
        "none left to this process",
        "each pool takes addresses for four times the machine's memory, twice: use fewer, and "
        "destroy those that are done with; ulimit -v and vm.max_map_count bound them too");
  }
  begin_ = static_cast<char*>(start);
  mapped_ = kind == VELO_POOL_SHARED ? size_ + huge : size_;
  if (kind == VELO_POOL_SHARED) return;  // offsets of the file begin with the mapping
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uint64_t head = core::round_up(address, huge) - address;
  if (head > 0) munmap(begin_, head);
  begin_ += head;
  if (huge > head) munmap(begin_ + size_, huge - head);
}

address_range::~address_range() {
  if (!left_ && mapped_ > 0) munmap(begin_, mapped_);
  if (file_ >= 0) close(file_);
}

bool address_range::cut(std::uint64_t start) noexcept {
  if (munmap(begin_ + start, mapped_ - start) != 0) return false;
  size_ = mapped_ = start;
  return true;
}

bool address_range::give_up(std::uint64_t start, std::uint64_t bytes) noexcept {
  return munmap(begin_ + start, bytes) == 0;
}

// A file in memory and accessible pages cost nothing until they are touched, so this only sets
// their number.
bool address_range::open_up_to(std::uint64_t end) noexcept {
  if (end <= frontier_) return true;
  const std::uint64_t step = std::clamp(frontier_ / 8, huge, largest_step);
  const std::uint64_t ahead =
      std::min(core::round_up(std::max(end, frontier_ + step), huge), size_);
  for (const std::uint64_t to : {ahead, end}) {
    const bool opened = kind_ == VELO_POOL_SHARED ? ftruncate(file_, static_cast<off_t>(to)) == 0
                                                  : mprotect(begin_ + frontier_, to - frontier_,
                                                             PROT_READ | PROT_WRITE) == 0;
    if (!opened) continue;
    frontier_ = to;
    return true;
  }
  return false;
}

bool address_range::commit(std::uint64_t start, std::uint64_t bytes) noexcept {
  if (!open_up_to(start + bytes)) return false;
  const bool holds_huge = core::round_up(start, huge) + huge <= start + bytes;
  if (kind_ != VELO_POOL_SHARED && holds_huge && wants_huge(start, bytes))
    advise_huge(start, start + bytes);
  if (kind_ == VELO_POOL_LOCKED && !lock(start, bytes)) unlocked_ += bytes;
  return true;
}

// Large commitments get small pages until the host's use is known: the next commitment examines the
// pages touched of the previous one, and waits, too, if none were. Waiting ones get huge pages
// together with the first that does. The unexamined part of the very first commitment, which may be
// the only one, gets huge pages at once.
bool address_range::wants_huge(std::uint64_t start, std::uint64_t bytes) noexcept {
  if (use_ == use::dense) return true;
  if (waiting_count_ > 0) {
    const stretch& last = waiting_[waiting_count_ - 1];
    const use seen = use_of({std::max(probe_, last.start), last.end});
    if (seen != use::unknown) use_ = seen;
    if (use_ == use::dense) {
      for (int i = 0; i < waiting_count_; ++i) advise_huge(waiting_[i].start, waiting_[i].end);
      return true;
    }
    if (use_ == use::sparse) waiting_count_ = 0;
  }
  probe_ = start;
  if (use_ == use::unknown && waiting_count_ == 0 && bytes > looked_at_most) {
    advise_huge(start + looked_at_most, start + bytes);
    bytes = looked_at_most;
  }
  stretch* last = waiting_count_ > 0 ? &waiting_[waiting_count_ - 1] : nullptr;
  if (last == nullptr || (last->end != start && waiting_count_ < most_waiting))
    waiting_[waiting_count_++] = {start, start + bytes};
  else if (last->end == start)
    last->end = start + bytes;
  else
    *last = {start, start + bytes};
  return false;
}

address_range::use address_range::use_of(const stretch& touched) const noexcept {
  constexpr std::uint64_t page = 4096, most = looked_at_most / page;
  unsigned char resident[most] = {};
  const std::uint64_t looked_at = std::min(touched.end - touched.start, looked_at_most);
  if (mincore(begin_ + touched.start, looked_at, resident) != 0) return use::unknown;
  const auto pages = static_cast<std::uint64_t>(
      std::count_if(resident, resident + most, [](unsigned char r) { return (r & 1) != 0; }));
  if (pages == 0) return use::unknown;
  return pages >= looked_at / page / 4 ? use::dense : use::sparse;
}

// This is only advice: small pages serve if it is refused. It covers whole huge pages alone, so
// that none is mapped for a few bytes.
void address_range::advise_huge(std::uint64_t start, std::uint64_t end) noexcept {
  const std::uint64_t first = core::round_up(start, huge), last = end / huge * huge;
  if (last > first) madvise(begin_ + first, last - first, MADV_HUGEPAGE);
}

// Linux does not refuse to lock beyond the limit of a control group, but ends a process. So the
// room of the groups is read beforehand, and again only when it is used up.
bool address_range::lock(std::uint64_t start, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t at_once = std::uint64_t{16} << 20;
  if (lockable_ < bytes) {
    const core::uncancelled here;  // it reads files
    const auto room = static_cast<std::uint64_t>(core::cgroup_memory());
    if (room < bytes) return false;
    lockable_ = std::min(room, std::max(bytes, at_once));
  }
  if (mlock(begin_ + start, bytes) != 0) return false;
  lockable_ -= bytes;
  return true;
}

bool address_range::decommit(std::uint64_t start, std::uint64_t bytes) noexcept {
  if (kind_ == VELO_POOL_LOCKED) munlock(begin_ + start, bytes);
  if (kind_ == VELO_POOL_SHARED) {
    const core::uncancelled here;  // fallocate is a point at which a thread can be
    return fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(start),
                     static_cast<off_t>(bytes)) == 0;
  }
  if (madvise(begin_ + start, bytes, MADV_DONTNEED) != 0) return false;
  join_pieces(start, bytes);
  return true;
}

// mremap unmaps its target before some of its failures, so the target is then mapped anew.
std::uint64_t address_range::move(std::uint64_t start, std::uint64_t bytes, address_range& to,
                                  std::uint64_t at, page_mover& by) noexcept {
  if (!can_move_) return 0;
  if (const std::uint64_t moved = by.move(begin_ + start, bytes, to.begin_ + at)) {
    join_pieces(start, moved);
    return moved;
  }
  if (to.pieces_ == most_pieces) return 0;
  constexpr int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(begin_ + start, bytes, bytes, how, to.begin_ + at) == MAP_FAILED) {
    can_move_ = errno != EINVAL;  // flags it does not know
    if (can_move_) map_anew(to.begin_ + at, bytes, to.use_ == use::dense);
    return 0;
  }
  static_cast<char*>(to.is_piece_.data())[at / huge] = 1;
  ++to.pieces_;
  join_pieces(start, bytes);
  return bytes;
}

// Addresses without memory become one mapping with their neighbors again.
void address_range::join_pieces(std::uint64_t start, std::uint64_t bytes) noexcept {
  if (pieces_ == 0) return;
  const std::uint64_t first = core::round_up(start, huge), last = (start + bytes) / huge * huge;
  if (last <= first) return;
  char* pieces = static_cast<char*>(is_piece_.data());
  const auto gone = std::count(pieces + first / huge, pieces + last / huge, 1);
  if (gone == 0) return;
  std::fill(pieces + first / huge, pieces + last / huge, 0);
  pieces_ -= static_cast<std::uint64_t>(gone);
  map_anew(begin_ + first, last - first, use_ == use::dense);
}

sparse_array::~sparse_array() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

std::uint64_t sparse_array::page() noexcept {
  return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void sparse_array::let_go(std::uint64_t start, std::uint64_t end) noexcept {
  const std::uint64_t first = core::round_up(start, page()), last = end / page() * page();
  if (last > first) madvise(static_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
}

void sparse_array::cut(std::uint64_t bytes) noexcept {
  const std::uint64_t kept = core::round_up(bytes, page());
  if (kept >= bytes_ || munmap(static_cast<char*>(data_) + kept, bytes_ - kept) != 0) return;
  bytes_ = kept;
  if (kept == 0) data_ = nullptr;
}

bool sparse_array::reserve(std::uint64_t bytes) noexcept {
  data_ = memory::reserve(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  bytes_ = bytes;
  return data_ != nullptr;
}

}  // namespace velo::memory
