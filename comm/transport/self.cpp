// Collectives of one rank: a reduction of one source.
#include "comm/transport/self.hpp"

namespace velo::comm {

void self_transport::run(const operation& what, std::uint64_t sequence, core::execution& state) {
  fault known;
  if (failed(known)) known.raise();
  if (what.terms.kind == collective::all_reduce && what.terms.count > 0) {
    const bool bypass = what.out_bytes() > state.caches.l3;
    what.kernel({&what.in, 1, what.out, what.terms.count, what.terms.scale, bypass});
  }
  done_.store(sequence, std::memory_order_relaxed);
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

void self_transport::describe(std::string& json) const {
  const std::string done = std::to_string(done_.load(std::memory_order_relaxed));
  json += "[{\"rank\":0,\"completed\":" + done + ",\"arrived\":" + done + ",\"left\":false}]";
}

}  // namespace velo::comm
