// The object behind a velo_pack: a weight in packed form, in memory of its context.
//
// It is created once for a shape, a dtype and the context's instruction set, and updated in place
// on a stream, without allocation. Invariant: queued products and updates run in stream order, as
// all work does.
#pragma once

#include "core/context.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "ops/gemm/gemm.hpp"
#include "velo/pack.h"

namespace velo::ops {

class weight_pack {
 public:
  weight_pack(core::context& owner, const velo_pack_desc& desc);  // throws SHAPE, DTYPE, MEMORY
  ~weight_pack() { owner_.memory().give(memory_, bytes_); }
  weight_pack(const weight_pack&) = delete;
  weight_pack& operator=(const weight_pack&) = delete;

  const packed_matrix& matrix() const { return matrix_; }
  void update(core::stream& stream, const velo_tensor& weight);  // checks, then runs or queues

 private:
  class queued_update;
  void check(const velo_tensor& weight) const;

  core::context& owner_;
  bool transposed_;
  packed_matrix matrix_;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

}  // namespace velo::ops

template <>
struct velo::core::handle_traits<velo::ops::weight_pack> {
  using handle = velo_pack;
  static constexpr handle_kind& kind = kinds::pack;
};
