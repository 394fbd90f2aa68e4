// The rounds of a group over a host's functions.
#include "comm/transport/host/round.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/pattern/slices.hpp"
#include "comm/transport/round.hpp"
#include "core/index.hpp"

namespace velo::comm {
namespace {

using core::at;

void copy(const void* from, void* to, std::int64_t bytes) {
  if (bytes > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// How the host moves the data of a collective: an all-gather (share), a broadcast from the root
// (spread), or an all-to-all of blocks (trade).
enum class carriage { share, spread, trade };

carriage carriage_of(const collective_traits& traits) {
  if (traits.in == layout::blocks) return carriage::trade;
  if (traits.root == root_role::gives) return carriage::spread;
  return traits.root == root_role::takes && !traits.reduces ? carriage::trade : carriage::share;
}

}  // namespace

void host_round::share_opening(host_engine& with, const host_opening& mine) {
  copy(&mine, with.in(), sizeof mine);
  with.share(sizeof mine);
}

host_opening host_round::opening_from(const host_engine& by, int rank) {
  host_opening one;
  copy(by.out() + rank * static_cast<std::int64_t>(sizeof one), &one, sizeof one);
  return one;
}

void host_round::run() {
  carry_out(*this, what_.traits());
}

void host_round::explain(const host_engine& by, const operation& what, explanation& to) {
  const collective_traits& traits = what.traits();
  const comm::pattern pattern = what.pattern(by.rank, by.size);
  const bool combines = traits.reduces && traits.in == layout::whole;
  const carriage how = carriage_of(traits);
  std::int64_t bytes = what.in_bytes();
  if (traits.in == layout::whole && traits.out == layout::blocks && how == carriage::share)
    bytes = pattern.longest() * what.in_size();
  if (traits.root == root_role::gives) bytes = what.out_bytes();
  std::int64_t step = how == carriage::share    ? by.share_room()
                      : how == carriage::spread ? by.spread_room()
                                                : by.piece_room();
  if (combines) {
    const bool may = host_may_combine(by, what.terms);
    to.consider("all_reduce of the host", may,
                may ? "the host combines, unless it declines"
                    : "the host has no all_reduce, or it is custom, scaled or of two dtypes");
    if (may) step = by.room();
  }
  const bool fits = how != carriage::trade && bytes <= host_opening::room;
  to.consider("opening", fits,
              how == carriage::trade
                  ? "never of what differs from rank to rank"
                  : std::to_string(bytes) + (fits ? " bytes travel" : " bytes do not fit") +
                        " with what ranks say first, up to " + std::to_string(host_opening::room));
  to.consider("host's functions", true,
              "slices through the group's memory, in each a call of the host");
  if (!to.is_chosen("opening")) to.take_steps(slices_in(bytes, step), step);
}

void host_round::open(std::int64_t longest, const void* payload, std::int64_t bytes) {
  host_opening mine;
  mine.terms = what_.terms;
  mine.longest = longest;
  if (fits(bytes)) copy(payload, mine.payload, bytes);
  caller_.run([mine](host_engine& with) { share_opening(with, mine); });
  opened_ = true;
  for (int rank = 0; rank < size_; ++rank) openings_.push_back(opening_from(engine_, rank));
  compare();
}

// A rank that has ended the group sends its fault in place of its opening.
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

// Compares what the terms do not show. All ranks learn of the lowest rank that found a mismatch.
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
    copy(received(rank, sizeof one), &one, sizeof one);
    if (one.wrong == 0) continue;
    fault why;
    why.kind = fault::how::disagree;
    why.sequence = sequence_;
    why.terms = why.other = what_.terms;
    why.terms.count = one.wanted;
    why.other.count = one.got;
    why.culprits.add(static_cast<int>(one.with));
    why.expecting_rank = rank;
    throw why;
  }
}

void host_round::synchronize() {
  open(0, nullptr, 0);
}

void host_round::reduce_whole() {
  const std::int64_t bytes = what_.in_bytes(), size = what_.in_size();
  const bool gets = pattern_.takes_result();
  open(0, what_.in, bytes);
  if (combined_by_host()) return;
  std::vector<const void*> sources(at(size_));
  if (fits(bytes)) {
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = openings_[at(rank)].payload;
    if (gets && what_.count > 0)
      what_.combine({sources.data(), size_, what_.out, what_.count, what_.terms.scale, false});
    return;
  }
  const std::int64_t unit = engine_.share_room() / size * size;
  for (std::int64_t step = 0; step < slices_in(bytes, unit); ++step) {
    const slice s = slice_of(bytes, unit, step);
    copy(static_cast<const char*>(what_.in) + s.begin, engine_.in(), s.bytes);
    caller_.run([n = s.bytes](host_engine& by) { by.share(n); });
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = received(rank, s.bytes);
    char* to = static_cast<char*>(what_.out) + s.begin / size * what_.out_size();
    if (gets) what_.combine({sources.data(), size_, to, s.bytes / size, what_.terms.scale, false});
  }
}

bool host_round::host_may_combine(const host_engine& by, const terms& what) {
  return by.table.all_reduce != nullptr && what.reduction != VELO_REDUCE_CUSTOM &&
         what.scale == 1 && what.in_code == what.out_code && what.in_bits == what.out_bits;
}

// Returns false if the host declines, or has no function for this reduction.
bool host_round::combined_by_host() {
  const terms t = what_.terms;
  if (!host_may_combine(engine_, t)) return false;
  const std::int64_t size = what_.in_size(), bytes = what_.in_bytes();
  const std::int64_t unit = engine_.room() / size * size;
  for (std::int64_t step = 0; step < slices_in(bytes, unit); ++step) {
    const slice s = slice_of(bytes, unit, step);
    copy(static_cast<const char*>(what_.in) + s.begin, engine_.in(), s.bytes);
    caller_.run([t, n = s.bytes / size](host_engine& by) { by.all_reduce(t, n); });
    if (engine_.declined && step == 0) return false;
    if (engine_.declined)
      throw host_failure{"all_reduce declined in the middle of a reduction", {}};
    if (pattern_.takes_result())
      copy(engine_.out(), static_cast<char*>(what_.out) + s.begin, s.bytes);
  }
  return true;
}

// Copies a slice of each rank's block into the engine's memory, one after the other.
void host_round::stage_gives(std::int64_t unit, std::int64_t step) {
  char* place = engine_.in();
  const char* in = static_cast<const char*>(what_.in);
  const std::int64_t size = what_.in_size();
  for (int rank = 0; rank < size_; ++rank) {
    const block b = pattern_.gives(rank);
    const slice s = slice_of(b.count * size, unit, step);
    copy(in + b.begin * size + s.begin, place, s.bytes);
    place += s.bytes;
    engine_.gives[at(rank)] = s.bytes;
  }
}

// Every rank gets all ranks' elements of its block, slice by slice, and combines them.
void host_round::reduce_blocks() {
  const std::int64_t size = what_.in_size(), unit = engine_.piece_room() / size * size;
  open(0, nullptr, 0);
  std::vector<const void*> sources(at(size_));
  const std::int64_t mine = pattern_.gives(engine_.rank).count * size;
  for (std::int64_t step = 0; step < slices_in(pattern_.longest() * size, unit); ++step) {
    stage_gives(unit, step);
    const slice own = slice_of(mine, unit, step);
    std::fill(engine_.takes.begin(), engine_.takes.end(), own.bytes);
    caller_.run([unit](host_engine& by) { by.trade(unit); });
    for (int rank = 0; rank < size_; ++rank) sources[at(rank)] = received(rank, own.bytes);
    char* to = static_cast<char*>(what_.out) + own.begin / size * what_.out_size();
    if (own.bytes > 0)
      what_.combine({sources.data(), size_, to, own.bytes / size, what_.terms.scale, false});
  }
}

void host_round::move_blocks() {
  switch (carriage_of(pattern_.traits)) {
    case carriage::spread:
      return spread_from_root();
    case carriage::share:
      return share_with_all();
    case carriage::trade:
      return trade_blocks();
  }
}

// The root sends every rank the same elements.
void host_round::spread_from_root() {
  const int root = what_.terms.root;
  const bool gives = engine_.rank == root;
  const std::int64_t bytes = what_.out_bytes(), unit = engine_.spread_room();
  open(0, what_.in, bytes);
  if (fits(bytes)) return copy(openings_[at(root)].payload, what_.out, bytes);
  for (std::int64_t step = 0; step < slices_in(bytes, unit); ++step) {
    const slice s = slice_of(bytes, unit, step);
    if (gives) copy(given_to(root) + s.begin, engine_.in(), s.bytes);
    caller_.run([root, n = s.bytes](host_engine& by) { by.spread(root, n); });
    if (!gives) copy(engine_.out(), taken_from(root) + s.begin, s.bytes);
  }
}

// Every rank sends all ranks the same elements. A rank whose block is shorter than the longest pads
// it with zeros.
void host_round::share_with_all() {
  const std::int64_t own = what_.in_bytes(), unit = engine_.share_room();
  const char* in = static_cast<const char*>(what_.in);
  open(0, in, own);
  const std::int64_t longest = pattern_.longest() * what_.in_size();
  if (fits(longest)) {
    for (int rank = 0; rank < size_; ++rank)
      copy(openings_[at(rank)].payload, taken_from(rank), bytes_from(rank));
    return;
  }
  for (std::int64_t step = 0; step < slices_in(longest, unit); ++step) {
    const slice whole = slice_of(longest, unit, step), mine = slice_of(own, unit, step);
    copy(in + mine.begin, engine_.in(), mine.bytes);
    std::memset(engine_.in() + mine.bytes, 0, static_cast<std::size_t>(whole.bytes - mine.bytes));
    caller_.run([n = whole.bytes](host_engine& by) { by.share(n); });
    for (int rank = 0; rank < size_; ++rank) {
      const slice s = slice_of(bytes_from(rank), unit, step);
      copy(received(rank, whole.bytes), taken_from(rank) + s.begin, s.bytes);
    }
  }
}

// Opens a round in which only the two ranks of a block know its size. Compares the sizes that peers
// send with those that this rank expects. Returns the bytes of the longest block of all ranks.
std::int64_t host_round::agree_on_blocks() {
  std::int64_t longest = 0;
  for (int rank = 0; rank < size_; ++rank) longest = std::max(longest, bytes_to(rank));
  open(longest, nullptr, 0);
  for (const host_opening& one : openings_) longest = std::max(longest, one.longest);
  constexpr std::int64_t word = sizeof(std::int64_t);
  for (int rank = 0; rank < size_; ++rank) {
    const std::int64_t bytes = bytes_to(rank);
    copy(&bytes, engine_.in() + rank * word, word);
    engine_.gives[at(rank)] = engine_.takes[at(rank)] = word;
  }
  caller_.run([](host_engine& by) { by.trade(word); });
  int other = -1;
  std::int64_t wanted = 0, got = 0;
  for (int rank = size_; rank-- > 0;) {
    std::int64_t given = 0;
    copy(received(rank, word), &given, word);
    if (given == bytes_from(rank)) continue;
    other = rank;
    wanted = bytes_from(rank);
    got = given;
  }
  agree(other < 0, other, wanted / what_.in_size(), got / what_.in_size());
  return longest;
}

void host_round::trade_blocks() {
  const std::int64_t longest = agree_on_blocks(), unit = engine_.piece_room();
  for (std::int64_t step = 0; step < slices_in(longest, unit); ++step) {
    stage_gives(unit, step);
    for (int rank = 0; rank < size_; ++rank)
      engine_.takes[at(rank)] = slice_of(bytes_from(rank), unit, step).bytes;
    caller_.run([unit](host_engine& by) { by.trade(unit); });
    const char* place = engine_.out();
    for (int rank = 0; rank < size_; ++rank) {
      const slice s = slice_of(bytes_from(rank), unit, step);
      copy(place, taken_from(rank) + s.begin, s.bytes);
      place += s.bytes;
    }
  }
}

}  // namespace velo::comm
