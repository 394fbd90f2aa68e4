// Builds phases and reads them. Each instruction has a cursor, so only the first action of a read
// divides.
#include "sched/schedule/program.hpp"

#include <algorithm>
#include <cassert>

namespace velo::sched {
namespace {

// The unit and chunk of an instruction's next action, and advancing to the action after it.
class cursor {
 public:
  // counter: the instruction's value in the first repetition that is read.
  cursor(const chunk_order& order, std::int8_t chunk, std::int8_t stride, std::int32_t counter)
      : order_(order), kind_(chunk), stride_(stride), chunk_(chunk), unit_(counter) {
    if (chunk >= 0) return;
    const std::int32_t of_group = order.group * order.chunks;
    const std::int32_t group = counter / of_group;
    begin_ = group * order.group;
    size_ = std::min(order.group, order.units - begin_);
    const std::int32_t inside = counter - group * of_group;
    chunk_ = inside / size_;
    unit_ = begin_ + inside - chunk_ * size_;
  }

  std::int32_t unit() const {
    return kind_ == down_groups ? 2 * begin_ + size_ - 1 - unit_ : unit_;
  }
  std::int32_t chunk() const {
    return kind_ == all_chunks_mirrored ? order_.chunks - 1 - chunk_ : chunk_;
  }

  void advance() {
    unit_ += stride_;
    if (kind_ >= 0 || unit_ < begin_ + size_) return;
    if (++chunk_ == order_.chunks) {
      chunk_ = 0;
      begin_ += size_;
      size_ = std::min(order_.group, order_.units - begin_);
    }
    unit_ = begin_;
  }

 private:
  const chunk_order& order_;
  const std::int32_t kind_, stride_;
  std::int32_t chunk_, unit_;
  std::int32_t begin_ = 0, size_ = 0;  // of the group
};

// Writes the phase's actions [first, first + count), counted from the phase's begin.
void read_phase(const phase& from, const chunk_order& order, std::int64_t first, std::int64_t count,
                const std::int32_t* stages, action* into) {
  const std::int64_t repetition = first / from.length;
  const auto offset = static_cast<std::int32_t>(first - repetition * from.length);
  for (std::int32_t i = 0; i < from.length && i < count; ++i) {
    const std::int32_t index = (offset + i) % from.length;
    const instruction& s = from.instructions[index];
    const auto done = static_cast<std::int32_t>(repetition) + (index < offset ? 1 : 0);
    cursor one(order, s.chunk, s.stride, s.first + done * s.stride);
    action* to = into + i;
    if (s.kind != VELO_ACTION_FB) {
      for (action* const end = into + count; to < end; to += from.length, one.advance())
        *to = make_action(s.kind, stages[one.chunk()], one.unit());
      continue;
    }
    cursor other(order, s.other_chunk, s.other_stride, s.other_first + done * s.other_stride);
    for (action* const end = into + count; to < end;
         to += from.length, one.advance(), other.advance())
      *to = fused(stages[one.chunk()], one.unit(), stages[other.chunk()], other.unit());
  }
}

}  // namespace

kind_set program::kinds() const {
  kind_set all = 0;
  for (const phase& p : phases_)
    for (std::int32_t i = 0; i < p.length; ++i) all |= set_of(p.instructions[i].kind);
  return all;
}

void program::begin_weights() {
  for (counters& c : counters_) c.weight = 0;
}

program::counters& program::of(std::int8_t chunk) {
  const auto at = static_cast<std::size_t>(std::max<int>(chunk, 0));
  if (at >= counters_.size()) counters_.resize(at + 1);
  return counters_[at];
}

void program::repeat(std::int64_t times, std::initializer_list<step> steps) {
  std::vector<step> left(steps);
  for (auto all = static_cast<std::int32_t>(times); all > 0 && !left.empty();) {
    std::int32_t now = all;  // until the next step is left out
    for (std::size_t i = 0; i < left.size();) {
      const std::int32_t more = limit_ - of(left[i].chunk).of(left[i].kind);
      if (more > 0) {
        now = std::min(now, more);
        ++i;
      } else {
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (!left.empty()) add(now, left);
    all -= now;
  }
}

void program::add(std::int32_t times, const std::vector<step>& steps) {
  assert(steps.size() <= static_cast<std::size_t>(phase::most_instructions));
  for (const step& s : steps) {  // all counters exist, so none moves in memory
    of(s.chunk);
    of(s.other_chunk);
  }
  phase added;
  added.begin = length_;
  added.times = times;
  struct use {
    std::int32_t* counter;
    std::int32_t* first;
    std::int8_t* stride;
  };
  std::vector<use> uses;
  for (const step& s : steps) {
    instruction& to = added.instructions[added.length++];
    to.kind = s.kind;
    to.chunk = s.chunk;
    to.other_chunk = s.other_chunk;
    uses.push_back({&of(s.chunk).of(s.kind), &to.first, &to.stride});
    if (s.kind == VELO_ACTION_FB)
      uses.push_back({&of(s.other_chunk).backward, &to.other_first, &to.other_stride});
  }
  for (const use& u : uses) {
    *u.stride = 0;
    *u.first = *u.counter;
    for (const use& v : uses) {
      if (v.counter != u.counter) continue;
      ++*u.stride;
      if (&v < &u) ++*u.first;
    }
  }
  for (const use& u : uses) *u.counter += times;
  for (const step& s : steps) {
    if (s.kind == VELO_ACTION_B) of(s.chunk).weight = of(s.chunk).backward;
    if (s.kind == VELO_ACTION_FB) of(s.other_chunk).weight = of(s.other_chunk).backward;
  }
  length_ += std::int64_t{times} * added.length;
  phases_.push_back(added);
}

// The function begins at a cache line: its loops took a quarter longer at another offset.
[[gnu::aligned(64)]] void program::read(std::int64_t first, std::int64_t count,
                                        const std::int32_t* stages, action* into) const {
  auto at = std::upper_bound(phases_.begin(), phases_.end(), first,
                             [](std::int64_t index, const phase& p) { return index < p.begin; });
  for (--at; count > 0; ++at) {
    const std::int64_t inside = first - at->begin;
    const std::int64_t taken = std::min(count, std::int64_t{at->times} * at->length - inside);
    read_phase(*at, order_, inside, taken, stages, into);
    first += taken;
    count -= taken;
    into += taken;
  }
}

}  // namespace velo::sched
