// The checks of a tensor before its bytes are used.
#include "comm/group/buffer.hpp"

#include <algorithm>
#include <utility>

#include "core/context.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/tensor/check.hpp"

namespace velo::comm {

using core::fail;
using core::text;

buffer buffer_of(const core::context& owner, const velo_tensor* given, const char* argument) {
  if (given == nullptr) fail(VELO_ERR_NULL, argument, "a tensor", "NULL");
  const velo_tensor& t = *given;
  const core::tensor_rule rule{owner.device(), core::any_whole_bytes};
  if (core::is_usual(t, rule) && !core::is_empty(t))
    return {core::data<char>(given), core::numel(t), t.dtype};
  core::check_sizes(t, argument);
  if (core::is_empty(t)) {  // an empty tensor may have any other sizes, and its data is not read
    core::check_dtype(t.dtype, argument, core::any_whole_bytes);
    core::check_device(t.device, owner.device(), argument);
    return {nullptr, 0, t.dtype};
  }
  velo_tensor plain = t;  // strides of sizes of 1 may be any numbers if the tensor is compact
  if (core::countable(t.ndim, t.shape) && core::is_compact(t)) plain.strides = nullptr;
  core::check_tensor(plain, argument, rule);
  return {core::data<char>(given), core::numel(t), t.dtype};
}

blocks blocks_of(const caller& by, const std::int64_t* counts, const std::int64_t* offsets,
                 const block_names& names, const buffer& of, bool apart) {
  if (counts == nullptr) fail(VELO_ERR_NULL, names.counts, text("%d numbers", by.size), "NULL");
  blocks all;
  std::int64_t end = 0;
  for (int rank = 0; rank < by.size; ++rank) {
    const block one{offsets == nullptr ? end : offsets[rank], counts[rank]};
    if (one.count < 0 || one.count > of.count)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", names.counts, rank),
           core::concat("0 to the ", of.count, " elements of the tensor"), core::number(one.count));
    if (one.begin < 0 || one.begin > of.count - one.count)
      fail(VELO_ERR_ARGUMENT,
           text("%s[%d]", offsets == nullptr ? names.counts : names.offsets, rank),
           core::concat("elements within the ", of.count, " of the tensor"),
           core::concat(one.count, " from ", one.begin, " on"));
    end = one.begin + one.count;
    all.push_back(one);
  }
  if (!apart || offsets == nullptr) return all;
  std::vector<int> order(all.size());
  for (int rank = 0; rank < by.size; ++rank) order[core::at(rank)] = rank;
  const auto block_at = [&](int rank) { return all[core::at(rank)]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(block_at(a).begin, block_at(a).count) <
           std::make_pair(block_at(b).begin, block_at(b).count);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const block before = block_at(order[i - 1]), next = block_at(order[i]);
    if (before.begin + before.count > next.begin && next.count > 0)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", names.offsets, order[i]),
           "elements of its own for each rank", text("some of rank %d's", order[i - 1]));
  }
  return all;
}

void refuse_count(const buffer& of, const char* argument, std::int64_t count, const char* why) {
  fail(VELO_ERR_SHAPE, argument, core::concat(count, " elements, ", why), core::number(of.count));
}

}  // namespace velo::comm
