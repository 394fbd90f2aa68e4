// Some rows of a sequence, [1, rows, heads, elements of a head], or some columns of them, from
// `first` on. Their numbers depend on where they lie in the sequence, so that a rank's share has
// those of the whole.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {

using row_list = std::vector<std::int64_t>;

// Memory of a pool, or of the heap where the pool is null.
class row_memory {
 public:
  row_memory(velo_pool pool, std::int64_t bytes)
      : heap_(pool == nullptr ? static_cast<std::size_t>(bytes) + alignment : 0),
        bytes_(static_cast<std::uint64_t>(bytes)),
        pooled_(nullptr, {pool, bytes_}) {
    if (pool == nullptr) return;
    velo_pool_request request = VELO_POOL_REQUEST_INIT;
    request.bytes = bytes_;
    void* memory = nullptr;
    require(velo_pool_allocate(pool, &request, &memory));
    pooled_.reset(static_cast<unsigned char*>(memory));
  }
  unsigned char* data() const {
    if (pooled_ != nullptr) return pooled_.get();
    auto* first = const_cast<unsigned char*>(heap_.data());
    return first + (alignment - reinterpret_cast<std::uintptr_t>(first) % alignment) % alignment;
  }

 private:
  static constexpr std::size_t alignment = 64;
  struct give_back {
    velo_pool pool;
    std::uint64_t bytes;
    void operator()(unsigned char* memory) const {
      require(velo_pool_free(pool, memory, bytes, nullptr));
    }
  };

  std::vector<unsigned char> heap_;
  std::uint64_t bytes_;
  std::unique_ptr<unsigned char, give_back> pooled_;
};

class row_block {
 public:
  row_block(dtype type, const row_list& rows, std::int64_t heads, std::int64_t width, int seed,
            std::int64_t first = 0, velo_pool pool = nullptr)
      : type_(type),
        rows_(rows),
        first_(first),
        shape_{1, static_cast<std::int64_t>(rows.size()), heads, width},
        flat_{shape_[1], 1, heads * width},
        plane_{shape_[1], flat_[2]},
        memory_(pool, shape_[1] * flat_[2] * bytes_of(type)) {
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
  unsigned char* data() const { return memory_.data(); }
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
  const row_memory memory_;
};

}  // namespace velo::bench
