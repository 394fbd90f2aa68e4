// A weight of int8 or int4 in packed form, not transposed: panels of columns over the whole depth,
// so that products read it from its first byte to its last.
//
// The last panel is filled up with zeros. Every instruction set reads this form. The memory is the
// caller's. Invariant: products with a pack have the bits of products with the plain weight [k, n].
// Cost: a byte an element, half of one in int4.
#pragma once

#include "core/round_up.hpp"
#include "core/stream/parallel.hpp"
#include "ops/quant/weight_matrix.hpp"

namespace velo::ops {

class packed_weight {
 public:
  packed_weight(std::int64_t k, std::int64_t n, bool int4) : k_(k), n_(n), int4_(int4) {}

  // Bytes of the pack; its memory is 64-byte aligned.
  std::size_t bytes() const {
    return core::round_up(static_cast<std::size_t>(panels() * k_ * row_bytes()), std::size_t{64});
  }
  void set_memory(void* memory) { data_ = static_cast<std::uint8_t*>(memory); }
  const std::uint8_t* data() const { return data_; }

  // Packs a weight: [k][n], or [n][k] when transposed, `ld` elements between stored rows.
  // Allocates nothing.
  void update(const void* weight, std::int64_t ld, bool transposed,
              const core::parallel& threads) const;

 private:
  struct part;

  std::int64_t panels() const { return core::ceil_div(n_, pack_columns); }
  std::int64_t row_bytes() const { return int4_ ? pack_columns / 2 : pack_columns; }

  std::int64_t k_, n_;
  bool int4_;
  std::uint8_t* data_ = nullptr;
};

}  // namespace velo::ops
