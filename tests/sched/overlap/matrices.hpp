// Matrices for tests of products over ranks: drawn, compared by bits, with borders that must stay.
#pragma once

#include <vector>

#include "comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {

// A compact tensor of any shape, filled with numbers that a seed draws from [-1, 1].
class matrix {
 public:
  matrix(velo_dtype dtype, std::vector<std::int64_t> shape, int seed = -1)
      : shape_(std::move(shape)), elements_(dtype, count(), 0) {
    cheap_random draw(static_cast<std::uint32_t>(seed) * 2654435761u + 1);
    for (std::int64_t i = 0; seed >= 0 && i < count(); ++i) {
      const std::uint32_t state = draw();
      elements_.set(i, static_cast<double>(state >> 8) / (1 << 23) - 1);
    }
  }
  std::int64_t count() const {
    std::int64_t all = 1;
    for (const std::int64_t size : shape_) all *= size;
    return all;
  }
  velo_tensor view() const {
    velo_tensor all = elements_.view();
    all.ndim = static_cast<std::int32_t>(shape_.size());
    all.shape = shape_.data();
    return all;
  }
  double operator[](std::int64_t i) const { return elements_.get(i); }
  bool same_bits(const matrix& other) const { return elements_.same_bits(other.elements_); }
  bool borders_kept() const { return elements_.borders_kept(); }

 private:
  std::vector<std::int64_t> shape_;
  elements elements_;
};

}  // namespace velo::testing
