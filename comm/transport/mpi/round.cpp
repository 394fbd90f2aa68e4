// Exchanging openings, and checking that ranks agree.
#include "comm/transport/mpi/round.hpp"

#include <algorithm>
#include <cstring>

namespace velo::comm {
namespace {

struct opening {
  std::uint64_t sequence;
  terms what;
  std::int64_t number, bytes;
};
static_assert(sizeof(opening) + mpi_round::room <= mpi_link::opening_bytes);

opening read_opening(const char* from) {
  opening one;
  std::memcpy(&one, from, sizeof one);
  return one;
}

}  // namespace

mpi_round::mpi_round(mpi_link& by, const host_order& order, const operation& what,
                     core::execution& state, std::uint64_t sequence)
    : what(what),
      state(state),
      rank(by.rank()),
      size(by.size()),
      link_(by),
      order_(order.matters() && is_split(what) ? &order : nullptr),
      sources_(static_cast<std::size_t>(size)) {
  doing_.sequence = sequence;
  doing_.terms = what.terms;
  openings_.opens();
  for (int peer = 0; peer < size; ++peer) {
    const opening mine{sequence, what.terms, 0, 0};
    std::memcpy(link_.opening_to(peer), &mine, sizeof mine);
  }
}

mpi_round::mpi_round(mpi_round& outer, const operation& what, const std::vector<int>& members)
    : what(what),
      state(outer.state),
      rank(static_cast<int>(std::find(members.begin(), members.end(), outer.rank) -
                            members.begin())),
      size(static_cast<int>(members.size())),
      link_(outer.link_),
      order_(nullptr),
      inner_(true),
      members_(members),
      doing_(outer.doing_),
      sources_(members.size()) {}

// Requests still under way belong to an operation that failed.
mpi_round::~mpi_round() {
  link_.abandon(openings_);
  link_.abandon(under_way_[0]);
  link_.abandon(under_way_[1]);
}

void mpi_round::announce(int to, std::int64_t number, const void* payload, std::int64_t bytes) {
  if (inner_) return;
  const opening mine{doing_.sequence, what.terms, number, bytes};
  char* place = rank == to ? link_.opening_of(rank) : link_.opening_to(to);
  std::memcpy(place, &mine, sizeof mine);
  if (bytes > 0) std::memcpy(place + sizeof mine, payload, static_cast<std::size_t>(bytes));
}

void mpi_round::exchange_openings() {
  if (inner_) return;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank)
      link_.receive(openings_, flow::opening, peer, link_.opening_of(peer),
                    mpi_link::opening_bytes);
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + i) % size;
    const opening mine = read_opening(link_.opening_to(peer));
    link_.send(openings_, flow::opening, peer, link_.opening_to(peer),
               static_cast<std::int64_t>(sizeof mine) + mine.bytes);
  }
  link_.finish(openings_, doing_);
  compare();
}

void mpi_round::compare() {
  const std::uint64_t own = what.terms.signature();
  const auto terms_of = [this](int of) {
    return of == rank ? what.terms : read_opening(link_.opening_of(of)).what;
  };
  bool same = true;
  for (int peer = 0; peer < size; ++peer) same = same && terms_of(peer).signature() == own;
  if (same) return;
  fault why = doing_;
  why.set_disagreement(size, terms_of);
  end(why);
}

std::int64_t mpi_round::announced_by(int peer) const noexcept {
  return read_opening(link_.opening_of(peer)).number;
}

const char* mpi_round::payload(int of) const noexcept {
  return link_.opening_of(of) + sizeof(opening);
}

void mpi_round::give(int peer, const char* staged, std::int64_t bytes) {
  if (bytes > 0) link_.send(under_way_[turn_], flow::data, rank_of(peer), staged, bytes);
}

void mpi_round::expect(int peer, std::int64_t bytes) {
  if (bytes > 0)
    link_.receive(under_way_[turn_], flow::data, rank_of(peer), link_.slot_of(rank_of(peer), turn_),
                  bytes);
}

void mpi_round::combine(void* out, std::int64_t n) {
  if (n == 0) return;
  if (order_ != nullptr) {
    order_->combine(what, sources(), out, n, state);
  } else {
    what.combine({sources(), size, out, n, what.terms.scale, false, what.reducer.shares});
  }
  if (what.reducer.custom != nullptr) link_.raise_if_failed();
}

void mpi_round::disagree(int with, std::int64_t wanted, std::int64_t got) {
  fault why = doing_;
  why.kind = fault::how::disagree;
  why.culprits.add(with);
  why.expecting_rank = rank;
  why.other = what.terms;
  why.terms.count = wanted;
  why.other.count = got;
  end(why);
}

void mpi_round::end(const fault& why) {
  link_.end(why);
  link_.raise_if_failed();
  why.raise();
}

}  // namespace velo::comm
