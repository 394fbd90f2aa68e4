// V-Min: the least memory of all, a third of 1F1B's, for balanced costs alone.
//
// A micro-batch goes down the ranks and up, twice, in one slot a rank; where P is a multiple of 3,
// two slots are left between, so that no two actions want the same slot. At most floor((P + 4) / 3)
// micro-batches are held. Where costs are not equal the short lifespans leave nothing to wait
// behind.
#include "sched/pipeline/order/building_block.hpp"

namespace velo::sched {

schedule make_vmin(const request& wanted) {
  const std::int64_t ranks = wanted.ranks, apart = ranks % 3 == 0 ? 2 : 0;
  std::vector<block> blocks;
  for (std::int64_t r = 0; r < ranks; ++r)
    blocks.push_back({r, 2 * ranks - 1 - r, 2 * ranks + apart + r, 4 * ranks + apart - 1 - r});
  return repeat_block(wanted, blocks);
}

}  // namespace velo::sched
