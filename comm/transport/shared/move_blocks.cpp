// Moving blocks in shared memory.
//
// Short blocks travel in the mailboxes, and blocks in registered memory are read in place. Any
// other block goes through the slots, one slice a step: a tensor that all peers get whole fills the
// slot, and blocks for different peers each have a section of it. If only the two ranks of a block
// know its size, the sender writes the size beside the first slice, and the receiver compares it.
#include <cstring>

#include "comm/operation/short_copy.hpp"
#include "comm/transport/shared/algorithms.hpp"

namespace velo::comm {
namespace {

// A sender need not wait for a single peer. It waits for several peers, since one of them might not
// learn that another has different terms.
void spread_by_mailbox(shared_round& round) {
  const int root = round.op.terms.root;
  const std::int64_t bytes = round.op.in_bytes();
  round.post(round.op.in, round.rank == root ? bytes : 0);
  if (round.rank == root && round.size == 2)
    round.defer_wait();
  else
    round.wait_all();
  if (round.rank != root) copy_short(round.op.out, round.payload(root, bytes), bytes);
}

void move_by_mailbox(shared_round& round, const collective_traits& traits, std::int64_t posted) {
  if (traits.root == root_role::gives) return spread_by_mailbox(round);
  const std::int64_t bytes = round.op.in_bytes(),
                     mine = traits.in == layout::blocks ? round.rank * bytes : 0;
  char* out = static_cast<char*>(round.op.out);
  round.post(round.op.in, posted);
  round.wait_all();
  for (int r = 0; r < round.size; ++r)
    copy_short(out + r * bytes, round.payload(r, posted) + mine, bytes);
}

class block_moves {
 public:
  explicit block_moves(shared_round& round)
      : round_(round),
        pattern_(round.op.pattern(round.rank, round.size)),
        in_(static_cast<const char*>(round.op.in)),
        out_(static_cast<char*>(round.op.out)),
        size_(round.op.in_size()),
        has_sections_(pattern_.traits.in == layout::blocks),
        is_even_(is_even(round.op)),
        compares_(!is_even_ && (has_sections_ || has_root_blocks(pattern_.traits))),
        cut_(round.slot_bytes(), round.size, is_even_ ? round.op.in_bytes() : 0,
             compares_ ? word * round.size : 0) {}

  void run() {
    const std::int64_t longest = in_place_bytes(round_.op, pattern_);
    if (longest > 0 && may_read_in_place(round_, longest) &&
        round_.exchange_locations(readable_input())) {
      read_in_place();
      return round_.finish_reads();
    }
    const std::int64_t unit = slice_bytes();
    round_.run_steps(
        {slices_in(pattern_.longest() * size_, unit), span(), round_.op.count},
        [this](std::int64_t step) { write(step); }, [this](std::int64_t step) { read(step); });
  }

 private:
  static constexpr std::int64_t word = sizeof(std::int64_t);

  const char* from(const block& b) const { return in_ + b.begin * size_; }
  std::int64_t slice_bytes() const { return has_sections_ ? cut_.bytes() : round_.slot_bytes(); }
  std::int64_t span() const {
    if (has_sections_) return cut_.span();
    return is_even_ ? round_.op.in_bytes() : round_.slot_bytes();
  }
  slice part_of(const block& b, std::int64_t step) const {
    return slice_of(b.count * size_, slice_bytes(), step);
  }

  shared_round::tensor_bytes readable_input() const {
    const shared_round::tensor_bytes all = read_by_peers(round_.op, pattern_);
    return {is_overwritten_by_blocks(round_.op) ? nullptr : all.data, all.bytes};
  }
  void read_in_place() {
    const std::int64_t count = round_.op.count;
    for (int r = 0; r < round_.size; ++r) {
      const block b = pattern_.takes(r);
      if (b.count == 0) continue;
      const block there = has_sections_ ? block{round_.rank * count, count} : block{0, b.count};
      const std::int64_t whole = has_sections_ ? round_.size * count : b.count;
      const char* input = r == round_.rank ? in_ : round_.peer_in(r, whole * size_);
      fetch(input + there.begin * size_, b, {0, b.count * size_});
    }
  }

  void write(std::int64_t step) {
    if (!pattern_.gives_others()) return;
    if (!has_sections_) {
      const slice s = part_of({0, round_.op.count}, step);
      return round_.stage(in_ + s.begin, round_.own_slot(), s.bytes);
    }
    for (int r = 0; r < round_.size; ++r) {
      const block b = pattern_.gives(r);
      if (step == 0 && compares_) std::memcpy(round_.own_slot() + word * r, &b.count, word);
      const slice s = part_of(b, step);
      if (r != round_.rank)
        round_.stage(from(b) + s.begin, round_.own_slot() + cut_.begin(round_.rank, r), s.bytes);
    }
  }
  void read(std::int64_t step) {
    for (int r = 0; r < round_.size; ++r) {
      if (!pattern_.moves(r, round_.rank)) continue;
      const block b = pattern_.takes(r);
      const bool is_own = r == round_.rank;
      if (step == 0 && compares_ && !is_own) compare(r, b.count);
      const slice s = part_of(b, step);
      if (s.bytes == 0) continue;
      fetch(is_own ? from(pattern_.gives(r)) + s.begin : staged_by(r), b, s);
    }
  }
  const char* staged_by(int peer) const {
    return round_.peer_slot(peer) + (has_sections_ ? cut_.begin(peer, round_.rank) : 0);
  }
  void compare(int peer, std::int64_t expected) const {
    std::int64_t given = round_.number_of(peer);
    if (has_sections_) std::memcpy(&given, round_.peer_slot(peer) + word * round_.rank, word);
    if (given != expected) round_.raise_mismatch(peer, expected, given);
  }
  void fetch(const char* source, const block& b, const slice& s) const {
    char* to = out_ + b.begin * size_ + s.begin;
    if (source != to) round_.fetch(source, to, s.bytes);
  }

  shared_round& round_;
  const pattern pattern_;
  const char* in_;
  char* out_;
  const std::int64_t size_;
  const bool has_sections_, is_even_;
  const bool compares_;  // only the two ranks of a block know its size
  const sections cut_;
};

}  // namespace

void shared_round::move_blocks() {
  const std::int64_t bytes = mailbox_bytes(op, size);
  if (bytes >= 0 && bytes <= mailbox::room) return move_by_mailbox(*this, op.traits(), bytes);
  block_moves(*this).run();
}

}  // namespace velo::comm
