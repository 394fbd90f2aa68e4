// Rounds that move blocks over MPI.
//
// The opening to a rank carries the size of that rank's block, and the block itself if it fits.
// Longer blocks follow in slices.
#include <algorithm>
#include <cstring>

#include "comm/pattern/slices.hpp"
#include "comm/transport/mpi/round.hpp"

namespace velo::comm {
namespace {

class block_moves {
 public:
  explicit block_moves(mpi_round& r)
      : r_(r),
        pattern_(r.what.pattern(r.rank, r.size)),
        in_(static_cast<const char*>(r.what.in)),
        out_(static_cast<char*>(r.what.out)),
        element_(r.what.in_size()) {}

  void run() {
    for (int peer = 0; peer < r_.size; ++peer) {
      const block b = pattern_.gives(peer);
      r_.announce(peer, b.count, from(b), fits(b) ? b.count * element_ : 0);
    }
    r_.exchange_openings();
    for (int peer = 0; peer < r_.size; ++peer) {
      if (peer == r_.rank) continue;
      const block b = pattern_.takes(peer);
      if (r_.announced_by(peer) != b.count) r_.disagree(peer, b.count, r_.announced_by(peer));
      if (fits(b)) copy(r_.payload(peer), to(b), b.count * element_);
    }
    const block own = pattern_.takes(r_.rank);
    copy(from(pattern_.gives(r_.rank)), to(own), own.count * element_);
    run_large();
  }
  // Moves the data that did not fit in the openings.
  void run_large() {
    std::int64_t longest = 0;
    for (int peer = 0; peer < r_.size; ++peer)
      for (const block& b : {pattern_.gives(peer), pattern_.takes(peer)})
        if (peer != r_.rank && !fits(b)) longest = std::max(longest, b.count * element_);
    r_.steps(
        slices_in(longest, r_.slot_bytes()), [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  bool fits(const block& b) const { return r_.fits(b.count * element_); }
  const char* from(const block& b) const { return in_ + b.begin * element_; }
  char* to(const block& b) const { return out_ + b.begin * element_; }
  static void copy(const char* from, char* to, std::int64_t bytes) {
    if (bytes > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  slice part_of(const block& b, std::int64_t step) const {
    if (fits(b)) return {0, 0};
    return slice_of(b.count * element_, r_.slot_bytes(), step);
  }

  // Each rank begins with the next rank, so that not all send to the same one first. A slice for
  // several ranks is staged once.
  void write(std::int64_t step) {
    const char *staged = nullptr, *source = nullptr;
    std::int64_t size = 0;
    for (int i = 1; i < r_.size; ++i) {
      const int peer = (r_.rank + i) % r_.size, other = (r_.rank + r_.size - i) % r_.size;
      r_.expect(other, part_of(pattern_.takes(other), step).bytes);
      const block b = pattern_.gives(peer);
      const slice s = part_of(b, step);
      if (s.bytes == 0) continue;
      const char* at = from(b) + s.begin;
      if (at != source || s.bytes != size) {
        copy(at, r_.to(peer), s.bytes);
        staged = r_.to(peer);
        source = at;
        size = s.bytes;
      }
      r_.give(peer, staged, s.bytes);
    }
  }
  void read(std::int64_t step) {
    for (int peer = 0; peer < r_.size; ++peer) {
      const block b = pattern_.takes(peer);
      const slice s = part_of(b, step);
      if (peer != r_.rank && s.bytes > 0) copy(r_.from(peer), to(b) + s.begin, s.bytes);
    }
  }

  mpi_round& r_;
  const pattern pattern_;
  const char* in_;
  char* out_;
  const std::int64_t element_;
};

// The root's large tensor for all ranks: the root sends each rank a share, which that rank forwards
// to the others. So the root sends the tensor once rather than once for each rank.
class root_spread {
 public:
  explicit root_spread(mpi_round& r)
      : r_(r),
        x_(static_cast<char*>(r.what.out)),
        bytes_(r.what.out_bytes()),
        root_(r.what.terms.root),
        unit_(r.slot_bytes() / 2) {}

  // The root sends every rank a slice of its share in each step, and every rank forwards the slice
  // that it received two steps before.
  void run() {
    const std::int64_t count = slices_in(own_bytes(0), unit_);
    r_.steps(
        count + 2, [this](std::int64_t step) { write(step); },
        [this](std::int64_t step) { read(step); });
  }

 private:
  std::int64_t place(int of) const { return share_of(bytes_, r_.size, of, 64).begin; }
  std::int64_t own_bytes(int of) const { return share_of(bytes_, r_.size, of, 64).count; }
  slice fresh(int of, std::int64_t step) const { return slice_of(own_bytes(of), unit_, step); }
  slice passed(int of, std::int64_t step) const {
    return step < 2 ? slice{0, 0} : slice_of(own_bytes(of), unit_, step - 2);
  }
  // `giver` sends `taker` two slices in a step: first one of the taker's share, then one of its
  // own.
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

}  // namespace

void mpi_round::synchronize() {
  exchange_openings();
}

void mpi_round::move_blocks() {
  const collective_traits& traits = what.traits();
  const bool is_spread = traits.root == root_role::gives && traits.in == layout::whole;
  if (!is_spread || size <= 2 || what.out_bytes() <= room) return block_moves(*this).run();
  exchange_openings();
  spread_large();
}

void mpi_round::spread_large() {
  root_spread(*this).run();
}

void mpi_round::move_large() {
  block_moves(*this).run_large();
}

}  // namespace velo::comm
