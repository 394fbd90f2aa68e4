// The object behind a velo_pack: a weight, or one of each expert, in packed form, in memory of its
// context.
//
// It is created once for a shape, a dtype and the context's instruction set, as zeros, and updated
// in place on a stream, without allocation. Its matrices lie one behind the other. Invariant:
// queued products and updates run in stream order, as all work does.
#pragma once

#include <variant>

#include "core/context.hpp"
#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/quant/packed_integers.hpp"
#include "ops/quant/packed_weight.hpp"
#include "velo/pack.h"

namespace velo::ops {

class weight_pack {
 public:
  weight_pack(core::context& owner, const velo_pack_desc& desc);  // throws SHAPE, DTYPE, MEMORY
  ~weight_pack() { owner_.memory().give(memory_, bytes_); }
  weight_pack(const weight_pack&) = delete;
  weight_pack& operator=(const weight_pack&) = delete;

  velo_dtype dtype() const { return dtype_; }
  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  std::int64_t count() const { return count_; }  // 0: one matrix, without a dimension of experts
  bool weight_only() const { return std::holds_alternative<packed_weight>(form_); }
  // A matrix: packed_matrix of a floating-point dtype, packed_weight for weight_only,
  // packed_integers of int8 else.
  template <class Form>
  Form matrix(std::int64_t expert) const {
    return placed(std::get<Form>(form_), expert);
  }
  // Whether its form is that of these kernels.
  template <class Form, class Kernels>
  bool serves(const Kernels& kernels) const {
    return std::get<Form>(form_).serves(kernels);
  }

  // Whether every element is 0, or finite and of a magnitude from `least` to `most`. Reads the pack
  // element by element.
  bool is_within(double least, double most) const;

  void update(core::stream& stream, const velo_tensor& weight);  // checks, then runs or queues

 private:
  class queued_update;
  struct source {
    const void* data;
    std::int64_t ld, step;  // elements between rows, and between matrices
  };

  template <class Form>
  Form placed(Form one, std::int64_t expert) const {
    one.set_memory(static_cast<char*>(memory_) + static_cast<std::size_t>(expert) * one.bytes());
    return one;
  }
  void check(const velo_tensor& weight) const;
  void pack(const source& from, const core::parallel& threads) const;

  core::context& owner_;
  velo_dtype dtype_;
  bool transposed_;
  std::int64_t k_, n_, count_;
  std::variant<packed_matrix, packed_integers, packed_weight>
      form_;  // of one matrix, without its memory
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

}  // namespace velo::ops

template <>
struct velo::core::handle_traits<velo::ops::weight_pack> {
  using handle = velo_pack;
  static constexpr handle_kind& kind = kinds::pack;
};
