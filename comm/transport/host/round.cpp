// The collectives over a host's functions.
#include "comm/transport/host/round.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/collective/slices.hpp"

namespace velo::comm {
namespace {

void copy(const void* from, void* to, std::int64_t bytes) {
  if (bytes > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

void host_round::tell(host_engine& with, const host_opening& mine) {
  copy(&mine, with.in(), sizeof mine);
  with.share(sizeof mine);
}

host_opening host_round::told(const host_engine& by, int rank) {
  host_opening one;
  copy(by.out() + rank * static_cast<std::int64_t>(sizeof one), &one, sizeof one);
  return one;
}

void host_round::run() {
  switch (what_.terms.kind) {
    case collective::barrier:
      return open(0, nullptr, 0);
    case collective::all_reduce:
      return combine(true);
    case collective::reduce:
      return combine(engine_.rank == what_.terms.root);
    case collective::broadcast:
      return broadcast();
    case collective::all_gather:
      return all_gather();
    case collective::reduce_scatter:
      return reduce_scatter();
    case collective::all_to_all:
      return all_to_all();
    case collective::gather:
      return gather();
    case collective::scatter:
      return scatter();
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

void host_round::explain(const host_engine& by, const operation& what, explanation& to) {
  const collective kind = what.terms.kind;
  const bool combines = kind == collective::all_reduce || kind == collective::reduce;
  std::int64_t bytes = what.in_bytes(), step = by.share_room();
  if (kind == collective::broadcast) bytes = what.out_bytes(), step = by.spread_room();
  if (kind == collective::all_gather)
    for (int rank = 0; rank < by.size; ++rank)
      bytes = std::max(bytes, what.out_part(rank).count * what.in_size());
  const bool is_shared = combines || kind == collective::barrier || kind == collective::broadcast ||
                         kind == collective::all_gather;
  if (!is_shared) step = by.piece_room();
  if (kind == collective::scatter) bytes = what.out_bytes();
  if (combines) {
    const bool may = may_be_host_s(by, what.terms);
    to.consider("all_reduce of the host", may,
                may ? "the host combines, unless it declines"
                    : "the host has no all_reduce, or it is custom, scaled or of two dtypes");
    if (may) step = by.room();
  }
  const bool fits = is_shared && bytes <= host_opening::room;
  to.consider("opening", fits,
              !is_shared
                  ? "never of what differs from rank to rank"
                  : std::to_string(bytes) + (fits ? " bytes travel" : " bytes do not fit") +
                        " with what ranks say first, up to " + std::to_string(host_opening::room));
  to.consider("host's functions", true,
              "slices through the group's memory, in each a call of the host");
  if (!to.is_chosen("opening")) to.take_steps(slices_in(bytes, step), step);
}

void host_round::open(std::int64_t most, const void* payload, std::int64_t bytes) {
  host_opening mine;
  mine.terms = what_.terms;
  mine.most = most;
  if (fits(bytes)) copy(payload, mine.payload, bytes);
  caller_.run([mine](host_engine& with) { tell(with, mine); });
  opened_ = true;
  for (int rank = 0; rank < size_; ++rank) openings_.push_back(told(engine_, rank));
  compare();
}

// A rank that has ended the group says so in the place of its opening.
void host_round::compare() const {
  fault why;
  why.sequence = sequence_;
  for (const host_opening& one : openings_) {
    if (one.ended == fault::how::none) continue;
    why.kind = one.ended;
    why.sequence = one.sequence;
    why.terms = one.terms;
    why.other = one.other;
    why.timeout_ns = one.timeout_ns;
    why.culprits = one.culprits;
    core::copy_text(why.cause, sizeof why.cause, one.cause);
    throw why;
  }
  const std::uint64_t agreed = what_.terms.signature();
  const auto agrees = [&](const host_opening& one) { return one.terms.signature() == agreed; };
  if (std::all_of(openings_.begin(), openings_.end(), agrees)) return;
  why.set_disagreement(size_, [this](int rank) { return openings_[at(rank)].terms; });
  throw why;
}

// What terms do not show: all ranks learn of the lowest that found something wrong.
void host_round::agree(bool matches, int with, std::int64_t wanted, std::int64_t got) {
  struct finding {
    std::int64_t wrong, with, wanted, got;
  };
  const finding mine{matches ? 0 : 1, with, wanted, got};
  caller_.run([mine](host_engine& by) {
    copy(&mine, by.in(), sizeof mine);
    by.share(sizeof mine);
  });
  for (int rank = 0; rank < size_; ++rank) {
    finding one;
    copy(from(rank, sizeof one), &one, sizeof one);
    if (one.wrong == 0) continue;
    fault why;
    why.kind = fault::how::disagree;
    why.sequence = sequence_;
    why.terms = why.other = what_.terms;
    why.terms.count = one.wanted;
    why.other.count = one.got;
    why.culprits.add(static_cast<int>(one.with));
    why.found_by = rank;
    throw why;
  }
}

// all_reduce, and reduce, where one rank alone gets the result.
void host_round::combine(bool gets) {
  const std::int64_t bytes = what_.in_bytes(), size = what_.in_size();
  open(0, what_.in, bytes);
  if (combined_by_host(gets)) return;
  std::vector<const void*> sources(at(size_));
  if (fits(bytes)) {
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = openings_[at(rank)].payload;
    if (gets && what_.count > 0)
      what_.combine({sources.data(), size_, what_.out, what_.count, what_.terms.scale, false});
    return;
  }
  const std::int64_t most = engine_.share_room() / size * size;
  for (std::int64_t step = 0; step < slices_in(bytes, most); ++step) {
    const slice s = slice_of(bytes, most, step);
    copy(static_cast<const char*>(what_.in) + s.begin, engine_.in(), s.bytes);
    caller_.run([n = s.bytes](host_engine& by) { by.share(n); });
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = from(rank, s.bytes);
    char* to = static_cast<char*>(what_.out) + s.begin / size * what_.out_size();
    if (gets) what_.combine({sources.data(), size_, to, s.bytes / size, what_.terms.scale, false});
  }
}

bool host_round::may_be_host_s(const host_engine& by, const terms& what) {
  return by.table.all_reduce != nullptr && what.reduction != VELO_REDUCE_CUSTOM &&
         what.scale == 1 && what.in_code == what.out_code && what.in_bits == what.out_bits;
}

// False: the host does not do it, or has no function for it.
bool host_round::combined_by_host(bool gets) {
  const terms t = what_.terms;
  if (!may_be_host_s(engine_, t)) return false;
  const std::int64_t size = what_.in_size(), bytes = what_.in_bytes();
  const std::int64_t most = engine_.room() / size * size;
  for (std::int64_t step = 0; step < slices_in(bytes, most); ++step) {
    const slice s = slice_of(bytes, most, step);
    copy(static_cast<const char*>(what_.in) + s.begin, engine_.in(), s.bytes);
    caller_.run([t, n = s.bytes / size](host_engine& by) { by.all_reduce(t, n); });
    if (engine_.declined && step == 0) return false;
    if (engine_.declined)
      throw host_failure{"all_reduce declined in the middle of a reduction", {}};
    if (gets) copy(engine_.out(), static_cast<char*>(what_.out) + s.begin, s.bytes);
  }
  return true;
}

// Every rank gets all ranks' elements of its part, slice by slice.
void host_round::reduce_scatter() {
  const std::int64_t size = what_.in_size(), unit = engine_.piece_room() / size * size;
  const char* in = static_cast<const char*>(what_.in);
  open(0, nullptr, 0);
  std::int64_t most = 0;
  for (int rank = 0; rank < size_; ++rank) most = std::max(most, what_.in_part(rank).count * size);
  std::vector<const void*> sources(at(size_));
  for (std::int64_t step = 0; step < slices_in(most, unit); ++step) {
    char* place = engine_.in();
    for (int rank = 0; rank < size_; ++rank) {
      const part p = what_.in_part(rank);
      const slice s = slice_of(p.count * size, unit, step);
      copy(in + p.begin * size + s.begin, place, s.bytes);
      place += s.bytes;
      engine_.gives[at(rank)] = s.bytes;
    }
    const slice own = slice_of(what_.in_part(engine_.rank).count * size, unit, step);
    std::fill(engine_.takes.begin(), engine_.takes.end(), own.bytes);
    caller_.run([unit](host_engine& by) { by.trade(unit); });
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = from(rank, own.bytes);
    char* to = static_cast<char*>(what_.out) + own.begin / size * what_.out_size();
    if (own.bytes > 0)
      what_.combine({sources.data(), size_, to, own.bytes / size, what_.terms.scale, false});
  }
}

void host_round::broadcast() {
  char* x = static_cast<char*>(what_.out);
  const std::int64_t bytes = what_.out_bytes(), most = engine_.spread_room();
  const int root = what_.terms.root;
  open(0, x, bytes);
  if (fits(bytes)) return copy(openings_[at(root)].payload, x, bytes);
  for (std::int64_t step = 0; step < slices_in(bytes, most); ++step) {
    const slice s = slice_of(bytes, most, step);
    if (engine_.rank == root) copy(x + s.begin, engine_.in(), s.bytes);
    caller_.run([root, n = s.bytes](host_engine& by) { by.spread(root, n); });
    if (engine_.rank != root) copy(engine_.out(), x + s.begin, s.bytes);
  }
}

// Ranks with less than the largest share what they have, and something behind it.
void host_round::all_gather() {
  const std::int64_t size = what_.in_size(), own = what_.in_bytes(), unit = engine_.share_room();
  const char* in = static_cast<const char*>(what_.in);
  char* out = static_cast<char*>(what_.out);
  open(0, in, own);
  std::int64_t most = 0;
  for (int rank = 0; rank < size_; ++rank) most = std::max(most, what_.out_part(rank).count * size);
  const auto place = [&](int rank) { return out + what_.out_part(rank).begin * size; };
  const auto bytes = [&](int rank) { return what_.out_part(rank).count * size; };
  if (fits(most)) {
    for (int rank = 0; rank < size_; ++rank)
      copy(openings_[at(rank)].payload, place(rank), bytes(rank));
    return;
  }
  for (std::int64_t step = 0; step < slices_in(most, unit); ++step) {
    const slice whole = slice_of(most, unit, step), mine = slice_of(own, unit, step);
    copy(in + mine.begin, engine_.in(), mine.bytes);
    std::memset(engine_.in() + mine.bytes, 0, static_cast<std::size_t>(whole.bytes - mine.bytes));
    caller_.run([n = whole.bytes](host_engine& by) { by.share(n); });
    for (int rank = 0; rank < size_; ++rank) {
      const slice s = slice_of(bytes(rank), unit, step);
      copy(from(rank, whole.bytes), place(rank) + s.begin, s.bytes);
    }
  }
}

// What each rank gives each, where not all know of it: they say first how much it is.
void host_round::move(std::vector<piece> gives, std::vector<piece> takes) {
  std::int64_t most = 0;
  for (const piece& one : gives) most = std::max(most, one.bytes);
  open(most, nullptr, 0);
  for (const host_opening& one : openings_) most = std::max(most, one.most);
  constexpr std::int64_t word = sizeof(std::int64_t);
  for (int rank = 0; rank < size_; ++rank) {
    copy(&gives[at(rank)].bytes, engine_.in() + rank * word, word);
    engine_.gives[at(rank)] = engine_.takes[at(rank)] = word;
  }
  caller_.run([](host_engine& by) { by.trade(word); });
  int other = -1;
  std::int64_t wanted = 0, got = 0;
  for (int rank = size_; rank-- > 0;) {
    std::int64_t said = 0;
    copy(from(rank, word), &said, word);
    if (said == takes[at(rank)].bytes) continue;
    other = rank, wanted = takes[at(rank)].bytes, got = said;
  }
  const std::int64_t element = std::max(what_.in_size(), what_.out_size());
  agree(other < 0, other, wanted / element, got / element);
  const std::int64_t unit = engine_.piece_room();
  for (std::int64_t step = 0; step < slices_in(most, unit); ++step) {
    char* place = engine_.in();
    for (int rank = 0; rank < size_; ++rank) {
      const slice s = slice_of(gives[at(rank)].bytes, unit, step);
      copy(gives[at(rank)].from + s.begin, place, s.bytes);
      place += s.bytes;
      engine_.gives[at(rank)] = s.bytes;
      engine_.takes[at(rank)] = slice_of(takes[at(rank)].bytes, unit, step).bytes;
    }
    caller_.run([unit](host_engine& by) { by.trade(unit); });
    place = engine_.out();
    for (int rank = 0; rank < size_; ++rank) {
      const slice s = slice_of(takes[at(rank)].bytes, unit, step);
      copy(place, takes[at(rank)].to + s.begin, s.bytes);
      place += s.bytes;
    }
  }
}

void host_round::all_to_all() {
  const std::int64_t size = what_.in_size();
  std::vector<piece> gives(at(size_)), takes(at(size_));
  for (int rank = 0; rank < size_; ++rank) {
    const part give = what_.in_part(rank), take = what_.out_part(rank);
    gives[at(rank)] = {static_cast<const char*>(what_.in) + give.begin * size, nullptr,
                       give.count * size};
    takes[at(rank)] = {nullptr, static_cast<char*>(what_.out) + take.begin * size,
                       take.count * size};
  }
  move(std::move(gives), std::move(takes));
}

void host_round::gather() {
  const std::int64_t size = what_.in_size();
  const int root = what_.terms.root;
  std::vector<piece> gives(at(size_)), takes(at(size_));
  gives[at(root)] = {static_cast<const char*>(what_.in), nullptr, what_.count * size};
  for (int rank = 0; engine_.rank == root && rank < size_; ++rank) {
    const part p = what_.out_part(rank);
    takes[at(rank)] = {nullptr, static_cast<char*>(what_.out) + p.begin * size, p.count * size};
  }
  move(std::move(gives), std::move(takes));
}

void host_round::scatter() {
  const std::int64_t size = what_.out_size();
  const int root = what_.terms.root;
  std::vector<piece> gives(at(size_)), takes(at(size_));
  for (int rank = 0; engine_.rank == root && rank < size_; ++rank) {
    const part p = what_.in_part(rank);
    gives[at(rank)] = {static_cast<const char*>(what_.in) + p.begin * size, nullptr,
                       p.count * size};
  }
  takes[at(root)] = {nullptr, static_cast<char*>(what_.out), what_.count * size};
  move(std::move(gives), std::move(takes));
}

}  // namespace velo::comm
