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
  explicit exchange(shared_round& round)
      : round_(round),
        in_(static_cast<const char*>(round.op.in)),
        out_(static_cast<char*>(round.op.out)),
        size_(round.op.in_size()),
        even_(round.op.in_parts.empty()),
        cut_(round.slot_bytes(), round.size, even_ ? round.op.in_bytes() : 0,
             even_ ? 0 : 8 * round.size) {}

  void run() {
    std::int64_t most = 0;
    for (int r = 0; r < round_.size; ++r) most = std::max(most, round_.op.in_part(r).count);
    round_.run_steps(
        {slices_in(most * size_, cut_.bytes()), cut_.span()},
        [this](std::int64_t step) {
          for (int r = 0; r < round_.size; ++r) give(r, step);
        },
        [this](std::int64_t step) {
          for (int r = 0; r < round_.size; ++r) take(r, step);
        });
  }

 private:
  void give(int to, std::int64_t step) {
    const part p = round_.op.in_part(to);
    if (step == 0 && !even_) std::memcpy(round_.own_slot() + 8 * to, &p.count, 8);
    const slice s = slice_of(p.count * size_, cut_.bytes(), step);
    if (to != round_.rank)
      round_.stage(in_ + p.begin * size_ + s.begin, round_.own_slot() + cut_.begin(round_.rank, to),
                   s.bytes);
  }
  void take(int from, std::int64_t step) {
    const part p = round_.op.out_part(from);
    if (step == 0 && !even_) {
      std::int64_t theirs = 0;
      std::memcpy(&theirs, round_.peer_slot(from) + 8 * round_.rank, 8);
      if (theirs != p.count) round_.raise_mismatch(from, p.count, theirs);
    }
    const slice s = slice_of(p.count * size_, cut_.bytes(), step);
    const char* there = from == round_.rank
                            ? in_ + round_.op.in_part(from).begin * size_ + s.begin
                            : round_.peer_slot(from) + cut_.begin(from, round_.rank);
    char* to = out_ + p.begin * size_ + s.begin;
    if (there != to) round_.fetch(there, to, s.bytes);
  }

  shared_round& round_;
  const char* in_;
  char* out_;
  const std::int64_t size_;
  const bool even_;
  const sections cut_;
};

void through_mailboxes(shared_round& round) {
  const std::int64_t bytes = round.op.in_bytes();
  round.post(round.op.in, round.size * bytes);
  round.wait_all();
  for (int r = 0; r < round.size; ++r)
    copy_short(static_cast<char*>(round.op.out) + r * bytes,
               round.payload(r, round.size * bytes) + round.rank * bytes, bytes);
}

void in_place(shared_round& round) {
  const std::int64_t bytes = round.op.in_bytes();
  const char* in = static_cast<const char*>(round.op.in);
  char* out = static_cast<char*>(round.op.out);
  for (int r = 0; r < round.size; ++r)
    round.fetch((r == round.rank ? in : round.peer_in(r, round.size * bytes)) + round.rank * bytes,
                out + r * bytes, bytes);
}

}  // namespace

// A tensor that is written while others read it can only be staged.
void all_to_all(shared_round& round) {
  const std::int64_t bytes = round.op.in_bytes();
  const bool even = round.op.in_parts.empty();
  if (even && round.size * bytes <= mailbox::room) return through_mailboxes(round);
  if (even && round.may_read_in_place(bytes) &&
      round.exchange_locations(
          {round.op.in == round.op.out ? nullptr : round.op.in, round.size * bytes})) {
    in_place(round);
    return round.finish_reads();
  }
  exchange(round).run();
}

}  // namespace velo::comm
