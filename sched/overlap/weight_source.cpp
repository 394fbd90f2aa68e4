// The check of a pack, and its choice in a running call.
#include "sched/overlap/weight_source.hpp"

namespace velo::sched {

void require_pack(velo_pack packed, velo_dtype dtype, std::int64_t rows, std::int64_t columns) {
  if (packed == nullptr) return;
  ops::gemm_problem one;
  one.k = rows;
  ops::weight_operand{nullptr, packed, false, "weight", ""}.require(dtype, one);
  if (one.n != columns)
    core::fail(VELO_ERR_SHAPE, "args.packed", core::concat("a pack of ", columns, " columns"),
               core::concat("one of ", one.n));
}

weight_source::weight_source(const velo_tensor& weight, velo_pack packed, overlap_kernel::way how,
                             core::isa isa)
    : plain_(ops::data<const void>(&weight)) {
  if (packed == nullptr || how == overlap_kernel::way::reference) return;
  pack_.emplace(ops::weight_operand{nullptr, packed, false, "weight", ""});
  if (pack_->matrix()->serves(isa)) packed_ = pack_->matrix();
}

}  // namespace velo::sched
