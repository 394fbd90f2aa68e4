// A weight in packed form (packed_form.hpp), packed once and multiplied many times.
//
// The form is that of one type and target; targets that multiply alike share it. The memory is the
// caller's. Invariant: products with a packed weight have the bits of products with the plain one.
#pragma once

#include "core/stream/parallel.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/gemm/kernel/target.hpp"

namespace velo::ops {

class packed_matrix {
 public:
  packed_matrix() = default;
  packed_matrix(std::int64_t k, std::int64_t n, element_type type, const gemm_target& target);

  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  element_type type() const { return type_; }
  bool serves(const gemm_target& target) const;  // whether its products read this form
  std::size_t bytes() const;                     // of the memory it needs, 64-byte aligned
  int panel() const;                             // columns of a panel
  // `count` of its columns from `first` on, a multiple of 96: of every form's panels.
  packed_matrix columns(std::int64_t first, std::int64_t count) const;
  void set_memory(void* memory) { words_ = static_cast<std::uint32_t*>(memory); }
  const std::uint32_t* words() const { return words_; }

  // Packs a weight: [k][n], or [n][k] when transposed, `ld` elements between stored rows.
  // Allocates nothing.
  void update(const void* weight, std::int64_t ld, bool transposed, const core::parallel& threads);

  // Reads a column back, for the reference.
  struct column {
    const std::uint32_t* words;
    std::int64_t stride, per_word;

    float operator[](std::int64_t k) const;
  };
  column at(std::int64_t n) const;

 private:
  std::int64_t k_ = 0, n_ = 0;
  element_type type_ = element_type::f32;
  gemm_target target_{core::isa{}, false};
  std::uint32_t* words_ = nullptr;
};

}  // namespace velo::ops
