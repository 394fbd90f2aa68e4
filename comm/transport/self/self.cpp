// Collectives of one rank: a reduction of one source, or a copy.
#include "comm/transport/self/self.hpp"

#include <cstring>

namespace velo::comm {

void self_transport::run(const operation& what, core::execution& state) {
  fault known;
  if (failed(known)) known.raise();
  const bool bypass = what.is_large(state.caches.l3);
  const char* from = static_cast<const char*>(what.in) + what.in_block(0).begin * what.in_size();
  char* to = static_cast<char*>(what.out) + what.out_block(0).begin * what.out_size();
  if (what.count > 0 && what.reduces()) {
    const void* in = from;
    what.combine({&in, 1, to, what.count, what.terms.scale, bypass});
  } else if (what.count > 0 && to != from) {
    std::memcpy(to, from, static_cast<std::size_t>(what.in_bytes()));
  }
  done_.fetch_add(1, std::memory_order_relaxed);
}

// The group itself moves a rank's messages to itself, so none is left here.
void self_transport::run_messages(const message_batch&, core::execution&) {
  fault known;
  if (failed(known)) known.raise();
  done_.fetch_add(1, std::memory_order_relaxed);
}

void self_transport::fail(const fault& why) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  if (fault_.kind == fault::how::none) fault_ = why;
}

bool self_transport::failed(fault& why) const noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  if (fault_.kind == fault::how::none) return false;
  why = fault_;
  return true;
}

void self_transport::describe(core::json_writer& to) const {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  to.object().member("rank", 0).member("completed", done).member("arrived", done);
  to.member("left", false).end();
}

}  // namespace velo::comm
