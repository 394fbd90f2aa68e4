// The checks of a call's list, and the numbers of its parts.
#include "sched/parallel/tensor/token_cut.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/text/text.hpp"

namespace velo::sched {
namespace {

using core::concat;
using core::fail;
using core::number;

void check_token_rows(const velo_ints& list, bool is_cut, int ranks, std::int64_t rows) {
  if (!is_cut)
    fail(VELO_ERR_ARGUMENT, "args.token_rows", "NULL without sequence_parallel", "a list");
  check_list(list, ranks, "args.token_rows");
  if (const std::int64_t sum = sum_of(list); sum != rows)
    fail(VELO_ERR_ARGUMENT, "args.token_rows",
         concat("a sum of ", rows, ", the first dimension of indices"), number(sum));
}

}  // namespace

token_cut token_cut::of(const velo_tensor& indices, const velo_ints* list, bool is_cut, int rank,
                        int ranks) {
  const std::int64_t rows = indices.ndim > 0 ? indices.shape[0] : 1;
  token_cut cut{};
  cut.parts = is_cut ? ranks : 1;
  cut.own_part = cut.parts > 1 ? rank : 0;
  if (list != nullptr)
    check_token_rows(*list, is_cut, ranks, rows);
  else if (rows % cut.parts != 0)
    fail(VELO_ERR_SHAPE, "args.indices.shape",
         concat("a first dimension divisible by ", cut.parts, ", or args.token_rows"),
         number(rows));
  cut.own_rows = list != nullptr ? list->data[cut.own_part] : rows / cut.parts;
  cut.row_tokens = 1;
  for (int i = 1; i < indices.ndim; ++i) cut.row_tokens *= indices.shape[i];
  cut.tokens = rows * cut.row_tokens, cut.part_tokens = cut.own_rows * cut.row_tokens;
  return cut;
}

row_range piece::in(const row_range& part) const {
  const std::int64_t first = std::min(begin, part.count);
  return {part.begin + first, std::min(end, part.count) - first};
}

}  // namespace velo::sched
