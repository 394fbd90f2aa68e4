// A fault: how, by which ranks and during which operation a group ended.
//
// A fault is plain data of fixed size, since ranks pass it to each other through shared memory. A
// group has at most one fault, the first. Every later call of every rank fails with it.
#pragma once

#include <cstdint>
#include <string>

#include "comm/operation/operation.hpp"
#include "core/failure.hpp"

namespace velo::comm {

inline constexpr int most_ranks = 1024;  // of one host

// Ranks of a group.
class rank_set {
 public:
  void add(int rank) noexcept { words_[rank / 64] |= std::uint64_t{1} << rank % 64; }
  bool has(int rank) const noexcept { return (words_[rank / 64] >> rank % 64 & 1) != 0; }
  rank_set operator&(const rank_set& other) const noexcept;
  int lowest() const noexcept;  // -1: none
  std::string text() const;     // "rank 2", "ranks 2, 5-7"

 private:
  std::uint64_t words_[most_ranks / 64] = {};
};

struct fault {
  enum class how : std::uint32_t {
    none,
    late,      // did not arrive, or stopped in the middle, within the timeout
    ended,     // the process is gone
    left,      // the group was destroyed there
    aborted,   // velo_group_abort
    disagree,  // another operation, or the same with other terms
    dropped,   // could not carry out its part
    host,      // a function of its host failed
    differ,    // has another result than the others
    corrupt    // its part of shared memory holds a value that no rank writes
  };

  how kind = how::none;
  std::uint64_t sequence = 0;  // of the operation, counted from 1; 0: outside of one
  comm::terms terms;           // of the operation; of the majority if ranks disagree
  comm::terms other;           // of the lowest culprit if ranks disagree
  std::int64_t timeout_ns = 0;
  rank_set culprits;
  // The rank that expected terms.count elements from the culprit, which gives other.count; -1: the
  // ranks do not differ in the count of a block.
  std::int32_t expecting_rank = -1;
  char cause[128] = "";
  // The fault of the group that this subgroup belongs to. The culprits are numbered as in that
  // group.
  bool is_outer = false;
  // The culprits are numbered as in the outermost group, of which all others are parts. part: the
  // label of the part where they were missed; empty in an outermost group without a label.
  bool is_outermost = false;
  char part[32] = "";

  std::string expected() const;
  std::string got() const;
  [[noreturn]] void raise() const;  // VELO_ERR_PEER

  // The majority's terms count as correct; on a tie, those of the lowest rank. No culprits remain
  // if all terms have become equal meanwhile.
  template <class TermsOf>
  void set_disagreement(int ranks, TermsOf&& terms_of);
};

template <class TermsOf>
void fault::set_disagreement(int ranks, TermsOf&& terms_of) {
  const auto signature = [&](int rank) { return terms_of(rank).signature(); };
  int right = 0, most = 0;
  for (int one = 0; one < ranks; ++one) {
    int alike = 0;
    for (int peer = 0; peer < ranks; ++peer) alike += signature(peer) == signature(one);
    if (alike > most) {
      most = alike;
      right = one;
    }
  }
  for (int peer = 0; peer < ranks; ++peer)
    if (signature(peer) != signature(right)) culprits.add(peer);
  kind = how::disagree;
  terms = terms_of(right);
  if (culprits.lowest() >= 0) other = terms_of(culprits.lowest());
}

}  // namespace velo::comm
