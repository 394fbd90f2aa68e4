// The algorithm that an operation will use in shared memory (algorithms.hpp), stated in advance. A
// test compares the predicted number of steps with the actual one.
#include <algorithm>
#include <string>

#include "comm/transport/shared/algorithms.hpp"
#include "comm/transport/shared/shared_transport.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

class algorithm_choice {
 public:
  algorithm_choice(const operation& op, const rank_context& self, explanation& to)
      : op_(op),
        self_(self),
        to_(to),
        traits_(op.traits()),
        pattern_(op.pattern(self.rank, self.area.ranks())),
        ranks_(self.area.ranks()),
        slot_(static_cast<std::int64_t>(self.area.slot_bytes())) {}

  void find() {
    const std::int64_t payload = mailbox_bytes(op_, ranks_);
    const bool fits = payload >= 0 && payload <= mailbox::room;
    to_.consider("mailbox", fits,
                 payload < 0
                     ? "never of parts of different sizes, gather or scatter"
                     : bytes_text(payload) + (fits ? " travel" : " do not fit") +
                           " with a rank's arrival, up to " + std::to_string(mailbox::room));
    if (fits) return;
    consider_in_place();
    const bool combines = traits_.reduces && traits_.in == layout::whole;
    if (combines) consider_combining();
    if (!combines)
      to_.consider("staged", true, "each rank writes what others read, slice by slice");
    if (to_.is_chosen("in place")) return;
    take_steps();
  }

 private:
  static std::string bytes_text(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

  bool lies_in_pool() const {
    const auto lies = [&](const shared_round::tensor_bytes& tensor) {
      return self_.mappings->find(tensor.data, tensor.bytes) != peer_mappings::unmapped;
    };
    const bool is_read_out = traits_.reduces && traits_.in == layout::whole;
    return lies(read_by_peers(op_, pattern_)) && (!is_read_out || lies({op_.out, op_.out_bytes()}));
  }
  void consider_in_place() {
    const std::int64_t bytes = is_overwritten_by_blocks(op_) ? 0 : in_place_bytes(op_, pattern_);
    if (self_.mappings == nullptr) return to_.consider("in place", false, "the group has no pool");
    if (bytes == 0) return to_.consider("in place", false, "not of this collective");
    if (bytes < least_in_place_bytes)
      return to_.consider(
          "in place", false,
          bytes_text(bytes) + ", fewer than " + std::to_string(least_in_place_bytes));
    const bool lies = lies_in_pool();
    to_.consider("in place", lies,
                 lies ? "this rank's tensors lie in its pool; where another's do not, all stage"
                      : "a tensor of this rank lies outside of its pool");
  }

  void consider_combining() {
    const bool whole = reduces_unshared(ranks_, op_.in_bytes());
    const std::string most = bytes_text(most_unshared_bytes);
    to_.consider("whole", whole,
                 whole ? "two ranks, or at most " + most + ": each combines all elements"
                       : "more than two ranks and " + most);
    to_.consider("parts", true, "each rank combines a part, which the others copy");
  }

  void take_steps() {
    const std::int64_t size = std::max(op_.in_size(), std::int64_t{1});
    if (to_.is_chosen("whole")) {
      const std::int64_t most = slot_ / size;
      return to_.take_steps(core::ceil_div(op_.count, most), most * size);
    }
    if (to_.is_chosen("parts")) {
      const std::int64_t most = chunk_elements(slot_, ranks_, size, op_.out_size());
      return to_.take_steps(core::ceil_div(op_.count, most) + 1, most * size);
    }
    const bool even = is_even(op_);
    const std::int64_t header = even || traits_.reduces ? 0 : 8 * ranks_;
    const sections cut(slot_, ranks_, even ? op_.in_bytes() : 0, header);
    const std::int64_t bytes = traits_.in == layout::blocks ? cut.bytes() : slot_;
    to_.take_steps(slices_in(pattern_.longest() * size, bytes), bytes);
  }

  const operation& op_;
  const rank_context& self_;
  explanation& to_;
  const collective_traits& traits_;
  const pattern pattern_;
  const int ranks_;
  const std::int64_t slot_;
};

}  // namespace

void shared_transport::explain(const operation& op, explanation& to) const {
  algorithm_choice(op, self_, to).find();
}

void shared_transport::explain_messages(const message_batch& batch, explanation& to) const {
  const auto slot = static_cast<std::int64_t>(self_.area.channel_bytes());
  to.consider("channel", true, "slots between each two ranks, which the sender fills");
  to.take_steps(slices_in(batch.longest(), slot - 64), slot - 64);
}

}  // namespace velo::comm
