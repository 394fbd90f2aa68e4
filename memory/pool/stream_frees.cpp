// A step that can fail comes before the block changes its owner.
#include "memory/pool/stream_frees.hpp"

#include "core/failure.hpp"

namespace velo::memory {

bool stream_frees::add(block& freed, core::stream& on, velo_stream handle) {
  auto point = std::make_shared<core::point>();
  queue* mine = nullptr;
  for (queue& q : queues_)
    if (q.on == handle) mine = &q;
  if (mine == nullptr) {
    mine = &queues_.emplace_back();
    mine->on = handle;
  }
  mine->entries.push_back({point, nullptr});  // one without a block is dropped in time
  try {
    on.pass(point);
  } catch (const core::failure& why) {
    point->pass();
    if (why.code == VELO_ERR_FULL) throw;
    return false;
  } catch (...) {
    point->pass();
    throw;
  }
  mine->entries.back().what = &freed;
  freed.requested = mine->first + mine->entries.size() - 1;
  freed.become(block_state::pending);
  mine->ready.insert(freed);
  bytes_ += freed.size;
  return true;
}

block* stream_frees::take(velo_stream on, std::uint64_t size, std::uint64_t alignment,
                          const char* base) noexcept {
  for (queue& q : queues_) {
    if (q.on != on) continue;
    block* b = q.ready.find(size);
    if (b == nullptr || b->size - size > size / 8) return nullptr;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(base) + b->start;
    if ((address & (alignment - 1)) != 0) return nullptr;
    q.ready.remove(*b);
    bytes_ -= b->size;
    q.entries[b->asked() - q.first].what = nullptr;
    b->become(block_state::in_use);
    return b;
  }
  return nullptr;
}

std::uint64_t stream_frees::bytes(velo_stream on) const noexcept {
  for (const queue& q : queues_)
    if (q.on == on) return q.ready.bytes();
  return 0;
}

std::shared_ptr<core::point> stream_frees::next_to_pass() const {
  for (const queue& q : queues_)
    if (!q.entries.empty()) return q.entries.front().until;
  return nullptr;
}

}  // namespace velo::memory
