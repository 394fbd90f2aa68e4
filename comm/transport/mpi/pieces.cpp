// The collectives over MPI.
//
// Where data is only moved, a collective is pieces: what a rank gives to each and takes from each,
// the number of elements of which the opening says. A piece that fits goes with the opening, a
// longer one in slices. Reductions gather what belongs to an element from all ranks and combine it
// in the order of the group (host_order.hpp): MPI's own reductions promise none.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/collective/slices.hpp"
#include "comm/transport/mpi/round.hpp"

namespace velo::comm {
namespace {

// What moves between this rank and each other one.
class pieces {
 public:
  pieces(mpi_round& r, std::int64_t element)
      : r_(r),
        element_(element),
        gives_(static_cast<std::size_t>(r.size)),
        takes_(static_cast<std::size_t>(r.size)) {}

  pieces(mpi_round& r, std::vector<piece> gives, std::vector<piece> takes, std::int64_t element)
      : r_(r), element_(element), gives_(std::move(gives)), takes_(std::move(takes)) {}

  void give(int to, const char* from, std::int64_t count) {
    at(gives_, to) = {from, nullptr, count};
  }
  void take(int from, char* to, std::int64_t count) { at(takes_, from) = {nullptr, to, count}; }

  void run() {
    for (int peer = 0; peer < r_.size; ++peer) {
      const piece& p = at(gives_, peer);
      r_.say(peer, p.count, p.from, fits(p) ? p.count * element_ : 0);
    }
    r_.meet();
    for (int peer = 0; peer < r_.size; ++peer) {
      if (peer == r_.rank) continue;
      const piece& take = at(takes_, peer);
      if (r_.said(peer) != take.count) r_.disagree(peer, take.count, r_.said(peer));
      if (fits(take)) copy(r_.payload(peer), take.to, take.count * element_);
    }
    const piece &give = at(gives_, r_.rank), &take = at(takes_, r_.rank);
    if (give.from != nullptr && take.to != nullptr) copy(give.from, take.to, take.count * element_);
    run_large();
  }
  // What fits no opening.
  void run_large() {
    std::int64_t most = 0;
    for (int peer = 0; peer < r_.size; ++peer)
      for (const piece& one : {at(gives_, peer), at(takes_, peer)})
        if (peer != r_.rank && !fits(one)) most = std::max(most, one.count * element_);
    r_.steps(
        slices_in(most, r_.slot_bytes()), [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  static piece& at(std::vector<piece>& of, int peer) { return of[static_cast<std::size_t>(peer)]; }
  bool fits(const piece& p) const { return r_.fits(p.count * element_); }
  static void copy(const char* from, char* to, std::int64_t bytes) {
    if (bytes > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  slice part(const piece& p, std::int64_t step) const {
    if (fits(p)) return {0, 0};
    return slice_of(p.count * element_, r_.slot_bytes(), step);
  }

  // Ranks in turn, so that not all begin with the same; what many get is staged once.
  void write(std::int64_t step) {
    const char *staged = nullptr, *source = nullptr;
    std::int64_t size = 0;
    for (int i = 1; i < r_.size; ++i) {
      const int peer = (r_.rank + i) % r_.size, other = (r_.rank + r_.size - i) % r_.size;
      r_.expect(other, part(at(takes_, other), step).bytes);
      const slice s = part(at(gives_, peer), step);
      const char* from = at(gives_, peer).from + s.begin;
      if (s.bytes == 0) continue;
      if (from != source || s.bytes != size) {
        copy(from, r_.to(peer), s.bytes);
        staged = r_.to(peer), source = from, size = s.bytes;
      }
      r_.give(peer, staged, s.bytes);
    }
  }
  void read(std::int64_t step) {
    for (int peer = 0; peer < r_.size; ++peer) {
      const slice s = part(at(takes_, peer), step);
      if (peer != r_.rank && s.bytes > 0)
        copy(r_.from(peer), at(takes_, peer).to + s.begin, s.bytes);
    }
  }

  mpi_round& r_;
  const std::int64_t element_;
  std::vector<piece> gives_, takes_;
};

struct tensors {
  explicit tensors(const operation& what)
      : in(static_cast<const char*>(what.in)),
        out(static_cast<char*>(what.out)),
        in_size(what.in_size()),
        out_size(what.out_size()) {}
  const char* in;
  char* out;
  std::int64_t in_size, out_size;
};

void barrier(mpi_round& r) {
  r.meet();
}

void all_gather(mpi_round& r) {
  const tensors t(r.what);
  pieces all(r, t.in_size);
  for (int peer = 0; peer < r.size; ++peer) {
    const part p = r.what.out_part(peer);
    all.give(peer, t.in, r.what.count);
    all.take(peer, t.out + p.begin * t.in_size, p.count);
  }
  all.run();
}

void all_to_all(mpi_round& r) {
  const tensors t(r.what);
  pieces all(r, t.in_size);
  for (int peer = 0; peer < r.size; ++peer) {
    const part give = r.what.in_part(peer), take = r.what.out_part(peer);
    all.give(peer, t.in + give.begin * t.in_size, give.count);
    all.take(peer, t.out + take.begin * t.in_size, take.count);
  }
  all.run();
}

void gather(mpi_round& r) {
  const tensors t(r.what);
  pieces all(r, t.in_size);
  const int root = r.what.terms.root;
  all.give(root, t.in, r.what.count);
  for (int peer = 0; r.rank == root && peer < r.size; ++peer) {
    const part p = r.what.out_part(peer);
    all.take(peer, t.out + p.begin * t.in_size, p.count);
  }
  all.run();
}

void scatter(mpi_round& r) {
  const tensors t(r.what);
  pieces all(r, t.out_size);
  const int root = r.what.terms.root;
  for (int peer = 0; r.rank == root && peer < r.size; ++peer) {
    const part p = r.what.in_part(peer);
    all.give(peer, t.in + p.begin * t.out_size, p.count);
  }
  all.take(root, t.out, r.what.count);
  all.run();
}

// A large tensor of the root's goes to each rank in a part, and from there to the others: so the
// root sends it once, and not once for each.
class spread {
 public:
  explicit spread(mpi_round& r)
      : r_(r),
        x_(static_cast<char*>(r.what.out)),
        bytes_(r.what.out_bytes()),
        root_(r.what.terms.root),
        unit_(r.slot_bytes() / 2) {}

  // In step s the root sends each a slice of its part, and each passes on that of the step before
  // the last, which it has.
  void run() {
    const std::int64_t count = slices_in(own_bytes(0), unit_);
    r_.steps(
        count + 2, [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  std::int64_t place(int of) const {
    return std::min(bytes_, core::round_up((bytes_ + r_.size - 1) / r_.size, 64) * of);
  }
  std::int64_t own_bytes(int of) const { return place(of + 1) - place(of); }
  slice fresh(int of, std::int64_t step) const { return slice_of(own_bytes(of), unit_, step); }
  slice passed(int of, std::int64_t step) const {
    return step < 2 ? slice{0, 0} : slice_of(own_bytes(of), unit_, step - 2);
  }
  // What `giver` sends `taker` in a step: of the taker's part, and of its own.
  slice first(int giver, int taker, std::int64_t step) const {
    return giver == root_ ? fresh(taker, step) : slice{0, 0};
  }
  slice second(int giver, int taker, std::int64_t step) const {
    return taker == root_ ? slice{0, 0} : passed(giver, step);
  }

  void write(std::int64_t step) {
    for (int i = 1; i < r_.size; ++i) {
      const int peer = (r_.rank + i) % r_.size;
      const slice a = first(r_.rank, peer, step), b = second(r_.rank, peer, step);
      const slice c = first(peer, r_.rank, step), d = second(peer, r_.rank, step);
      r_.expect(peer, c.bytes + d.bytes);
      std::copy_n(x_ + place(peer) + a.begin, a.bytes, r_.to(peer));
      std::copy_n(x_ + place(r_.rank) + b.begin, b.bytes, r_.to(peer) + a.bytes);
      r_.give(peer, r_.to(peer), a.bytes + b.bytes);
    }
  }
  void read(std::int64_t step) {
    for (int peer = 0; peer < r_.size; ++peer) {
      if (peer == r_.rank) continue;
      const slice c = first(peer, r_.rank, step), d = second(peer, r_.rank, step);
      std::copy_n(r_.from(peer), c.bytes, x_ + place(r_.rank) + c.begin);
      std::copy_n(r_.from(peer) + c.bytes, d.bytes, x_ + place(peer) + d.begin);
    }
  }

  mpi_round& r_;
  char* x_;
  const std::int64_t bytes_;
  const int root_;
  const std::int64_t unit_;
};

void broadcast(mpi_round& r) {
  if (r.size > 2 && r.what.out_bytes() > mpi_round::room) {
    r.meet();
    return broadcast_large(r);
  }
  const tensors t(r.what);
  pieces all(r, t.out_size);
  const int root = r.what.terms.root;
  for (int peer = 0; r.rank == root && peer < r.size; ++peer)
    all.give(peer, t.out, peer == root ? 0 : r.what.count);
  all.take(root, t.out, r.rank == root ? 0 : r.what.count);
  all.run();
}

// Each rank sends every other one that one's part, and combines what it gets of its own.
void reduce_scatter(mpi_round& r) {
  const tensors t(r.what);
  const auto place = [&](int of) { return t.in + r.what.in_part(of).begin * t.in_size; };
  const auto bytes = [&](int of) { return r.what.in_part(of).count * t.in_size; };
  const auto fits = [&](int of) { return bytes(of) <= mpi_round::room; };
  std::int64_t most = 0;
  for (int peer = 0; peer < r.size; ++peer) {
    r.say(peer, 0, place(peer), fits(peer) ? bytes(peer) : 0);
    if (!fits(peer)) most = std::max(most, bytes(peer));
  }
  r.meet();
  if (fits(r.rank)) {
    for (int peer = 0; peer < r.size; ++peer)
      r.sources()[peer] = peer == r.rank ? place(r.rank) : r.payload(peer);
    r.combine(t.out, r.what.in_part(r.rank).count);
  }
  const auto part = [&](int of, std::int64_t step) {
    return fits(of) ? slice{0, 0} : slice_of(bytes(of), r.slot_bytes(), step);
  };
  r.steps(
      slices_in(most, r.slot_bytes()),
      [&](std::int64_t step) {
        for (int i = 1; i < r.size; ++i) {
          const int peer = (r.rank + i) % r.size;
          const slice s = part(peer, step);
          r.expect(peer, part(r.rank, step).bytes);
          std::copy_n(place(peer) + s.begin, s.bytes, r.to(peer));
          r.give(peer, r.to(peer), s.bytes);
        }
      },
      [&](std::int64_t step) {
        const slice own = part(r.rank, step);
        for (int peer = 0; peer < r.size; ++peer)
          r.sources()[peer] = peer == r.rank ? place(r.rank) + own.begin : r.from(peer);
        r.combine(t.out + own.begin / t.in_size * t.out_size, own.bytes / t.in_size);
      });
}

// all_reduce and reduce of more than fits an opening: chunk by chunk, each rank combines a part of
// it and sends the result to those that get it, two steps later.
class combination {
 public:
  combination(mpi_round& r, int for_rank)
      : r_(r),
        t_(r.what),
        count_(r.what.count),
        for_rank_(for_rank),
        part_(r.slot_bytes() / (t_.in_size + t_.out_size) / 64 * 64),
        chunks_((count_ + part_ * r.size - 1) / (part_ * r.size)) {
    const auto bytes = static_cast<std::size_t>(part_ * t_.out_size);
    if (!gets(r.rank))
      for (char*& one : results_) one = r.state.scratch.take<char>(bytes);
  }

  void run() {
    r_.steps(
        chunks_ + 2, [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  bool gets(int rank) const { return for_rank_ < 0 || for_rank_ == rank; }
  // Elements of a rank's part of a chunk.
  part own(int of, std::int64_t number) const {
    if (number < 0 || number >= chunks_) return {};
    const std::int64_t first = number * part_ * r_.size,
                       count = std::min(part_ * r_.size, count_ - first);
    const std::int64_t each = core::round_up((count + r_.size - 1) / r_.size, 64);
    const std::int64_t begin = std::min(count, each * of);
    return {first + begin, std::min(each, count - begin)};
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
    const part mine = own(r_.rank, step);
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
  const tensors t_;
  const std::int64_t count_;
  const int for_rank_;
  const std::int64_t part_, chunks_;  // elements; their number
  char* results_[2] = {};             // of a rank that does not get them, in turn
};

void combine_for(mpi_round& r, int for_rank) {
  const bool gets = for_rank < 0 || for_rank == r.rank;
  const std::int64_t bytes = r.what.in_bytes();
  if (bytes > mpi_round::room) {
    r.meet();
    return combine_large(r, for_rank);
  }
  for (int peer = 0; peer < r.size; ++peer)
    r.say(peer, 0, r.what.in, for_rank < 0 || for_rank == peer ? bytes : 0);
  r.meet();
  for (int peer = 0; gets && peer < r.size; ++peer)
    r.sources()[peer] = peer == r.rank ? r.what.in : r.payload(peer);
  if (gets) r.combine(r.what.out, r.what.count);
}

}  // namespace

void combine_large(mpi_round& r, int for_rank) {
  combination(r, for_rank).run();
}

void broadcast_large(mpi_round& r) {
  spread(r).run();
}

void exchange_pieces(mpi_round& r, std::vector<piece> gives, std::vector<piece> takes,
                     std::int64_t element) {
  pieces(r, std::move(gives), std::move(takes), element).run_large();
}

void carry_out(mpi_round& r) {
  switch (r.what.terms.kind) {
    case collective::barrier:
      return barrier(r);
    case collective::all_reduce:
      return combine_for(r, -1);
    case collective::reduce:
      return combine_for(r, r.what.terms.root);
    case collective::broadcast:
      return broadcast(r);
    case collective::all_gather:
      return all_gather(r);
    case collective::reduce_scatter:
      return reduce_scatter(r);
    case collective::all_to_all:
      return all_to_all(r);
    case collective::gather:
      return gather(r);
    case collective::scatter:
      return scatter(r);
    case collective::send:
    case collective::receive:
    case collective::exchange:
    case collective::create_part:
    case collective::shrink:
    case collective::dispatch:
    case collective::combine:
      return;  // not by rounds
  }
}

}  // namespace velo::comm
