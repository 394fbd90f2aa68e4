// all_gather: what each rank has, side by side in the order of the ranks, for all.
//
// Each rank stages a slot full of its elements in each step, and copies those of all others; or
// copies them from where they lie.
#include <algorithm>

#include "comm/collective/calls.hpp"
#include "comm/collective/slices.hpp"
#include "comm/group/short_copy.hpp"

namespace velo::comm {

operation all_gather_call(const caller& by, const velo_tensor* given_in,
                          const velo_tensor* given_out, const uneven* parts) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  operation what =
      call_of(collective::all_gather,
              parts == nullptr ? "velo_group_all_gather" : "velo_group_all_gather_v", in, out);
  require_dtype(out, "out", in);
  what.count = what.terms.count = in.count;
  if (parts == nullptr) {
    require_count(out, "out", in.count * by.size, "those of in for each rank");
  } else {
    what.out_parts = parts_of(by, parts->counts, parts->offsets, {"counts", "offsets"}, out, true);
    require_count(in, "in", what.out_part(by.rank).count, "as counts says");
    what.terms.count = 0;
    what.terms.counts = hash_of(what.out_parts);
  }
  if (in.data != out.at(what.out_part(by.rank).begin)) require_apart(out, "out", in, "in");
  return what;
}

namespace {

void through_mailboxes(meeting& m, const char* in, char* out) {
  const std::int64_t bytes = m.what.in_bytes();
  m.arrive(in, bytes);
  m.meet();
  for (int r = 0; r < m.size; ++r) copy_short(out + r * bytes, m.payload(r, bytes), bytes);
}

void in_place(const meeting& m, const char* in, char* out) {
  const std::int64_t size = m.what.in_size();
  for (int r = 0; r < m.size; ++r) {
    const part p = m.what.out_part(r);
    char* to = out + p.begin * size;
    const char* from = r == m.rank || p.count == 0 ? in : m.in_of(r, p.count * size);
    if (from != to) m.fetch(from, to, p.count * size);
  }
}

// As all ranks have them.
std::int64_t longest_part(const operation& what, int ranks) {
  std::int64_t most = 0;
  for (int r = 0; r < ranks; ++r) most = std::max(most, what.out_part(r).count);
  return most * what.in_size();
}

}  // namespace

void all_gather(meeting& m) {
  const char* in = static_cast<const char*>(m.what.in);
  char* out = static_cast<char*>(m.what.out);
  const std::int64_t size = m.what.in_size(), most = m.slot_bytes(), own = m.what.in_bytes();
  if (m.what.out_parts.empty() && own <= mailbox::room) return through_mailboxes(m, in, out);
  const std::int64_t longest = longest_part(m.what, m.size);
  if (m.may_be_in_place(longest) && m.meet_in_place({in, own})) {
    in_place(m, in, out);
    return m.pass();
  }
  const auto piece = [&](int rank, std::int64_t step) {
    return slice_of(m.what.out_part(rank).count * size, most, step);
  };
  m.steps(
      {slices_in(longest, most), m.what.out_parts.empty() ? own : most},
      [&](std::int64_t step) {
        const slice s = piece(m.rank, step);
        m.stage(in + s.begin, m.mine(), s.bytes);
      },
      [&](std::int64_t step) {
        for (int r = 0; r < m.size; ++r) {
          const slice s = piece(r, step);
          char* to = out + m.what.out_part(r).begin * size + s.begin;
          const char* from = r == m.rank ? in + s.begin : m.of(r);
          if (from != to) m.fetch(from, to, s.bytes);
        }
      });
}

}  // namespace velo::comm
