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

void through_mailboxes(shared_round& round, const char* in, char* out) {
  const std::int64_t bytes = round.op.in_bytes();
  round.post(in, bytes);
  round.wait_all();
  for (int r = 0; r < round.size; ++r) copy_short(out + r * bytes, round.payload(r, bytes), bytes);
}

void in_place(const shared_round& round, const char* in, char* out) {
  const std::int64_t size = round.op.in_size();
  for (int r = 0; r < round.size; ++r) {
    const part p = round.op.out_part(r);
    char* to = out + p.begin * size;
    const char* from = r == round.rank || p.count == 0 ? in : round.peer_in(r, p.count * size);
    if (from != to) round.fetch(from, to, p.count * size);
  }
}

// As all ranks have them.
std::int64_t longest_part(const operation& what, int ranks) {
  std::int64_t most = 0;
  for (int r = 0; r < ranks; ++r) most = std::max(most, what.out_part(r).count);
  return most * what.in_size();
}

}  // namespace

void all_gather(shared_round& round) {
  const char* in = static_cast<const char*>(round.op.in);
  char* out = static_cast<char*>(round.op.out);
  const std::int64_t size = round.op.in_size(), most = round.slot_bytes(),
                     own = round.op.in_bytes();
  if (round.op.out_parts.empty() && own <= mailbox::room) return through_mailboxes(round, in, out);
  const std::int64_t longest = longest_part(round.op, round.size);
  if (round.may_read_in_place(longest) && round.exchange_locations({in, own})) {
    in_place(round, in, out);
    return round.finish_reads();
  }
  const auto piece = [&](int rank, std::int64_t step) {
    return slice_of(round.op.out_part(rank).count * size, most, step);
  };
  round.run_steps(
      {slices_in(longest, most), round.op.out_parts.empty() ? own : most},
      [&](std::int64_t step) {
        const slice s = piece(round.rank, step);
        round.stage(in + s.begin, round.own_slot(), s.bytes);
      },
      [&](std::int64_t step) {
        for (int r = 0; r < round.size; ++r) {
          const slice s = piece(r, step);
          char* to = out + round.op.out_part(r).begin * size + s.begin;
          const char* from = r == round.rank ? in + s.begin : round.peer_slot(r);
          if (from != to) round.fetch(from, to, s.bytes);
        }
      });
}

}  // namespace velo::comm
