// The checks of a list of groups.
#include "ops/matmul/group_list.hpp"

#include "ops/operator/output_shapes.hpp"

namespace velo::ops {
namespace {

using core::fail;

// Walks the list; `begin(i, at)` is called with the beginning of each group.
template <class Begin>
void walk(const std::int64_t* list, std::int64_t groups, bool counts, std::int64_t total,
          const char* field, const Begin& begin) {
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < groups; ++i) {
    begin(i, at);
    const std::int64_t value = list[i];
    if (counts ? value < 0 || value > total - at : value < at || value > total) {
      fail(VELO_ERR_ARGUMENT, core::text("args.%s", field),
           counts ? core::concat("counts from 0 whose sum is ", total)
                  : core::concat("ends that never decrease, the last ", total),
           core::concat(value, " in element ", i));
    }
    at = counts ? at + value : value;
  }
  if (at != total) {
    fail(VELO_ERR_ARGUMENT, core::text("args.%s", field),
         core::concat(counts ? "a sum of " : "a last value of ", total), core::number(at));
  }
}

}  // namespace

std::int64_t group_list::require(std::int64_t total) const {
  if (tensor != nullptr) {
    if (ints != nullptr)
      fail(VELO_ERR_ARGUMENT, "args.group_list", "NULL beside group_list_tensor", "a list");
    require_rank(*tensor, "group_list_tensor", 1, 1);
    return tensor->shape[0];
  }
  if (ints == nullptr)
    fail(VELO_ERR_NULL, "args.group_list", "a list, or group_list_tensor", "NULL");
  walk(ints->data, ints->count, counts, total, "group_list", [](std::int64_t, std::int64_t) {});
  return ints->count;
}

void require_a_matrix_each(std::int64_t groups, std::int64_t weights, const char* field) {
  if (groups == weights) return;
  fail(VELO_ERR_SHAPE, core::text("args.%s.shape", field),
       core::concat("a matrix for each of ", groups, " groups"), core::number(weights));
}

const std::int64_t* group_list::bounds(std::int64_t total, core::arena& scratch) const {
  const std::int64_t groups = tensor != nullptr ? tensor->shape[0] : ints->count;
  const auto* list = tensor != nullptr ? data<const std::int64_t>(tensor) : ints->data;
  auto* all = scratch.take<std::int64_t>(static_cast<std::size_t>(groups) + 1);
  walk(list, groups, counts, total, tensor != nullptr ? "group_list_tensor" : "group_list",
       [&](std::int64_t i, std::int64_t at) { all[i] = at; });
  all[groups] = total;
  return all;
}

}  // namespace velo::ops
