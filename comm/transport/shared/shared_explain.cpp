// The algorithm that an operation will use in shared memory: the decisions that comm/collective
// makes while it runs, made in advance. A test compares the steps with those that were taken.
#include <algorithm>

#include "comm/collective/combining.hpp"
#include "comm/collective/slices.hpp"
#include "comm/transport/shared/shared_transport.hpp"

namespace velo::comm {
namespace {

class algorithm_choice {
 public:
  algorithm_choice(const operation& op, const rank_context& self, explanation& to)
      : op_(op),
        self_(self),
        to_(to),
        ranks_(self.area.ranks()),
        slot_(static_cast<std::int64_t>(self.area.slot_bytes())) {}

  void find() {
    const std::int64_t payload = payload_bytes();
    const bool fits = payload >= 0 && payload <= mailbox::room;
    to_.consider("mailbox", fits,
                 payload < 0 ? "never of parts of different sizes, gather or scatter"
                             : bytes_text(payload) + (fits ? " travel" : " do not fit") +
                                   " with a rank's arrival, up to 1024");
    if (fits) return;
    consider_in_place();
    const bool combines = kind() == collective::all_reduce || kind() == collective::reduce;
    if (combines) consider_combining();
    if (!combines)
      to_.consider("staged", true, "each rank writes what others read, slice by slice");
    if (to_.is_chosen("in place")) return;
    take_steps();
  }

 private:
  collective kind() const { return op_.terms.kind; }
  static std::string bytes_text(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

  std::int64_t longest(bool gives) const {
    std::int64_t most = 0;
    for (int rank = 0; rank < ranks_; ++rank)
      most = std::max(most, (gives ? op_.in_part(rank) : op_.out_part(rank)).count);
    return most;
  }

  // -1: the payload never fits a mailbox.
  std::int64_t payload_bytes() const {
    switch (kind()) {
      case collective::barrier:
        return 0;
      case collective::all_reduce:
      case collective::reduce:
        return op_.in_bytes();
      case collective::broadcast:
        return op_.out_bytes();
      case collective::all_gather:
        return op_.out_parts.empty() ? op_.in_bytes() : -1;
      case collective::reduce_scatter:
      case collective::all_to_all:
        return op_.in_parts.empty() ? ranks_ * op_.in_bytes() : -1;
      default:
        return -1;
    }
  }

  // The size of the longest part that is read in place; 0: this collective always stages.
  std::int64_t in_place_bytes() const {
    switch (kind()) {
      case collective::all_reduce:
        return op_.in_bytes();
      case collective::broadcast:
        return op_.out_bytes();
      case collective::all_gather:
        return longest(false) * op_.in_size();
      case collective::reduce_scatter:
        return longest(true) * op_.in_size();
      case collective::all_to_all:
        return op_.in_parts.empty() && op_.in != op_.out ? op_.in_bytes() : 0;
      default:
        return 0;
    }
  }
  bool lies_in_pool() const {
    const auto lies = [&](const void* data, std::int64_t bytes) {
      return self_.mappings->find(data, bytes) != peer_mappings::unmapped;
    };
    const part last = op_.in_part(ranks_ - 1);
    switch (kind()) {
      case collective::all_reduce:
        return lies(op_.in, op_.in_bytes()) && lies(op_.out, op_.out_bytes());
      case collective::broadcast:
        return self_.rank != op_.terms.root || lies(op_.out, op_.out_bytes());
      case collective::all_gather:
        return lies(op_.in, op_.in_bytes());
      default:
        return lies(op_.in, (last.begin + last.count) * op_.in_size());
    }
  }
  void consider_in_place() {
    const std::int64_t bytes = in_place_bytes();
    if (self_.mappings == nullptr) return to_.consider("in place", false, "the group has no pool");
    if (bytes == 0) return to_.consider("in place", false, "not of this collective");
    if (bytes < shared_round::least_in_place_bytes)
      return to_.consider("in place", false, bytes_text(bytes) + ", fewer than 16384");
    const bool lies = lies_in_pool();
    to_.consider("in place", lies,
                 lies ? "this rank's tensors lie in its pool; where another's do not, all stage"
                      : "a tensor of this rank lies outside of its pool");
  }

  void consider_combining() {
    const bool whole = combines_whole(ranks_, op_.in_bytes());
    to_.consider("whole", whole,
                 whole ? "two ranks, or at most 16384 bytes: each combines all elements"
                       : "more than two ranks and 16384 bytes");
    to_.consider("parts", true, "each rank combines a part, which the others copy");
  }

  void take_steps() {
    const std::int64_t size = std::max(op_.in_size(), std::int64_t{1});
    if (to_.is_chosen("whole")) {
      const std::int64_t most = slot_ / size;
      return to_.take_steps((op_.count + most - 1) / most, most * size);
    }
    if (to_.is_chosen("parts")) {
      const std::int64_t most = chunk_elements(slot_, ranks_, size, op_.out_size());
      return to_.take_steps((op_.count + most - 1) / most + 1, most * size);
    }
    const bool even = op_.terms.counts == 0;
    const auto cut = [&](std::int64_t piece, bool says_counts) {
      return sections(slot_, ranks_, even ? piece : 0, even || !says_counts ? 0 : 8 * ranks_)
          .bytes();
    };
    std::int64_t bytes = slot_, piece = op_.in_bytes();
    if (kind() == collective::broadcast) piece = op_.out_bytes();
    if (kind() == collective::all_gather) piece = longest(false) * size;
    if (kind() == collective::reduce_scatter)
      piece = longest(true) * size, bytes = cut(op_.in_bytes(), false);
    if (kind() == collective::all_to_all)
      piece = longest(true) * size, bytes = cut(op_.in_bytes(), true);
    if (kind() == collective::scatter) piece = op_.out_bytes(), bytes = cut(op_.out_bytes(), true);
    to_.take_steps(slices_in(piece, bytes), bytes);
  }

  const operation& op_;
  const rank_context& self_;
  explanation& to_;
  const int ranks_;
  const std::int64_t slot_;
};

}  // namespace

void shared_transport::explain(const operation& op, explanation& to) const {
  if (op.terms.kind < collective::send) return algorithm_choice(op, self_, to).find();
  const auto slot = static_cast<std::int64_t>(self_.area.channel_bytes());
  to.consider("channel", true, "slots between each two ranks, which the sender fills");
  std::int64_t most = 0;
  for (const message& one : op.messages) most = std::max(most, one.bytes);
  to.take_steps(slices_in(most, slot - 64), slot - 64);
}

}  // namespace velo::comm
