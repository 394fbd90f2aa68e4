// Reductions in shared memory.
//
// A short operation travels in the mailboxes. Between two ranks, or up to 16 KiB, every rank stages
// its elements, and each rank that gets the result combines those of all. A longer operation is
// split into chunks: each rank combines its share of a chunk and stages the result, while the next
// chunk is staged. Peers then send 2 (ranks - 1) / ranks of the data, whatever their number. Every
// algorithm combines each element from the same operands in the same order, and so gives the same
// bits.
//
// An all_reduce whose tensors all lie in registered memory stages nothing. Each rank combines its
// share of a chunk from its peers' inputs into its own output, and its peers copy it from there.
#include <algorithm>
#include <cassert>

#include "comm/transport/shared/algorithms.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

struct operands {
  explicit operands(const operation& what)
      : in(static_cast<const char*>(what.in)),
        out(static_cast<char*>(what.out)),
        in_size(what.in_size()),
        out_size(what.out_size()),
        count(what.count) {}

  const char* in;
  char* out;
  std::int64_t in_size, out_size;  // of an element
  std::int64_t count;
};

void through_mailboxes(shared_round& round, bool gets) {
  const operands t(round.op);
  const std::int64_t bytes = t.count * t.in_size;
  round.post(t.in, bytes);
  round.wait_all();
  if (!gets) return;
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] = r == round.rank ? t.in : round.payload(r, bytes);
  round.combine(t.out, t.count, false);
}

void unshared(shared_round& round, bool gets) {
  const operands t(round.op);
  const bool bypass = round.op.is_large(round.state.caches.l3);
  const std::int64_t most = round.slot_bytes() / t.in_size;
  const auto size_of = [&](std::int64_t step) { return std::min(most, t.count - step * most); };
  round.run_steps(
      {core::ceil_div(t.count, most), t.count * t.in_size},
      [&](std::int64_t step) {
        round.stage(t.in + step * most * t.in_size, round.own_slot(), size_of(step) * t.in_size);
      },
      [&](std::int64_t step) {
        if (!gets) return;
        for (int r = 0; r < round.size; ++r)
          round.sources()[r] =
              r == round.rank ? t.in + step * most * t.in_size : round.peer_slot(r);
        round.combine(t.out + step * most * t.out_size, size_of(step), bypass);
      });
}

// A chunk of elements. Each rank combines a share of it.
struct chunk {
  std::int64_t first, count;
  int ranks;

  block share(int rank) const { return share_of(count, ranks, rank, share_unit); }
  std::int64_t begin(int rank) const { return share(rank).begin; }
  std::int64_t size(int rank) const { return share(rank).count; }
};

class shared_chunks {
 public:
  shared_chunks(shared_round& round, bool gets)
      : round_(round),
        t_(round.op),
        gets_(gets),
        most_(chunk_elements(round.slot_bytes(), round.size, t_.in_size, t_.out_size)),
        chunks_(core::ceil_div(t_.count, most_)) {
    if (!gets)
      own_ = round.state.scratch.take<char>(
          static_cast<std::size_t>(most_ / round.size * t_.out_size));
  }

  void run() {
    round_.run_steps(
        {chunks_ + 1, round_.slot_bytes()},
        [this](std::int64_t step) {
          if (step < chunks_) stage(at(step));
          if (step > 0)
            round_.stage(own_result(at(step - 1)), round_.own_slot() + results(),
                         at(step - 1).size(round_.rank) * t_.out_size);
        },
        [this](std::int64_t step) {
          if (step < chunks_) combine_own(at(step));
          if (step > 0 && gets_) collect(at(step - 1));
        });
  }

 private:
  chunk at(std::int64_t number) const {
    const std::int64_t first = number * most_;
    return {first, std::min(most_, t_.count - first), round_.size};
  }
  std::int64_t results() const {
    return most_ * t_.in_size;
  }  // in a slot, after the staged elements
  char* own_result(const chunk& c) const {
    return gets_ ? t_.out + (c.first + c.begin(round_.rank)) * t_.out_size : own_;
  }

  void stage(const chunk& c) {
    for (int r = 0; r < round_.size; ++r)
      if (r != round_.rank)
        round_.stage(t_.in + (c.first + c.begin(r)) * t_.in_size,
                     round_.own_slot() + c.begin(r) * t_.in_size, c.size(r) * t_.in_size);
  }
  void combine_own(const chunk& c) {
    const std::int64_t begin = c.begin(round_.rank);
    for (int r = 0; r < round_.size; ++r)
      round_.sources()[r] = r == round_.rank ? t_.in + (c.first + begin) * t_.in_size
                                             : round_.peer_slot(r) + begin * t_.in_size;
    round_.combine(own_result(c), c.size(round_.rank), false);
  }
  void collect(const chunk& c) {
    for (int r = 0; r < round_.size; ++r)
      if (r != round_.rank)
        round_.fetch(round_.peer_slot(r) + results(), t_.out + (c.first + c.begin(r)) * t_.out_size,
                     c.size(r) * t_.out_size);
  }

