// Rounds that combine elements over MPI.
//
// Each rank gathers from all ranks the operands of its elements and combines them in the order of
// the group (host_order.hpp). MPI's own reductions promise no order.
#include <algorithm>

#include "comm/pattern/slices.hpp"
#include "comm/transport/mpi/round.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

struct operands {
  explicit operands(const operation& what)
      : in(static_cast<const char*>(what.in)),
        out(static_cast<char*>(what.out)),
        in_size(what.in_size()),
        out_size(what.out_size()) {}
  const char* in;
  char* out;
  std::int64_t in_size, out_size;
};

// all_reduce and reduce of data that does not fit in an opening: each rank combines its share of
// each chunk, and sends the result two steps later to the ranks that get it.
class chunked_reduction {
 public:
  explicit chunked_reduction(mpi_round& r)
      : r_(r),
        t_(r.what),
        count_(r.what.count),
        traits_(r.what.traits()),
        share_(r.slot_bytes() / (t_.in_size + t_.out_size) / 64 * 64),
        chunks_(core::ceil_div(count_, share_ * r.size)) {
    const auto bytes = static_cast<std::size_t>(share_ * t_.out_size);
    if (!gets(r.rank))
      for (char*& one : results_) one = r.state.scratch.take<char>(bytes);
  }

  void run() {
    r_.steps(
        chunks_ + 2, [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  bool gets(int rank) const {
    return traits_.root != root_role::takes || rank == r_.what.terms.root;
  }
  // The elements of rank `of`'s share of chunk `number`.
  block own(int of, std::int64_t number) const {
    if (number < 0 || number >= chunks_) return {};
    const std::int64_t first = number * share_ * r_.size,
                       count = std::min(share_ * r_.size, count_ - first);
    const block share = share_of(count, r_.size, of, 64);
    return {first + share.begin, share.count};
  }
  std::int64_t fresh(int taker, std::int64_t step) const {
    return own(taker, step).count * t_.in_size;
  }
  std::int64_t done(int giver, int taker, std::int64_t step) const {
    return gets(taker) ? own(giver, step - 2).count * t_.out_size : 0;
  }
  char* result(std::int64_t number) const {
    return gets(r_.rank) ? t_.out + own(r_.rank, number).begin * t_.out_size : results_[number % 2];
  }

  void write(std::int64_t step) {
    for (int i = 1; i < r_.size; ++i) {
      const int peer = (r_.rank + i) % r_.size;
      const std::int64_t a = fresh(peer, step), b = done(r_.rank, peer, step);
      r_.expect(peer, fresh(r_.rank, step) + done(peer, r_.rank, step));
      std::copy_n(t_.in + own(peer, step).begin * t_.in_size, a, r_.to(peer));
      if (b > 0) std::copy_n(result(step - 2), b, r_.to(peer) + a);
      r_.give(peer, r_.to(peer), a + b);
    }
  }
  void read(std::int64_t step) {
    const block mine = own(r_.rank, step);
    for (int peer = 0; peer < r_.size; ++peer)
      r_.sources()[peer] = peer == r_.rank ? t_.in + mine.begin * t_.in_size : r_.from(peer);
    if (mine.count > 0) r_.combine(result(step), mine.count);
    for (int peer = 0; peer < r_.size; ++peer) {
      if (peer == r_.rank) continue;
      const std::int64_t b = done(peer, r_.rank, step);
      if (b > 0)
        std::copy_n(r_.from(peer) + fresh(r_.rank, step), b,
                    t_.out + own(peer, step - 2).begin * t_.out_size);
    }
  }

  mpi_round& r_;
  const operands t_;
  const std::int64_t count_;
  const collective_traits& traits_;
  const std::int64_t share_, chunks_;  // elements of a share; number of chunks
  char* results_[2] = {};              // used in turn by a rank that does not get the result
};

}  // namespace

void mpi_round::reduce_whole() {
  const collective_traits& traits = what.traits();
  const auto gets = [&](int of) {
    return traits.root != root_role::takes || of == what.terms.root;
  };
  const std::int64_t bytes = what.in_bytes();
  if (bytes > room) {
    exchange_openings();
    return reduce_large();
  }
  for (int peer = 0; peer < size; ++peer) announce(peer, 0, what.in, gets(peer) ? bytes : 0);
  exchange_openings();
  if (!gets(rank)) return;
  for (int peer = 0; peer < size; ++peer) sources()[peer] = peer == rank ? what.in : payload(peer);
  combine(what.out, what.count);
}

void mpi_round::reduce_large() {
  chunked_reduction(*this).run();
}

// Each rank sends every other rank that rank's block, and combines the blocks it receives for
// itself.
void mpi_round::reduce_blocks() {
  const operands t(what);
  const comm::pattern pattern = what.pattern(rank, size);
  const auto place = [&](int of) { return t.in + pattern.gives(of).begin * t.in_size; };
  const auto bytes = [&](int of) { return pattern.gives(of).count * t.in_size; };
  const auto fits = [&](int of) { return bytes(of) <= room; };
  std::int64_t most = 0;
  for (int peer = 0; peer < size; ++peer) {
    announce(peer, 0, place(peer), fits(peer) ? bytes(peer) : 0);
    if (!fits(peer)) most = std::max(most, bytes(peer));
  }
  exchange_openings();
  if (fits(rank)) {
    for (int peer = 0; peer < size; ++peer)
      sources()[peer] = peer == rank ? place(rank) : payload(peer);
    combine(t.out, pattern.gives(rank).count);
  }
  const auto part_of = [&](int of, std::int64_t step) {
    return fits(of) ? slice{0, 0} : slice_of(bytes(of), slot_bytes(), step);
  };
  steps(
      slices_in(most, slot_bytes()),
      [&](std::int64_t step) {
        for (int i = 1; i < size; ++i) {
          const int peer = (rank + i) % size;
          const slice s = part_of(peer, step);
          expect(peer, part_of(rank, step).bytes);
          std::copy_n(place(peer) + s.begin, s.bytes, to(peer));
          give(peer, to(peer), s.bytes);
        }
      },
      [&](std::int64_t step) {
        const slice own = part_of(rank, step);
        for (int peer = 0; peer < size; ++peer)
          sources()[peer] = peer == rank ? place(rank) + own.begin : from(peer);
        combine(t.out + own.begin / t.in_size * t.out_size, own.bytes / t.in_size);
      });
}

}  // namespace velo::comm
