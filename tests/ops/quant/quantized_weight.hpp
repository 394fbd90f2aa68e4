// Random quantized weights in tests, and their values in double.
#pragma once

#include "tests/ops/operator_testing.hpp"
#include "tests/ops/quant/integers.hpp"

namespace velo::testing {

struct weight_form {
  bool int4 = false, transposed = false, offset = false, bias = false;
  std::int64_t group = 0;  // 0: scales by channel
  double x_size = 1;
};

class quantized_weight {
 public:
  // Without a dimension for one expert.
  quantized_weight(std::int64_t experts, std::int64_t k_, std::int64_t n_, const weight_form& f)
      : k(k_),
        n(n_),
        form_(f),
        groups_(f.group == 0 ? 1 : k_ / f.group),
        weight_(shape(experts, f.transposed ? n_ : k_, f.transposed ? k_ : n_, f.int4)),
        pairs_(shape(experts, f.transposed ? n_ : k_, (f.transposed ? k_ : n_) / 2, !f.int4)),
        scale_(scale_shape(experts)),
        offset_(scale_shape(experts)) {
    cheap_random64 draw(static_cast<std::uint64_t>(k * 31 + n));
    for (std::size_t i = 0; i < weight_.size(); ++i)
      weight_[i] = static_cast<std::int8_t>(draw() >> 20);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      pairs_[i] = static_cast<std::uint8_t>(draw() >> 20);
    scale_.fill(5, 0.1), offset_.fill(6, 20);
  }

  const std::int64_t k, n;

  const velo_tensor* weight() { return form_.int4 ? pairs_.tensor() : weight_.tensor(); }
  const velo_tensor* scale() { return scale_.tensor(); }
  const velo_tensor* offset() { return form_.offset ? offset_.tensor() : nullptr; }

  double at(std::int64_t expert, std::int64_t row, std::int64_t column) const {
    const std::int64_t i =
        expert * k * n + (form_.transposed ? column * k + row : row * n + column);
    const std::int64_t group = form_.group == 0 ? 0 : row / form_.group;
    const auto j = static_cast<std::size_t>((expert * groups_ + group) * n + column);
    const double integer =
        form_.int4 ? int4_at(pairs_.data(), i) : weight_.data()[static_cast<std::size_t>(i)];
    return (integer + (form_.offset ? offset_.at(j) : 0)) * scale_.at(j);
  }

 private:
  static std::vector<std::int64_t> shape(std::int64_t experts, std::int64_t a, std::int64_t b,
                                         bool unused) {
    if (unused) return {0};
    return experts == 1 ? std::vector<std::int64_t>{a, b}
                        : std::vector<std::int64_t>{experts, a, b};
  }
  std::vector<std::int64_t> scale_shape(std::int64_t experts) const {
    std::vector<std::int64_t> sizes;
    if (experts != 1) sizes.push_back(experts);
    if (form_.group != 0) sizes.push_back(groups_);
    sizes.push_back(n);
    return sizes;
  }

  const weight_form form_;
  const std::int64_t groups_;
  array<std::int8_t> weight_;
  array<std::uint8_t> pairs_;
  array<float> scale_, offset_;
};

}  // namespace velo::testing
