// all_to_all: of what each rank has, a part for each rank, in the order of the ranks.
//
// Each rank stages a section for each other rank in each step. Where ranks give each other
// different numbers of elements, the first slot begins with what is in them, for the readers to
// compare with what they expect. Even parts are copied from where they lie, unless that is where
// they go.
#include <algorithm>
#include <cstring>

#include "comm/collective/calls.hpp"
#include "comm/collective/slices.hpp"
#include "comm/group/short_copy.hpp"

namespace velo::comm {
namespace {

bool same_parts(const std::vector<part>& a, const std::vector<part>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const part& x, const part& y) {
           return x.begin == y.begin && x.count == y.count;
         });
}

}  // namespace

operation all_to_all_call(const caller& by, const velo_tensor* given_in,
                          const velo_tensor* given_out, const uneven* in_parts,
                          const uneven* out_parts) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  const bool even = in_parts == nullptr;
  operation what = call_of(collective::all_to_all,
                           even ? "velo_group_all_to_all" : "velo_group_all_to_all_v", in, out);
  require_dtype(out, "out", in);
  if (even) {
    if (in.count % by.size != 0)
      core::fail(VELO_ERR_SHAPE, "in", core::text("a multiple of the %d ranks", by.size),
                 core::text("%lld elements", static_cast<long long>(in.count)));
    require_count(out, "out", in.count, "as many as in has");
    what.count = what.terms.count = in.count / by.size;
  } else {
    what.in_parts =
        parts_of(by, in_parts->counts, in_parts->offsets, {"in_counts", "in_offsets"}, in, false);
    what.out_parts = parts_of(by, out_parts->counts, out_parts->offsets,
                              {"out_counts", "out_offsets"}, out, true);
    what.count = what.in_part(by.rank).count;
    what.terms.counts = 1;  // not what the other call does
    if (what.count != what.out_part(by.rank).count)
      core::fail(VELO_ERR_ARGUMENT, core::text("out_counts[%d]", by.rank),
                 core::text("%lld, as in_counts says", static_cast<long long>(what.count)),
                 core::text("%lld", static_cast<long long>(what.out_part(by.rank).count)));
  }
  if (in.data != out.data || !same_parts(what.in_parts, what.out_parts))
    require_apart(out, "out", in, "in");
  return what;
}

namespace {

class exchange {
 public:
  explicit exchange(meeting& m)
      : m_(m),
        in_(static_cast<const char*>(m.what.in)),
        out_(static_cast<char*>(m.what.out)),
        size_(m.what.in_size()),
        even_(m.what.in_parts.empty()),
        cut_(m.slot_bytes(), m.size, even_ ? m.what.in_bytes() : 0, even_ ? 0 : 8 * m.size) {}

  void run() {
    std::int64_t most = 0;
    for (int r = 0; r < m_.size; ++r) most = std::max(most, m_.what.in_part(r).count);
    m_.steps(
        {slices_in(most * size_, cut_.bytes()), cut_.span()},
        [this](std::int64_t step) {
          for (int r = 0; r < m_.size; ++r) give(r, step);
        },
        [this](std::int64_t step) {
          for (int r = 0; r < m_.size; ++r) take(r, step);
        });
  }

 private:
  void give(int to, std::int64_t step) {
    const part p = m_.what.in_part(to);
    if (step == 0 && !even_) std::memcpy(m_.mine() + 8 * to, &p.count, 8);
    const slice s = slice_of(p.count * size_, cut_.bytes(), step);
    if (to != m_.rank)
      m_.stage(in_ + p.begin * size_ + s.begin, m_.mine() + cut_.begin(m_.rank, to), s.bytes);
  }
  void take(int from, std::int64_t step) {
    const part p = m_.what.out_part(from);
    if (step == 0 && !even_) {
      std::int64_t theirs = 0;
      std::memcpy(&theirs, m_.of(from) + 8 * m_.rank, 8);
      if (theirs != p.count) m_.disagree(from, p.count, theirs);
    }
    const slice s = slice_of(p.count * size_, cut_.bytes(), step);
    const char* there = from == m_.rank ? in_ + m_.what.in_part(from).begin * size_ + s.begin
                                        : m_.of(from) + cut_.begin(from, m_.rank);
    char* to = out_ + p.begin * size_ + s.begin;
    if (there != to) m_.fetch(there, to, s.bytes);
  }

  meeting& m_;
  const char* in_;
  char* out_;
  const std::int64_t size_;
  const bool even_;
  const sections cut_;
};

void through_mailboxes(meeting& m) {
  const std::int64_t bytes = m.what.in_bytes();
  m.arrive(m.what.in, m.size * bytes);
  m.meet();
  for (int r = 0; r < m.size; ++r)
    copy_short(static_cast<char*>(m.what.out) + r * bytes,
               m.payload(r, m.size * bytes) + m.rank * bytes, bytes);
}

void in_place(meeting& m) {
  const std::int64_t bytes = m.what.in_bytes();
  const char* in = static_cast<const char*>(m.what.in);
  char* out = static_cast<char*>(m.what.out);
  for (int r = 0; r < m.size; ++r)
    m.fetch((r == m.rank ? in : m.in_of(r, m.size * bytes)) + m.rank * bytes, out + r * bytes,
            bytes);
}

}  // namespace

// A tensor that is written while others read it can only be staged.
void all_to_all(meeting& m) {
  const std::int64_t bytes = m.what.in_bytes();
  const bool even = m.what.in_parts.empty();
  if (even && m.size * bytes <= mailbox::room) return through_mailboxes(m);
  if (even && m.may_be_in_place(bytes) &&
      m.meet_in_place({m.what.in == m.what.out ? nullptr : m.what.in, m.size * bytes})) {
    in_place(m);
    return m.pass();
  }
  exchange(m).run();
}

}  // namespace velo::comm
