// What ends a group while a rank waits.
#include "comm/transport/shared/waiting.hpp"

namespace velo::comm {

void end_group(const place& at, fault why) {
  at.area.note(at.rank, why);
  at.area.noted(at.rank, why);  // another's, if that came first
  why.raise();
}

void end_as_corrupt(const place& at, int peer, fault why) {
  why.kind = fault::how::corrupt;
  why.culprits.add(peer);
  end_group(at, why);
}

void raise_if_noted(const place& at) {
  if (!at.area.is_noted()) return;
  fault known;
  if (at.area.noted(at.rank, known)) known.raise();
}

void raise_if_gone(const place& at, int peer, std::int64_t waited_ns, const fault& why) {
  fault ended = why;
  if (at.area.state(peer).left.load(std::memory_order_acquire) != 0) {
    ended.kind = fault::how::left;
    ended.culprits.add(peer);
    end_group(at, ended);
  }
  if (at.watch == nullptr || waited_ns < yield_ns) return;
  ended.kind = fault::how::ended;
  if (at.watch->find_gone(ended.culprits, ended.cause)) end_group(at, ended);
}

}  // namespace velo::comm
