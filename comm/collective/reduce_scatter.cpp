// reduce_scatter: the elements of all ranks combined, in rank order, and of the result each rank a
// part.
//
// Each rank stages a section for each other rank in each step, and combines those meant for it; or
// combines them from where they lie.
#include "comm/collective/calls.hpp"
#include "comm/collective/slices.hpp"

namespace velo::comm {

operation reduce_scatter_call(const caller& by, const velo_reduction& how,
                              const velo_tensor* given_in, const velo_tensor* given_out,
                              const uneven* parts) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(
      collective::reduce_scatter,
      parts == nullptr ? "velo_group_reduce_scatter" : "velo_group_reduce_scatter_v", in, out);
  set_reduction(what, by, how);
  what.count = out.count;
  what.terms.count = in.count;
  if (parts == nullptr) {
    require_count(in, "in", out.count * by.size, "those of out for each rank");
  } else {
    what.in_parts = parts_of(by, parts->counts, nullptr, {"counts", ""}, in, false);
    what.terms.counts = hash_of(what.in_parts);
    const part last = what.in_parts.back();
    require_count(in, "in", last.begin + last.count, "as counts says");
    require_count(out, "out", what.in_part(by.rank).count, "as counts says");
  }
  const bool in_place = out.data == in.at(what.in_part(by.rank).begin) && out.size() == in.size();
  if (!in_place) require_apart(out, "out", in, "in");
  return what;
}

namespace {

void through_mailboxes(meeting& m, const char* in) {
  const std::int64_t each = m.what.in_bytes();
  m.arrive(in, m.size * each);
  m.meet();
  for (int r = 0; r < m.size; ++r)
    m.sources()[r] = (r == m.rank ? in : m.payload(r, m.size * each)) + m.rank * each;
  m.combine(m.what.out, m.what.count, false);
}

void in_place(meeting& m, const char* in) {
  const part own = m.what.in_part(m.rank), last = m.what.in_part(m.size - 1);
  const std::int64_t size = m.what.in_size(), whole = (last.begin + last.count) * size;
  for (int r = 0; r < m.size; ++r)
    m.sources()[r] = (r == m.rank ? in : m.in_of(r, whole)) + own.begin * size;
  m.combine(m.what.out, own.count, m.what.is_large(m.state.caches.l3));
}

}  // namespace

void reduce_scatter(meeting& m) {
  const char* in = static_cast<const char*>(m.what.in);
  char* out = static_cast<char*>(m.what.out);
  const std::int64_t size = m.what.in_size();
  const bool even = m.what.in_parts.empty(), bypass = m.what.is_large(m.state.caches.l3);
  if (even && m.size * m.what.in_bytes() <= mailbox::room) return through_mailboxes(m, in);
  std::int64_t most = 0, all = 0;
  for (int r = 0; r < m.size; ++r) {
    most = std::max(most, m.what.in_part(r).count);
    all += m.what.in_part(r).count;
  }
  if (m.may_be_in_place(most * size) && m.meet_in_place({in, all * size})) {
    in_place(m, in);
    return m.pass();
  }
  const sections cut(m.slot_bytes(), m.size, even ? m.what.in_bytes() : 0);
  const auto piece = [&](int rank, std::int64_t step) {
    return slice_of(m.what.in_part(rank).count * size, cut.bytes(), step);
  };
  const auto place = [&](int rank, const slice& s) {
    return in + m.what.in_part(rank).begin * size + s.begin;
  };
  m.steps(
      {slices_in(most * size, cut.bytes()), cut.span()},
      [&](std::int64_t step) {
        for (int r = 0; r < m.size; ++r)
          if (r != m.rank)
            m.stage(place(r, piece(r, step)), m.mine() + cut.begin(m.rank, r),
                    piece(r, step).bytes);
      },
      [&](std::int64_t step) {
        const slice own = piece(m.rank, step);
        for (int r = 0; r < m.size; ++r)
          m.sources()[r] = r == m.rank ? place(r, own) : m.of(r) + cut.begin(r, m.rank);
        m.combine(out + own.begin / size * m.what.out_size(), own.bytes / size, bypass);
      });
}

}  // namespace velo::comm
