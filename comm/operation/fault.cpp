// The texts of a fault.
#include "comm/operation/fault.hpp"

namespace velo::comm {

rank_set rank_set::operator&(const rank_set& other) const noexcept {
  rank_set both = *this;
  for (int word = 0; word < most_ranks / 64; ++word) both.words_[word] &= other.words_[word];
  return both;
}

int rank_set::lowest() const noexcept {
  for (int rank = 0; rank < most_ranks; ++rank)
    if (has(rank)) return rank;
  return -1;
}

std::string rank_set::text() const {
  std::string all;
  int count = 0;
  for (int first = 0; first < most_ranks; ++first) {
    if (!has(first)) continue;
    int last = first;
    while (last + 1 < most_ranks && has(last + 1)) ++last;
    if (!all.empty()) all += ", ";
    all += std::to_string(first);
    if (last > first) all += (last > first + 1 ? "-" : ", ") + std::to_string(last);
    count += last - first + 1;
    first = last;
  }
  return (count == 1 ? "rank " : "ranks ") + all;
}

std::string fault::expected() const {
  if (kind == how::aborted && sequence == 0) return "a group that was not aborted";
  std::string all = terms.text();
  if (sequence > 0) all += " (operation " + std::to_string(sequence) + ")";
  if (part[0] != 0) all += core::text(" in %s", part);
  if (kind == how::late)
    all += core::text(" within %.6g ms", static_cast<double>(timeout_ns) / 1e6);
  return all;
}

std::string fault::got() const {
  const std::string who = culprits.text();
  switch (kind) {
    case how::late:
      return who + " not there";
    case how::ended:
      return who + " whose process ended";
    case how::left:
      return who + " that left the group";
    case how::aborted:
      return "an abort by " + who;
    case how::disagree:
      return who + " with " + other.text();
    case how::differ:
      return who + " with another result";
    case how::corrupt:
      return who + " with what no rank writes into shared memory";
    case how::host:
      return who + " whose host failed";
    default:
      return who + " that could not do its part";
  }
}

void fault::raise() const {
  core::failure f;
  f.code = VELO_ERR_PEER;
  f.rank = culprits.lowest();
  core::copy_text(f.argument, sizeof f.argument, "group");
  core::copy_text(f.expected, sizeof f.expected, expected().c_str());
  core::copy_text(f.got, sizeof f.got, got().c_str());
  core::copy_text(f.cause, sizeof f.cause, cause);
  throw f;
}

}  // namespace velo::comm
