// A weight of int8 in packed form: panels of columns over the whole depth as the kernels of integer
// products read them (integer_product.hpp), packed once and multiplied many times.
//
// A panel is followed by the sums that its columns begin with. The form is that of one instruction
// set; the reference's, words of quads without such sums, is that of contexts without vectors. The
// memory is the caller's. Cost: a byte an element, two where the instruction set multiplies pairs
// of int16.
#pragma once

#include "core/stream/parallel.hpp"
#include "ops/quant/integer_product.hpp"

namespace velo::ops {

class packed_integers {
 public:
  packed_integers(std::int64_t k, std::int64_t n, core::isa isa);

  // Whether the kernels read this form; the reference reads every form, element by element.
  bool serves(const integer_product_kernels& kernels) const { return &kernels == kernels_; }
  std::size_t bytes() const;  // of the memory it needs, 64-byte aligned
  void set_memory(void* memory) { words_ = static_cast<std::uint32_t*>(memory); }

  const std::uint32_t* panel(std::int64_t q) const { return words_ + q * panel_step(); }
  const std::int32_t* start(std::int64_t q) const {
    return reinterpret_cast<const std::int32_t*>(panel(q) + panel_words());
  }
  std::int8_t at(std::int64_t k, std::int64_t n) const;

  // Packs a weight: [k][n], or [n][k] when transposed, `ld` elements between stored rows.
  // Allocates nothing.
  void update(const void* weight, std::int64_t ld, bool transposed, const core::parallel& threads);

 private:
  std::int64_t padded_k() const;
  std::int64_t panel_words() const;
  std::int64_t panel_step() const { return panel_words() + integer_columns; }

  std::int64_t k_, n_;
  const integer_product_kernels* kernels_;
  std::uint32_t* words_ = nullptr;
};

}  // namespace velo::ops
