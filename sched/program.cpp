// Building phases, and reading them: a cursor for each slot, so that only the first action divides.
#include "sched/program.hpp"

#include <algorithm>
#include <cassert>

namespace velo::sched {
namespace {

// Where a slot stands: its micro-batch and chunk, and how to come to the next.
class cursor {
 public:
  // counter: of the slot in the repetition to begin with.
  cursor(const turns& order, std::int8_t chunk, std::int32_t counter) : order_(order) {
    chunk_ = chunk;
    microbatch_ = counter;
    if (chunk >= 0) return;
    mirrored_ = chunk == all_chunks_mirrored;
    by_turns_ = true;
    const std::int32_t of_group = order.group * order.chunks;
    const std::int32_t group = counter / of_group;
    begin_ = group * order.group;
    size_ = std::min(order.group, order.microbatches - begin_);
    const std::int32_t inside = counter - group * of_group;
    chunk_ = inside / size_;
    microbatch_ = begin_ + inside - chunk_ * size_;
  }

  std::int32_t microbatch() const { return microbatch_; }
  std::int32_t chunk() const { return mirrored_ ? order_.chunks - 1 - chunk_ : chunk_; }

  void advance() {
    ++microbatch_;
    if (!by_turns_ || microbatch_ < begin_ + size_) return;
    if (++chunk_ == order_.chunks) {
      chunk_ = 0;
      begin_ += size_;
      size_ = std::min(order_.group, order_.microbatches - begin_);
    }
    microbatch_ = begin_;
  }

 private:
  const turns& order_;
  std::int32_t chunk_ = 0, microbatch_ = 0;
  std::int32_t begin_ = 0, size_ = 0;  // of the group
  bool by_turns_ = false, mirrored_ = false;
};

// Writes the phase's actions [first, first + count), counted from its own beginning.
void read_phase(const phase& from, const turns& order, std::int64_t first, std::int64_t count,
                const std::int32_t* stages, action* into) {
  const std::int64_t repetition = first / from.length;
  const auto offset = static_cast<std::int32_t>(first - repetition * from.length);
  for (std::int32_t i = 0; i < from.length && i < count; ++i) {
    const std::int32_t place = (offset + i) % from.length;
    const slot& s = from.slots[place];
    const auto done = static_cast<std::int32_t>(repetition) + (place < offset ? 1 : 0);
    cursor one(order, s.chunk, s.first + done);
    action* to = into + i;
    if (s.kind != VELO_ACTION_FB) {
      for (action* const end = into + count; to < end; to += from.length, one.advance())
        *to = make_action(s.kind, stages[one.chunk()], one.microbatch());
      continue;
    }
    cursor other(order, s.other_chunk, s.other_first + done);
    for (action* const end = into + count; to < end;
         to += from.length, one.advance(), other.advance())
      *to = fused(stages[one.chunk()], one.microbatch(), stages[other.chunk()], other.microbatch());
  }
}

}  // namespace

program::counters& program::of(std::int8_t chunk) {
  const auto at = static_cast<std::size_t>(std::max<int>(chunk, 0));
  if (at >= counters_.size()) counters_.resize(at + 1);
  return counters_[at];
}

void program::repeat(std::int64_t times, std::initializer_list<step> steps) {
  if (times <= 0) return;
  phase added;
  added.begin = length_;
  added.times = static_cast<std::int32_t>(times);
  for (const step& s : steps) {
    assert(added.length < phase::most_slots);
    const bool two = s.kind == VELO_ACTION_FB;
    added.slots[added.length++] = {s.kind, s.chunk, s.other_chunk, of(s.chunk).of(s.kind),
                                   two ? of(s.other_chunk).backward : 0};
  }
  for (const step& s : steps) {
    of(s.chunk).of(s.kind) += added.times;
    if (s.kind != VELO_ACTION_B && s.kind != VELO_ACTION_FB) continue;
    counters& done = of(s.kind == VELO_ACTION_B ? s.chunk : s.other_chunk);
    if (s.kind == VELO_ACTION_FB) done.backward += added.times;
    done.weight = done.backward;
  }
  length_ += times * added.length;
  phases_.push_back(added);
}

void program::read(std::int64_t first, std::int64_t count, const std::int32_t* stages,
                   action* into) const {
  auto at = std::upper_bound(phases_.begin(), phases_.end(), first,
                             [](std::int64_t place, const phase& p) { return place < p.begin; });
  for (--at; count > 0; ++at) {
    const std::int64_t inside = first - at->begin;
    const std::int64_t taken = std::min(count, std::int64_t{at->times} * at->length - inside);
    read_phase(*at, turns_, inside, taken, stages, into);
    first += taken;
    count -= taken;
    into += taken;
  }
}

}  // namespace velo::sched
