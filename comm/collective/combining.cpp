// Three ways by size. What fits a mailbox travels in it. Among two ranks, or when short, every rank
// stages its elements, and whoever gets the result combines those of all: one step for each slot
// full. Else each chunk is cut into a part for each rank, which combines it and stages the result,
// while the next chunk is staged: 2 (ranks - 1) / ranks of the data come from peers, whatever their
// number. The result is the same in every way, since each element is combined from the same
// operands in the same order; where every rank combines all, each gets the same bits. A result
// for all, where all tensors lie in memory that ranks lend, is not staged: of each chunk a rank
// combines its part from where the others have it into its own result, out of which they copy it.
#include "comm/collective/combining.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t in_place_bytes = 1 << 20;  // of a part of a result that others copy

struct tensors {
  explicit tensors(const operation& what)
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
  const tensors t(round.op);
  const std::int64_t bytes = t.count * t.in_size;
  round.post(t.in, bytes);
  round.wait_all();
  if (!gets) return;
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] = r == round.rank ? t.in : round.payload(r, bytes);
  round.combine(t.out, t.count, false);
}

void all_at_once(shared_round& round, bool gets) {
  const tensors t(round.op);
  const bool bypass = round.op.is_large(round.state.caches.l3);
  const std::int64_t most = round.slot_bytes() / t.in_size;
  const auto size_of = [&](std::int64_t step) { return std::min(most, t.count - step * most); };
  round.run_steps(
      {(t.count + most - 1) / most, t.count * t.in_size},
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

// A chunk of elements, cut into a part for each rank. Parts begin at whole lines of a slot.
struct chunk {
  std::int64_t first, count, part;

  std::int64_t begin(int of) const { return std::min(count, of * part); }
  std::int64_t size(int of) const { return std::min(count, (of + 1) * part) - begin(of); }
};

class parts {
 public:
  parts(shared_round& round, bool gets)
      : round_(round),
        t_(round.op),
        gets_(gets),
        most_(chunk_elements(round.slot_bytes(), round.size, t_.in_size, t_.out_size)),
        chunks_((t_.count + most_ - 1) / most_) {
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
    const std::int64_t first = number * most_, count = std::min(most_, t_.count - first);
    return {first, count, core::round_up((count + round_.size - 1) / round_.size, part_unit)};
  }
  std::int64_t results() const { return most_ * t_.in_size; }  // in a slot, behind what was staged
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
  const tensors t_;
  const bool gets_;
  const std::int64_t most_, chunks_;
  char* own_ = nullptr;  // of a rank that does not get the result: its part of it
};

// A part is written where only its rank reads, also where the result replaces what it is made from.
// Two ranks that each combine all, which is a wait less, take 1.3 to 1.6 times as long (64 KiB, 1
// MiB).
void in_place(shared_round& round) {
  const tensors t(round.op);
  const std::int64_t whole_in = t.count * t.in_size, whole_out = t.count * t.out_size,
                     most = in_place_bytes / t.out_size * round.size;
  const bool bypass = round.op.is_large(round.state.caches.l3);
  for (std::int64_t first = 0; first < t.count; first += most) {
    const std::int64_t count = std::min(most, t.count - first);
    const chunk c{first, count, core::round_up((count + round.size - 1) / round.size, part_unit)};
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

}  // namespace

void combine_for(shared_round& round, int for_rank) {
  const bool gets = for_rank < 0 || for_rank == round.rank;
  const std::int64_t bytes = round.op.in_bytes();
  if (bytes <= mailbox::room) {
    through_mailboxes(round, gets);
  } else if (for_rank < 0 && round.may_read_in_place(bytes) &&
             round.exchange_locations({round.op.in, bytes}, {round.op.out, round.op.out_bytes()})) {
    in_place(round);
  } else if (combines_whole(round.size, bytes)) {
    all_at_once(round, gets);
  } else {
    parts(round, gets).run();
  }
}

}  // namespace velo::comm
