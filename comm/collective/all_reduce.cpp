// all_reduce: the same elements of all ranks combined, in rank order, for all ranks.
//
// Three ways by size. What fits a mailbox travels in it. Among two ranks, or when short, every rank
// stages its elements and combines those of all: one step for each slot full. Else each chunk is
// cut into a part for each rank, which combines it and stages the result for all, while the next
// chunk is staged: 2 (ranks - 1) / ranks of the data come from peers, whatever their number. The
// result is the same in every way, since each element is combined once, from the same operands in
// the same order; where every rank combines all, each gets the same bits.
#include <algorithm>
#include <cstring>

#include "comm/buffer.hpp"
#include "comm/collective/calls.hpp"
#include "comm/transport/meeting.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

using bytes = std::int64_t;

constexpr bytes short_bytes = 16 << 10;  // up to here all combine all, however many ranks

struct shape {
  const char* in;
  char* out;
  bytes in_size, out_size;  // of an element
  std::int64_t count;
};

shape shape_of(const operation& what) {
  return {static_cast<const char*>(what.in), static_cast<char*>(what.out), what.terms.in_bits / 8,
          what.terms.out_bits / 8, what.terms.count};
}

// Combines what stands at m.sources().
void combine(const meeting& m, void* out, std::int64_t n, bool bypass) {
  if (n > 0) m.what.kernel({m.sources(), m.size, out, n, m.what.terms.scale, bypass});
}

void through_mailboxes(meeting& m) {
  const shape s = shape_of(m.what);
  m.arrive(s.in, s.count * s.in_size);
  m.meet();
  for (int r = 0; r < m.size; ++r) m.sources()[r] = m.payload(r);
  combine(m, s.out, s.count, false);
}

void all_combine_all(meeting& m, bool bypass) {
  const shape s = shape_of(m.what);
  const std::int64_t most = m.slot_bytes() / s.in_size;
  for (std::int64_t first = 0; first < s.count; first += most) {
    const std::int64_t n = std::min(most, s.count - first);
    const char* own = s.in + first * s.in_size;
    m.begin_step();
    m.kernels().copy_around_cache({own, m.mine(), n * s.in_size});
    m.post_step();
    if (first == 0) {
      m.arrive();
      m.meet();
    } else {
      m.await_step();
    }
    for (int r = 0; r < m.size; ++r) m.sources()[r] = r == m.rank ? own : m.of(r);
    combine(m, s.out + first * s.out_size, n, bypass);
    m.end_step();
  }
}

// A chunk of elements, cut into a part for each rank. Parts begin at whole lines of a slot.
struct chunk {
  std::int64_t first, count, part;

  std::int64_t begin(int of) const { return std::min(count, of * part); }
  std::int64_t size(int of) const { return std::min(count, (of + 1) * part) - begin(of); }
};

class parts {
 public:
  parts(meeting& m, bool bypass)
      : m_(m),
        s_(shape_of(m.what)),
        bypass_(bypass),
        most_(m.slot_bytes() * m.size / (s_.in_size * m.size + s_.out_size) / (unit * m.size) *
              unit * m.size),
        chunks_((s_.count + most_ - 1) / most_) {}

  void run() {
    for (std::int64_t step = 0; step <= chunks_; ++step) {
      m_.begin_step();
      if (step < chunks_) stage(at(step));
      if (step > 0) stage_result(at(step - 1));
      m_.post_step();
      if (step == 0) {
        m_.arrive();
        m_.meet();
      } else {
        m_.await_step();
      }
      if (step < chunks_) combine_own(at(step));
      if (step > 0) collect(at(step - 1));
      m_.end_step();
    }
  }

 private:
  static constexpr std::int64_t unit = 128;  // elements: whole lines of any dtype

  chunk at(std::int64_t number) const {
    const std::int64_t first = number * most_, count = std::min(most_, s_.count - first);
    return {first, count, core::round_up((count + m_.size - 1) / m_.size, unit)};
  }
  bytes results() const { return most_ * s_.in_size; }  // in a slot, behind what was staged

  void stage(const chunk& c) {
    for (int r = 0; r < m_.size; ++r)
      if (r != m_.rank)
        m_.kernels().copy_around_cache({s_.in + (c.first + c.begin(r)) * s_.in_size,
                                        m_.mine() + c.begin(r) * s_.in_size,
                                        c.size(r) * s_.in_size});
  }
  void combine_own(const chunk& c) {
    const std::int64_t begin = c.begin(m_.rank);
    for (int r = 0; r < m_.size; ++r)
      m_.sources()[r] =
          r == m_.rank ? s_.in + (c.first + begin) * s_.in_size : m_.of(r) + begin * s_.in_size;
    combine(m_, s_.out + (c.first + begin) * s_.out_size, c.size(m_.rank), false);
  }
  void stage_result(const chunk& c) {
    m_.kernels().copy_around_cache({s_.out + (c.first + c.begin(m_.rank)) * s_.out_size,
                                    m_.mine() + results(), c.size(m_.rank) * s_.out_size});
  }
  void collect(const chunk& c) {
    for (int r = 0; r < m_.size; ++r) {
      if (r == m_.rank || c.size(r) == 0) continue;
      char* to = s_.out + (c.first + c.begin(r)) * s_.out_size;
      const bytes n = c.size(r) * s_.out_size;
      if (bypass_) {
        m_.kernels().copy_around_cache({m_.of(r) + results(), to, n});
      } else {
        std::memcpy(to, m_.of(r) + results(), static_cast<std::size_t>(n));
      }
    }
  }

  meeting& m_;
  const shape s_;
  const bool bypass_;
  const std::int64_t most_, chunks_;
};

}  // namespace

operation all_reduce_call(const core::context& owner, const velo_reduction& how,
                          const velo_tensor* given_in, const velo_tensor* given_out) {
  const buffer in = buffer_of(owner, given_in, "in"), out = buffer_of(owner, given_out, "out");
  operation what;
  what.function = "velo_group_all_reduce";
  what.terms.kind = collective::all_reduce;
  what.terms.reduction = static_cast<std::uint8_t>(how.op);
  what.terms.in_code = in.dtype.code, what.terms.in_bits = in.dtype.bits;
  what.terms.out_code = out.dtype.code, what.terms.out_bits = out.dtype.bits;
  what.terms.count = in.count;
  what.terms.scale = how.scale;
  what.kernel = kernel_for(what.terms, reductions_for(owner.isa()));
  require_count(out, "out", in.count, "as many as in has");
  if (in.data != out.data || in.bytes() != out.bytes()) require_apart(out, "out", in, "in");
  what.in = in.data;
  what.out = out.data;
  return what;
}

void all_reduce(meeting& m) {
  const bytes in = m.what.in_bytes(), out = m.what.out_bytes();
  const bool bypass = out > m.state.caches.l3;
  if (in <= mailbox::room) {
    through_mailboxes(m);
  } else if (m.size == 2 || in <= short_bytes) {
    all_combine_all(m, bypass);
  } else {
    parts(m, bypass).run();
  }
}

}  // namespace velo::comm
