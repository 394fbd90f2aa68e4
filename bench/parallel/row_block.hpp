// Some rows of a sequence, [1, rows, heads, elements of a head], or some columns of them, from
// `first` on. Their numbers depend on where they lie in the sequence, so that a rank's share has
// those of the whole.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "velo/velo.h"

namespace velo::bench {

using row_list = std::vector<std::int64_t>;

class row_block {
 public:
  row_block(dtype type, const row_list& rows, std::int64_t heads, std::int64_t width, int seed,
            std::int64_t first = 0)
      : type_(type),
        rows_(rows),
        first_(first),
        shape_{1, static_cast<std::int64_t>(rows.size()), heads, width},
        flat_{shape_[1], 1, heads * width},
        plane_{shape_[1], flat_[2]},
        bytes_(static_cast<std::size_t>(shape_[1] * flat_[2] * bytes_of(type) + 64)) {
    for (std::int64_t i = 0; i < shape_[1]; ++i)
      for (std::int64_t j = 0; j < flat_[2]; ++j) set(i, j, number(seed, row(i), first + j));
  }
  row_block(const row_block&) = delete;

  const row_list& rows() const { return rows_; }
  velo_tensor view() const { return {data(), {VELO_DEVICE_CPU, 0}, 4, of(), shape_, nullptr, 0}; }
  // [rows, heads * elements]
  velo_tensor matrix() const { return {data(), {VELO_DEVICE_CPU, 0}, 2, of(), plane_, nullptr, 0}; }
  // [rows, 1, heads * elements]
  velo_tensor flat() const { return {data(), {VELO_DEVICE_CPU, 0}, 3, of(), flat_, nullptr, 0}; }

  // The largest difference from the same rows of the whole, over their largest number.
  double difference(const row_block& whole) const {
    float worst = 0, most = 0;
    for (std::int64_t i = 0; i < shape_[1]; ++i)
      for (std::int64_t j = 0; j < flat_[2]; ++j) {
        const float wanted = whole.get(row(i), first_ + j), apart = std::fabs(get(i, j) - wanted);
        most = std::max(most, std::fabs(wanted));
        worst = apart <= worst ? worst : apart;  // NaN stays
      }
    return static_cast<double>(worst / most);
  }
  // The largest difference of a number from that of the whole, over the latter.
  double relative_difference(const row_block& whole) const {
    float worst = 0;
    for (std::int64_t i = 0; i < shape_[1]; ++i)
      for (std::int64_t j = 0; j < flat_[2]; ++j) {
        const float apart = std::fabs(get(i, j) / whole.get(row(i), first_ + j) - 1);
        worst = apart <= worst ? worst : apart;  // NaN stays
      }
    return static_cast<double>(worst);
  }

 private:
  std::int64_t row(std::int64_t i) const { return rows_[static_cast<std::size_t>(i)]; }
  velo_dtype of() const {
    return type_ == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
  }
  unsigned char* data() const {
    auto* first = const_cast<unsigned char*>(bytes_.data());
    return first + (64 - reinterpret_cast<std::uintptr_t>(first) % 64) % 64;
  }
  unsigned char* place(std::int64_t i, std::int64_t j) const {
    return data() + (i * flat_[2] + j) * bytes_of(type_);
  }
  void set(std::int64_t i, std::int64_t j, float value) {
    if (type_ == dtype::f32) {
      std::memcpy(place(i, j), &value, sizeof value);
    } else {
      const std::uint16_t half = narrow(value);
      std::memcpy(place(i, j), &half, sizeof half);
    }
  }
  float get(std::int64_t i, std::int64_t j) const {
    float value;
    std::uint16_t half;
    if (type_ == dtype::f32) {
      std::memcpy(&value, place(i, j), sizeof value);
    } else {
      std::memcpy(&half, place(i, j), sizeof half);
      value = widen(half);
    }
    return value;
  }
  // From -1 to 1.
  static float number(int seed, std::int64_t row, std::int64_t j) {
    auto mixed = static_cast<std::uint64_t>(row << 16 ^ j << 3 ^ seed) + 1;
    mixed *= 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u;
    return static_cast<float>(mixed >> 40) / (1 << 23) - 1;
  }

  const dtype type_;
  const row_list rows_;       // of the sequence
  const std::int64_t first_;  // column of the whole
  const std::int64_t shape_[4], flat_[3], plane_[2];
  std::vector<unsigned char> bytes_;
};

}  // namespace velo::bench
