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

void through_mailboxes(shared_round& round, const char* in) {
  const std::int64_t each = round.op.in_bytes();
  round.post(in, round.size * each);
  round.wait_all();
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] =
        (r == round.rank ? in : round.payload(r, round.size * each)) + round.rank * each;
  round.combine(round.op.out, round.op.count, false);
}

void in_place(shared_round& round, const char* in) {
  const part own = round.op.in_part(round.rank), last = round.op.in_part(round.size - 1);
  const std::int64_t size = round.op.in_size(), whole = (last.begin + last.count) * size;
  for (int r = 0; r < round.size; ++r)
    round.sources()[r] = (r == round.rank ? in : round.peer_in(r, whole)) + own.begin * size;
  round.combine(round.op.out, own.count, round.op.is_large(round.state.caches.l3));
}

}  // namespace

void reduce_scatter(shared_round& round) {
  const char* in = static_cast<const char*>(round.op.in);
  char* out = static_cast<char*>(round.op.out);
  const std::int64_t size = round.op.in_size();
  const bool even = round.op.in_parts.empty(), bypass = round.op.is_large(round.state.caches.l3);
  if (even && round.size * round.op.in_bytes() <= mailbox::room)
    return through_mailboxes(round, in);
  std::int64_t most = 0, all = 0;
  for (int r = 0; r < round.size; ++r) {
    most = std::max(most, round.op.in_part(r).count);
    all += round.op.in_part(r).count;
  }
  if (round.may_read_in_place(most * size) && round.exchange_locations({in, all * size})) {
    in_place(round, in);
    return round.finish_reads();
  }
  const sections cut(round.slot_bytes(), round.size, even ? round.op.in_bytes() : 0);
  const auto piece = [&](int rank, std::int64_t step) {
    return slice_of(round.op.in_part(rank).count * size, cut.bytes(), step);
  };
  const auto place = [&](int rank, const slice& s) {
    return in + round.op.in_part(rank).begin * size + s.begin;
  };
  round.run_steps(
      {slices_in(most * size, cut.bytes()), cut.span()},
      [&](std::int64_t step) {
        for (int r = 0; r < round.size; ++r)
          if (r != round.rank)
            round.stage(place(r, piece(r, step)), round.own_slot() + cut.begin(round.rank, r),
                        piece(r, step).bytes);
      },
      [&](std::int64_t step) {
        const slice own = piece(round.rank, step);
        for (int r = 0; r < round.size; ++r)
          round.sources()[r] =
              r == round.rank ? place(r, own) : round.peer_slot(r) + cut.begin(r, round.rank);
        round.combine(out + own.begin / size * round.op.out_size(), own.bytes / size, bypass);
      });
}

}  // namespace velo::comm