  shared_round& round_;
  const operands t_;
  const bool gets_;
  const std::int64_t most_, chunks_;
  char* own_ = nullptr;  // holds the share of a rank that does not get the result
};

// Only a share's own rank reads the input bytes that the share overwrites, so the output may
// replace the input. Having each of two ranks combine everything, with one wait less, took 1.3 to
// 1.6 times as long (64 KiB, 1 MiB).
void in_place(shared_round& round) {
  const operands t(round.op);
  const std::int64_t whole_in = t.count * t.in_size, whole_out = t.count * t.out_size,
                     most = in_place_share_bytes / t.out_size * round.size;
  const bool bypass = round.op.is_large(round.state.caches.l3);
  for (std::int64_t first = 0; first < t.count; first += most) {
    const chunk c{first, std::min(most, t.count - first), round.size};
    const std::int64_t begin = first + c.begin(round.rank);
    for (int r = 0; r < round.size; ++r)
      round.sources()[r] =
          (r == round.rank ? t.in : round.peer_in(r, whole_in)) + begin * t.in_size;
    round.combine(t.out + begin * t.out_size, c.size(round.rank), bypass);
    round.finish_reads();
    for (int r = 0; r < round.size; ++r) {
      const std::int64_t there = (first + c.begin(r)) * t.out_size;
      if (r != round.rank)
        round.fetch(round.peer_out(r, whole_out) + there, t.out + there, c.size(r) * t.out_size);
    }
  }
  round.finish_reads();
}

void blocks_through_mailboxes(shared_round& round, const char* in) {
  const std::int64_t each = round.op.in_bytes();
  round.post(in, round.size * each);
  round.wait_all();
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] =
        (r == round.rank ? in : round.payload(r, round.size * each)) + round.rank * each;
  round.combine(round.op.out, round.op.count, false);
}

void blocks_in_place(shared_round& round, const pattern& pattern) {
  const block own = pattern.gives(round.rank);
  const std::int64_t size = round.op.in_size(), whole = read_by_peers(round.op, pattern).bytes;
  const char* in = static_cast<const char*>(round.op.in);
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] = (r == round.rank ? in : round.peer_in(r, whole)) + own.begin * size;
  round.combine(round.op.out, own.count, round.op.is_large(round.state.caches.l3));
}

}  // namespace

void shared_round::synchronize() {
  post();
  wait_all();
}

void shared_round::reduce_whole() {
  const bool is_for_all = op.traits().root == root_role::none;
  const bool gets = is_for_all || op.terms.root == rank;
  const std::int64_t bytes = op.in_bytes();
  assert(bytes == mailbox_bytes(op, size));
  if (bytes <= mailbox::room) {
    through_mailboxes(*this, gets);
  } else if (is_for_all && may_read_in_place(*this, bytes) &&
             exchange_locations({op.in, bytes}, {op.out, op.out_bytes()})) {
    in_place(*this);
  } else if (reduces_unshared(size, bytes)) {
    unshared(*this, gets);
  } else {
    shared_chunks(*this, gets).run();
  }
}

// Each rank stages a section for every peer in each step and combines the sections addressed to it.
void shared_round::reduce_blocks() {
  const comm::pattern pattern = op.pattern(rank, size);
  const char* in = static_cast<const char*>(op.in);
  const std::int64_t element = op.in_size(), posted = mailbox_bytes(op, size);
  if (posted >= 0 && posted <= mailbox::room) return blocks_through_mailboxes(*this, in);
  const std::int64_t longest = in_place_bytes(op, pattern);
  if (may_read_in_place(*this, longest) && exchange_locations(read_by_peers(op, pattern))) {
    blocks_in_place(*this, pattern);
    return finish_reads();
  }
  const sections cut(slot_bytes(), size, is_even(op) ? op.in_bytes() : 0);
  const bool bypass = op.is_large(state.caches.l3);
  const auto part_of = [&](int to, std::int64_t step) {
    return slice_of(pattern.gives(to).count * element, cut.bytes(), step);
  };
  const auto source = [&](int to, const slice& s) {
    return in + pattern.gives(to).begin * element + s.begin;
  };
  run_steps(
      {slices_in(longest, cut.bytes()), cut.span()},
      [&](std::int64_t step) {
        for (int r = 0; r < size; ++r)
          if (r != rank)
            stage(source(r, part_of(r, step)), own_slot() + cut.begin(rank, r),
                  part_of(r, step).bytes);
      },
      [&](std::int64_t step) {
        const slice own = part_of(rank, step);
        for (int r = 0; r < size; ++r)
          sources()[r] = r == rank ? source(r, own) : peer_slot(r) + cut.begin(r, rank);
        char* out = static_cast<char*>(op.out) + own.begin / element * op.out_size();
        combine(out, own.bytes / element, bypass);
      });
}

}  // namespace velo::comm
