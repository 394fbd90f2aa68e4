// A weight of random elements, packed for an instruction set.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/simd/scalar.hpp"
#include "ops/gemm/gemm.hpp"
#include "tests/ops/aligned_memory.hpp"
#include "tests/ops/one_by_one.hpp"
#include "tests/random.hpp"

namespace velo::testing {

template <class T>
constexpr ops::element_type element_type_of() {
  return sizeof(T) == 4                  ? ops::element_type::f32
         : std::is_same_v<T, simd::bf16> ? ops::element_type::bf16
                                         : ops::element_type::f16;
}

template <class T>
std::vector<T> random_elements(std::int64_t count, std::uint32_t seed, double scale = 1) {
  std::vector<T> all(static_cast<std::size_t>(count));
  cheap_random draw(seed * 2654435761u + 1);
  for (T& one : all) simd::assign(one, (static_cast<double>(draw() >> 8) / (1 << 23) - 1) * scale);
  return all;
}

template <class T>
struct packed_weight {
  ops::packed_matrix pack;

  packed_weight(std::int64_t k, std::int64_t n, core::isa on, double scale = 1)
      : pack(k, n, element_type_of<T>(), on), memory_(pack.bytes()) {
    pack.set_memory(memory_.start);
    pack.update(random_elements<T>(k * n, 1, scale).data(), n, false, one_by_one());
  }

 private:
  aligned_memory memory_;
};

}  // namespace velo::testing
