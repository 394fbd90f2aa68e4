// Faults that end a group while a rank waits.
#include "comm/transport/shared/rank_context.hpp"

namespace velo::comm {

void end_group(const rank_context& self, fault why) {
  self.area.record_fault(self.rank, why);
  self.area.read_fault(self.rank, why);  // another rank's fault, if that came first
  why.raise();
}

void end_as_corrupt(const rank_context& self, int peer, fault why) {
  why.kind = fault::how::corrupt;
  why.culprits.add(peer);
  end_group(self, why);
}

void raise_recorded_fault(const rank_context& self) {
  if (!self.area.has_fault()) return;
  fault known;
  if (self.area.read_fault(self.rank, known)) known.raise();
}

void raise_if_gone(const rank_context& self, int peer, std::int64_t waited_ns, const fault& why) {
  fault ended = why;
  if (self.area.state(peer).left.load(std::memory_order_acquire) != 0) {
    ended.kind = fault::how::left;
    ended.culprits.add(peer);
    end_group(self, ended);
  }
  if (self.watch == nullptr || waited_ns < yield_ns) return;
  ended.kind = fault::how::ended;
  if (self.watch->find_gone(ended.culprits, ended.cause)) end_group(self, ended);
}

}  // namespace velo::comm
