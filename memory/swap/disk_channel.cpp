// The loop that keeps requests under way, and what becomes of short and failed ones.
#include "memory/swap/disk_channel.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "core/round_up.hpp"
#include "memory/swap/disk_file.hpp"

namespace velo::memory {

disk_channel::disk_channel(std::unique_ptr<disk_engine> engine, core::memory_source& memory,
                           int depth, std::uint64_t block)
    : engine_(std::move(engine)),
      source_(memory),
      bytes_((static_cast<std::uint64_t>(depth) + 1) * block + disk_file::sector),
      parts_(static_cast<std::size_t>(depth)) {
  idle_.reserve(parts_.size());
  memory_ = source_.take(bytes_);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_);
  const std::uint64_t head = core::round_up(address, disk_file::sector) - address;
  char* next = static_cast<char*>(memory_) + head;
  for (disk_part& part : parts_) {
    part.staging = std::exchange(next, next + block);
    idle_.push_back(&part);
  }
  scratch_ = next;
}

disk_channel::~disk_channel() {
  source_.give(memory_, bytes_);
}

void disk_channel::run(disk_transfer& transfer, std::uint64_t pages) {
  std::exception_ptr failed;
  next_ = 0;
  while (true) {
    try {
      if (failed == nullptr) start_some(transfer, pages);
    } catch (...) {
      failed = std::current_exception();
    }
    if (idle_.size() == parts_.size()) break;
    // The request is the part's first member: what comes back is the part.
    auto& part = reinterpret_cast<disk_part&>(engine_->finish());
    if (goes_on(part)) continue;
    idle_.push_back(&part);
    try {
      failed == nullptr ? end(transfer, part) : transfer.abandon(part);
    } catch (...) {
      transfer.abandon(part);
      failed = std::current_exception();
    }
  }
  if (failed != nullptr) std::rethrow_exception(failed);
}

void disk_channel::start_some(disk_transfer& transfer, std::uint64_t pages) {
  while (next_ < pages && !idle_.empty()) {
    disk_part& part = *idle_.back();
    transfer.prepare(part, next_);
    ++next_;
    idle_.pop_back();
    engine_->start(part.request);
    transfer.meanwhile(part);
  }
}

// The system may do a part of what it was asked: the rest is asked for again.
bool disk_channel::goes_on(disk_part& part) noexcept {
  disk_request& r = part.request;
  if (r.result <= 0 || r.result >= r.bytes) return false;
  r.memory += r.result;
  r.offset += static_cast<std::uint64_t>(r.result);
  r.bytes -= static_cast<std::uint32_t>(r.result);
  engine_->start(r);
  return true;
}

void disk_channel::end(disk_transfer& transfer, disk_part& part) {
  const disk_request& r = part.request;
  if (r.result > 0) return transfer.complete(part);
  const char* verb = r.writes ? "written" : "read";
  core::fail(VELO_ERR_IO, "", core::text("%s %s", transfer.name(part).buffer, verb),
             core::text("%u bytes of it not %s", r.bytes, verb),
             r.result == 0 ? "the end of the file" : std::strerror(static_cast<int>(-r.result)));
}

}  // namespace velo::memory
