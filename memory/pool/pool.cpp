// The life of a pool: its creation and closing, its threads' caches, and queries of the host.
#include "memory/pool/pool.hpp"

#include "core/failure.hpp"
#include "core/handle/process.hpp"

namespace velo::memory {

using core::fail;

pool::pool(const velo_pool_desc& desc)
    : blocks_(desc.kind, desc.checked != 0, threads_, history_, log_),
      threads_(desc.checked == 0, &end_thread),
      log_(desc.log, desc.log_user),
      supply_(desc, blocks_, threads_, history_),
      kind_(desc.kind),
      epoch_(core::start_process_epoch()) {}

void pool::set_handle(const void* handle) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  threads_.set_handle(handle);
  supply_.set_handle(handle);
  log_.set_handle(handle);
  choose_path();
}

void pool::choose_path() noexcept {
  const bool fast = !is_closed() && !is_recorded();
  fast_pages_.store(fast ? threads_.pages() : nullptr, std::memory_order_relaxed);
}

// nullptr: none can be made.
__attribute__((noinline)) thread_cache* pool::make_cache() noexcept {
  thread_cache* made = threads_.make(*this, range(VELO_LIFETIME_DEFAULT).begin());
  if (made == nullptr) return nullptr;
  const std::lock_guard<brief_lock> lock(lock_);
  threads_.add(*made);
  return made;
}

void pool::end_thread(void* cache) noexcept {
  auto& ended = *static_cast<thread_cache*>(cache);
  if (ended.home == nullptr) return;  // wiped: in a child of a fork
  pool& home = *ended.home;
  if (core::process_epoch() != home.epoch_) return;  // the lock may be held for ever
  const std::lock_guard<brief_lock> lock(home.lock_);
  home.blocks_.end_thread(ended);
  home.history_.leave(ended);
  home.threads_.remove(ended);
}

// Everything but the blocks in use goes back to the system, addresses too.
bool pool::close() noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  closed_.store(true, std::memory_order_relaxed);
  choose_path();
  const pool_backend::usage left = blocks_.in_use();
  left_ = left.blocks;
  if (left_ == 0) return true;
  log_.write(VELO_LOG_WARN, core::concat("destroyed with ", left.blocks, " blocks, ",
                                         left.requested, " bytes, in use"));
  blocks_.close();
  return false;
}

std::uint64_t pool::trim(std::uint64_t keep) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  threads_.request_drains();
  blocks_.reclaim();
  blocks_.empty_quarantine();
  const std::uint64_t ready = blocks_.free_bytes();
  return ready > keep ? blocks_.trim(ready - keep) : 0;
}

void pool::set_limit(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  supply_.set_limit(bytes);
}

bool pool::charge(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  if (!supply_.allows(bytes)) return false;
  blocks_.charge(bytes);
  return true;
}

void pool::uncharge(std::uint64_t bytes) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  blocks_.uncharge(bytes);
}

std::uint64_t pool::make_room(std::uint64_t coming, std::uint64_t most) noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  return supply_.make_room(coming, most);
}

bool pool::needs_room(std::uint64_t bytes) const noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  const heap& from = blocks_.heap_for(VELO_LIFETIME_DEFAULT);
  return bytes <= from.range().size() && !from.has_free(bytes);
}

const plain_functions& pool::functions() {
  const std::lock_guard<brief_lock> lock(lock_);
  if (functions_ == nullptr) functions_ = std::make_unique<plain_functions>(*this);
  return *functions_;
}

void pool::locate(const void* memory, std::int32_t& file, std::uint64_t& offset) const {
  const std::lock_guard<brief_lock> lock(lock_);
  const block& b = require_in_use(memory);
  const address_range& range = blocks_.heap_of(b).range();
  if (range.file() < 0)
    fail(VELO_ERR_UNSUPPORTED, "pool", "a pool of shared memory", "one of another kind");
  file = range.file();
  offset = b.first();
}

void pool::record(std::uint64_t events) {
  const std::lock_guard<brief_lock> lock(lock_);
  if (events == 0) {
    history_.stop();
    return choose_path();
  }
  memory_levels now;
  for (int p = 0; p < purposes; ++p)
    now.live[p] = threads_.sum([p](const tally& t) { return t.bytes(p); });
  now.reserved = static_cast<std::int64_t>(blocks_.reserved());
  history_.start(events, now);
  choose_path();
}

void pool::annotate(const void* memory, const char* text) {
  const std::lock_guard<brief_lock> lock(lock_);
  const block* b = memory != nullptr ? &require_in_use(memory) : nullptr;
  if (!is_recorded())
    fail(VELO_ERR_STATE, "pool", "a pool whose history is recorded",
         "one without: velo_pool_record");
  history_.annotate(b != nullptr ? &blocks_.heap_of(*b) : nullptr, b, text);
}

}  // namespace velo::memory
