// How a rank gets its part in one sharding from what ranks have in another.
//
// A rank takes the elements that it has itself, then from the next rank those of the rest that this
// one has, and so on around, so that ranks with the same needs ask different ranks. Elements that
// are left in the end belong to no rank. Cost: the ranks, times the pieces of both parts.
#include "comm/sharding/sharding.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::comm {

using core::concat;
using core::fail;
using core::text;

namespace {

std::vector<std::int64_t> offset(const std::vector<std::int64_t>& at, const box& from,
                                 const box& to) {
  std::vector<std::int64_t> moved_at = at;
  for (std::size_t d = 0; d < at.size(); ++d) moved_at[d] += to[d].begin - from[d].begin;
  return moved_at;
}

// Takes from `left`, the rest of a rank's part, what a source has.
void take(std::vector<piece>& left, std::int64_t source, const std::vector<piece>& of_source,
          std::vector<sharding_move>& to) {
  for (const piece& has : of_source) {
    std::vector<piece> rest;
    for (const piece& wanted : left) {
      const box both = intersection(wanted.whole, has.whole);
      if (is_empty(both)) {
        rest.push_back(wanted);
        continue;
      }
      to.push_back(
          {source, both, offset(has.at, has.whole, both), offset(wanted.at, wanted.whole, both)});
      for (box& one : difference(wanted.whole, both)) {
        std::vector<std::int64_t> at = offset(wanted.at, wanted.whole, one);
        rest.push_back({std::move(one), std::move(at), wanted.copies});
      }
    }
    left = std::move(rest);
  }
}

}  // namespace

std::vector<piece> sharding::content_of(std::int64_t index, std::int64_t rank,
                                        velo_sharding_content content) const {
  const part own = parameters_[core::at(index)].part_of(rank);
  std::vector<piece> all;
  for (std::int64_t i = 0; i < own.pieces(); ++i) all.push_back(own.at(i));
  if (content == VELO_SHARDING_PARTS) return all;
  std::vector<piece> updated;
  for (const box& local : boxes_of(range(index, rank), own.shape())) {
    for (const piece& one : all) {
      std::vector<std::int64_t> by;  // from the rank's own tensor to the whole
      for (std::size_t d = 0; d < one.at.size(); ++d) by.push_back(one.whole[d].begin - one.at[d]);
      box both = intersection(moved(local, by), one.whole);
      if (is_empty(both)) continue;
      std::vector<std::int64_t> at = offset(one.at, one.whole, both);
      updated.push_back({std::move(both), std::move(at), one.copies});
    }
  }
  return updated;
}

std::vector<sharding_move> sharding::transfer(const sharding& to, std::int64_t index,
                                              std::int64_t rank,
                                              velo_sharding_content content) const {
  const parameter& wanted = to.at(index);
  const std::int64_t here = find(wanted.name());
  if (here < 0) fail(VELO_ERR_ARGUMENT, "from", concat("a parameter ", wanted.name()), "none");
  if (parameters_[core::at(here)].shape() != wanted.shape())
    fail(VELO_ERR_ARGUMENT, "from", concat("the shape of ", wanted.name(), " as in `to`"),
         "another");
  std::vector<piece> left = to.content_of(index, rank, content);
  std::vector<sharding_move> moves;
  const std::int64_t ranks = job_.ranks();
  for (std::int64_t i = 0; i < ranks && !left.empty(); ++i) {
    const std::int64_t source = (rank + i) % ranks;
    take(left, source, content_of(here, source, content), moves);
  }
  if (!left.empty()) {
    text at;
    for (const span& s : left.front().whole)
      at = concat(at, at.buffer[0] == 0 ? "" : ", ", s.begin);
    fail(VELO_ERR_ARGUMENT, "from",
         concat("a rank that holds element [", at, "] of ", wanted.name()), "none");
  }
  return moves;
}

}  // namespace velo::comm
