// The loop that keeps requests under way, and the handling of short and failed requests.
#include "memory/swap/disk_channel.hpp"

#include <cstring>
#include <utility>

#include "core/round_up.hpp"
#include "memory/swap/disk_file.hpp"

namespace velo::memory {

disk_channel::disk_channel(std::unique_ptr<disk_engine> engine, core::memory_source& memory,
                           int depth, std::uint64_t block)
    : engine_(std::move(engine)),
      source_(memory),
      bytes_((static_cast<std::uint64_t>(depth) + 1) * block + disk_file::sector),
      operations_(static_cast<std::size_t>(depth)),
      copies_(operations_.size() + 1) {
  idle_.reserve(operations_.size());
  memory_ = source_.take(bytes_);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_);
  const std::uint64_t head = core::round_up(address, disk_file::sector) - address;
  char* next = static_cast<char*>(memory_) + head;
  for (disk_operation& operation : operations_) {
    operation.staging = std::exchange(next, next + block);
    idle_.push_back(&operation);
  }
  scratch_ = next;
}

disk_channel::~disk_channel() {
  source_.give(memory_, bytes_);
}

void disk_channel::run(disk_transfer& transfer) noexcept {
  while (true) {
    start_some(transfer);
    if (idle_.size() == operations_.size()) return;
    // The request is the operation's first member, so both have the same address.
    auto& operation = reinterpret_cast<disk_operation&>(engine_->finish());
    if (goes_on(operation)) continue;
    idle_.push_back(&operation);
    take_back(transfer, operation);
  }
}

// Whether a page of the current copy, or of the next ready one, is to begin.
bool disk_channel::has_page(disk_transfer& transfer) noexcept {
  if (current_ != nullptr && current_->why.code == VELO_OK && current_->next < current_->end)
    return true;
  current_ = nullptr;
  for (disk_copy& one : copies_)
    if (!one.used) current_ = &one;
  *current_ = disk_copy{};
  current_->used = transfer.next(*current_);
  if (!current_->used) current_ = nullptr;
  return current_ != nullptr;
}

void disk_channel::start_some(disk_transfer& transfer) noexcept {
  while (!idle_.empty() && has_page(transfer)) {
    disk_copy& one = *current_;
    disk_operation& operation = *idle_.back();
    operation.of = &one;
    operation.index = one.next++;
    try {
      transfer.prepare(operation);
    } catch (...) {
      one.why = core::current_failure();
      retire(transfer, one);
      continue;
    }
    idle_.pop_back();
    ++one.under_way;
    engine_->start(operation.request);
    transfer.meanwhile(operation);
  }
}

// The system may transfer fewer bytes than requested; the rest is then requested again.
bool disk_channel::goes_on(disk_operation& operation) noexcept {
  disk_request& r = operation.request;
  if (r.result <= 0 || r.result >= r.bytes) return false;
  r.memory += r.result;
  r.offset += static_cast<std::uint64_t>(r.result);
  r.bytes -= static_cast<std::uint32_t>(r.result);
  engine_->start(r);
  return true;
}

void disk_channel::take_back(disk_transfer& transfer, disk_operation& operation) noexcept {
  disk_copy& one = *operation.of;
  --one.under_way;
  try {
    if (one.why.code == VELO_OK) {
      check_result(transfer, operation);
      transfer.complete(operation);
    } else {
      transfer.abandon(operation);
    }
  } catch (...) {
    transfer.abandon(operation);
    one.why = core::current_failure();
  }
  retire(transfer, one);
}

void disk_channel::retire(disk_transfer& transfer, disk_copy& one) noexcept {
  if (one.under_way > 0 || (one.why.code == VELO_OK && one.next < one.end)) return;
  transfer.done(one);
  one.used = false;
  if (current_ == &one) current_ = nullptr;
}

void disk_channel::check_result(disk_transfer& transfer, disk_operation& operation) {
  const disk_request& r = operation.request;
  if (r.result > 0) return;
  const char* verb = r.writes ? "written" : "read";
  core::fail(VELO_ERR_IO, "", core::text("%s %s", transfer.name(operation).buffer, verb),
             core::text("%u bytes of it not %s", r.bytes, verb),
             r.result == 0 ? "the end of the file" : std::strerror(static_cast<int>(-r.result)));
}

}  // namespace velo::memory
