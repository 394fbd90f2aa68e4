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

void through_mailboxes(meeting& m, bool gets) {
  const tensors t(m.what);
  const std::int64_t bytes = t.count * t.in_size;
  m.arrive(t.in, bytes);
  m.meet();
  if (!gets) return;
  for (int r = 0; r < m.size; ++r) m.sources()[r] = r == m.rank ? t.in : m.payload(r, bytes);
  m.combine(t.out, t.count, false);
}

void all_at_once(meeting& m, bool gets) {
  const tensors t(m.what);
  const bool bypass = m.what.is_large(m.state.caches.l3);
  const std::int64_t most = m.slot_bytes() / t.in_size;
  const auto size_of = [&](std::int64_t step) { return std::min(most, t.count - step * most); };
  m.steps(
      {(t.count + most - 1) / most, t.count * t.in_size},
      [&](std::int64_t step) {
        m.stage(t.in + step * most * t.in_size, m.mine(), size_of(step) * t.in_size);
      },
      [&](std::int64_t step) {
        if (!gets) return;
        for (int r = 0; r < m.size; ++r)
          m.sources()[r] = r == m.rank ? t.in + step * most * t.in_size : m.of(r);
        m.combine(t.out + step * most * t.out_size, size_of(step), bypass);
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
  parts(meeting& m, bool gets)
      : m_(m),
        t_(m.what),
        gets_(gets),
        most_(chunk_elements(m.slot_bytes(), m.size, t_.in_size, t_.out_size)),
        chunks_((t_.count + most_ - 1) / most_) {
    if (!gets)
      own_ = m.state.scratch.take<char>(static_cast<std::size_t>(most_ / m.size * t_.out_size));
  }

  void run() {
    m_.steps(
        {chunks_ + 1, m_.slot_bytes()},
        [this](std::int64_t step) {
          if (step < chunks_) stage(at(step));
          if (step > 0)
            m_.stage(own_result(at(step - 1)), m_.mine() + results(),
                     at(step - 1).size(m_.rank) * t_.out_size);
        },
        [this](std::int64_t step) {
          if (step < chunks_) combine_own(at(step));
          if (step > 0 && gets_) collect(at(step - 1));
        });
  }

 private:
  chunk at(std::int64_t number) const {
    const std::int64_t first = number * most_, count = std::min(most_, t_.count - first);
    return {first, count, core::round_up((count + m_.size - 1) / m_.size, part_unit)};
  }
  std::int64_t results() const { return most_ * t_.in_size; }  // in a slot, behind what was staged
  char* own_result(const chunk& c) const {
    return gets_ ? t_.out + (c.first + c.begin(m_.rank)) * t_.out_size : own_;
  }

  void stage(const chunk& c) {
    for (int r = 0; r < m_.size; ++r)
      if (r != m_.rank)
        m_.stage(t_.in + (c.first + c.begin(r)) * t_.in_size, m_.mine() + c.begin(r) * t_.in_size,
                 c.size(r) * t_.in_size);
  }
  void combine_own(const chunk& c) {
    const std::int64_t begin = c.begin(m_.rank);
    for (int r = 0; r < m_.size; ++r)
      m_.sources()[r] =
          r == m_.rank ? t_.in + (c.first + begin) * t_.in_size : m_.of(r) + begin * t_.in_size;
    m_.combine(own_result(c), c.size(m_.rank), false);
  }
  void collect(const chunk& c) {
    for (int r = 0; r < m_.size; ++r)
      if (r != m_.rank)
        m_.fetch(m_.of(r) + results(), t_.out + (c.first + c.begin(r)) * t_.out_size,
                 c.size(r) * t_.out_size);
  }

  meeting& m_;
  const tensors t_;
  const bool gets_;
  const std::int64_t most_, chunks_;
  char* own_ = nullptr;  // of a rank that does not get the result: its part of it
};

// A part is written where only its rank reads, also where the result replaces what it is made from.
// Two ranks that each combine all, which is a wait less, take 1.3 to 1.6 times as long (64 KiB, 1
// MiB).
void in_place(meeting& m) {
  const tensors t(m.what);
  const std::int64_t whole_in = t.count * t.in_size, whole_out = t.count * t.out_size,
                     most = in_place_bytes / t.out_size * m.size;
  const bool bypass = m.what.is_large(m.state.caches.l3);
  for (std::int64_t first = 0; first < t.count; first += most) {
    const std::int64_t count = std::min(most, t.count - first);
    const chunk c{first, count, core::round_up((count + m.size - 1) / m.size, part_unit)};
    const std::int64_t begin = first + c.begin(m.rank);
    for (int r = 0; r < m.size; ++r)
      m.sources()[r] = (r == m.rank ? t.in : m.in_of(r, whole_in)) + begin * t.in_size;
    m.combine(t.out + begin * t.out_size, c.size(m.rank), bypass);
    m.pass();
    for (int r = 0; r < m.size; ++r) {
      const std::int64_t there = (first + c.begin(r)) * t.out_size;
      if (r != m.rank)
        m.fetch(m.out_of(r, whole_out) + there, t.out + there, c.size(r) * t.out_size);
    }
  }
  m.pass();
}

}  // namespace

void combine_for(meeting& m, int for_rank) {
  const bool gets = for_rank < 0 || for_rank == m.rank;
  const std::int64_t bytes = m.what.in_bytes();
  if (bytes <= mailbox::room) {
    through_mailboxes(m, gets);
  } else if (for_rank < 0 && m.may_be_in_place(bytes) &&
             m.meet_in_place({m.what.in, bytes}, {m.what.out, m.what.out_bytes()})) {
    in_place(m);
  } else if (combines_whole(m.size, bytes)) {
    all_at_once(m, gets);
  } else {
    parts(m, gets).run();
  }
}

}  // namespace velo::comm
