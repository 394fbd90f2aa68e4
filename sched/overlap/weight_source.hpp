// A weight with a pack beside it, as the products of a call read it.
//
// A pack holds the matrix [k][n] on the right of the product. A product reads the weight itself
// where there is no pack, at level 0, and where the pack has the form of another instruction set
// than the product's. Both sources give the same bits, so some ranks of a call may have packs and
// others none. The call resolves its pack when it is queued and again when it runs, since the pack
// may be destroyed in between.
#pragma once

#include <optional>

#include "ops/matmul/weight_operand.hpp"
#include "sched/overlap/product.hpp"

namespace velo::sched {

// Refuses a pack that is not of rows x columns and `dtype`. packed: may be nullptr.
void require_pack(velo_pack packed, velo_dtype dtype, std::int64_t rows, std::int64_t columns);

// Keeps the pack in use while it lives. Throws HANDLE for a pack that has been destroyed; made in
// the group's turn, so that no peer waits for the call.
class weight_source {
 public:
  weight_source(const velo_tensor& weight, velo_pack packed, overlap_kernel::way how,
                core::isa isa);
  weight_source(const weight_source&) = delete;

  // Gives a product its right side, but for ldb and transpose_b, which are those of the weight.
  void set(ops::gemm_problem& product) const {
    product.b = plain_;
    product.packed_b = packed_;
  }

 private:
  const void* const plain_;
  std::optional<ops::weight_in_use> pack_;
  const ops::packed_matrix* packed_ = nullptr;
};

}  // namespace velo::sched
