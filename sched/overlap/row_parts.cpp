// Parts of rows, and the checks of a call's list.
#include "sched/overlap/row_parts.hpp"

#include <algorithm>

#include "comm/operation/terms.hpp"
#include "core/failure.hpp"
#include "core/text/text.hpp"

namespace velo::sched {

using core::concat;
using core::fail;
using core::number;

row_parts::row_parts(const std::int64_t* list, int ranks, std::int64_t unit)
    : ranks_(ranks), unit_(unit), list_(list) {
  for (int r = 0; r < ranks; ++r) rows_ += list[r] * unit;
}

row_range row_parts::of(int rank) const {
  if (list_ == nullptr) {
    const std::int64_t begin = std::min(rank * each_, rows_);
    return {begin, std::min(each_, rows_ - begin)};
  }
  std::int64_t before = 0;
  for (int r = 0; r < rank; ++r) before += list_[r];
  return {before * unit_, list_[rank] * unit_};
}

int row_parts::rank_of(std::int64_t row) const {
  if (list_ == nullptr) return static_cast<int>(row / each_);
  int rank = 0;
  for (std::int64_t end = list_[0] * unit_; row >= end; end += list_[rank] * unit_) ++rank;
  return rank;
}

std::int64_t row_parts::most() const {
  std::int64_t most = 0;
  for (int r = 0; r < ranks_; ++r) most = std::max(most, of(r).count);
  return most;
}

void check_list(const velo_ints& list, int ranks, const char* argument, const char* what) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (list.count != ranks)
    fail(VELO_ERR_ARGUMENT, concat(argument, ".count"), number(ranks), number(list.count));
  for (std::int64_t r = 0; r < list.count; ++r)
    if (list.data[r] < 0 || list.data[r] > most)
      fail(VELO_ERR_ARGUMENT, concat(argument, "[", r, "]"), concat(what, " from 0 to 2^40"),
           number(list.data[r]));
}

std::int64_t sum_of(const velo_ints& list) {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < list.count; ++r) sum += list.data[r];
  return sum;
}

std::uint64_t hash_of(const velo_ints& list) {
  std::uint64_t hash = 1;
  for (std::int64_t r = 0; r < list.count; ++r)
    hash = comm::mixed(hash + static_cast<std::uint64_t>(list.data[r]) + 1);
  return hash | 1;
}

}  // namespace velo::sched
