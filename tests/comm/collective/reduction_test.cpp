// Every kernel of reductions beside the plain one, bit for bit, and float16 as plain code has it.
#include "comm/reduction/reduction.hpp"

#include <cmath>

#include "comm/ranks.hpp"
#include "core/host/cpu.hpp"
#include "tests/random.hpp"

using namespace velo::testing;
namespace comm = velo::comm;
namespace simd = velo::simd;

namespace {

// Bytes that are any numbers; for floating-point ones often of like size, else sums say little, and
// some of them subnormal.
std::vector<unsigned char> numbers(std::size_t bytes, velo_dtype dtype, std::uint32_t seed) {
  elements all(dtype, static_cast<std::int64_t>(bytes / (dtype.bits / 8)));
  cheap_random draw(seed * 2654435761u + 1);
  for (std::int64_t i = 0; i < all.count(); ++i) {
    const std::uint32_t state = draw();
    const double unit = static_cast<double>(state >> 8) / (1 << 24);
    const double least = dtype.bits == 64                  ? 0x1p-1030
                         : dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-128
                         : dtype.bits == 16                ? 0x1p-16
                                                           : 0x1p-130;
    all.set(i, is_float(dtype) ? (unit - 0.5) * (state % 5 == 0 ? least : 4) : unit * 100);
  }
  return {all.at(0), all.at(0) + bytes};
}

// The elements that each rank gives, at another alignment for each.
struct inputs {
  inputs(int ranks, std::int64_t n, velo_dtype dtype) {
    const int size = dtype.bits / 8;
    for (int r = 0; r < ranks; ++r)
      bytes.push_back(numbers(at((n + 3) * size), dtype, static_cast<std::uint32_t>(r)));
    for (int r = 0; r < ranks; ++r) from.push_back(bytes[at(r)].data() + r % 3 * size);
  }
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<const void*> from;
};

// Calls f(name, kernels) for each instruction set of this processor; the last ones are the plain
// loops, which are passed over unless asked for. Returns how many there were.
template <class F>
int each_kernel(bool plain_too, F&& f) {
  const comm::kernel_list& list = comm::reduction_kernel_list;
  int count = 0;
  for (int k = 0; k < list.count - (plain_too ? 0 : 1); ++k) {
    if (list.entries[k].isa > velo::core::detect_isa()) continue;
    ++count;
    f(list.entries[k].name, *static_cast<const comm::reduction_kernels*>(list.entries[k].kernels));
  }
  return count;
}
const comm::reduction_kernels& plain_kernels() {
  const comm::kernel_list& list = comm::reduction_kernel_list;
  return *static_cast<const comm::reduction_kernels*>(list.entries[list.count - 1].kernels);
}

// A kernel among all of an operation: those of one dtype, two that widen, two of sums that narrow.
struct kernel_of {
  kernel_of(int op, int e) : op_(op), e_(e) {
    const int other = e - comm::element_count;  // of float16 and bfloat16
    if (other < 0) in = out = reduced_dtypes[e].dtype;
    if (other >= 0) in = out = reduced_dtypes[0].dtype;
    if (other == 0 || other == 1) in = reduced_dtypes[other + 2].dtype;
    if (other > 1) out = reduced_dtypes[other].dtype;
  }
  comm::reduce_fn of(const comm::reduction_kernels& all) const {
    const int other = e_ - comm::element_count;
    if (other < 0) return all.same[op_][e_];
    return other < 2 ? all.wide[op_][other] : all.narrow[op_][other - 2];
  }
  velo_dtype in{}, out{};

 private:
  int op_, e_;
};

}  // namespace

TEST_CASE("averages of sums are divided by as many as they are of, and rounded once") {
  const float sums[2] = {6, 9};
  const void* from[] = {&sums[0], &sums[1]};
  each_kernel(true, [&](const char* name, const comm::reduction_kernels& kernels) {
    INFO(name);
    float average = 0;
    kernels.same[1][0]({from, 2, &average, 1, 1, false, 5});
    CHECK(average == 3);
    simd::bf16 narrow{};
    kernels.narrow[1][1]({from, 2, &narrow, 1, 1, false, 5});
    CHECK(simd::to_float(narrow) == 3);
  });
}

TEST_CASE("every kernel of a reduction gives the bits of plain loops, at any place and length") {
  const int kernels = each_kernel(false, [](const char* name, const comm::reduction_kernels& fast) {
    for (int op = 0; op < comm::combine_count; ++op)
      for (int e = 0; e < comm::element_count + (op < 2 ? 4 : 2); ++e) {
        const kernel_of is(op, e);
        const velo_dtype in = is.in, out = is.out;
        const comm::reduce_fn one = is.of(fast), other = is.of(plain_kernels());
        for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 63, 200, 1027})
          for (const int ranks : {1, 2, 5})
            for (const double scale : {1.0, is_float(in) && op < 2 ? 0.7 : 1.0}) {
              const bool bypass = n % 2 == ranks % 2;
              const inputs given(ranks, n, in);
              const elements a(out, n, static_cast<int>(n % 5)), b(out, n, 0);
              const int shares = n % 2 == 0 ? 0 : 7;
              one({given.from.data(), ranks, a.at(0), n, scale, bypass, shares});
              other({given.from.data(), ranks, b.at(0), n, scale, false, shares});
              INFO(name << ", operation " << op << ", dtype " << e << ", " << n << " of " << ranks);
              CHECK(a.same_bits(b));
              CHECK(a.borders_kept());
            }
      }
  });
  CHECK((kernels > 0 || velo::core::detect_isa() == velo::core::isa::scalar));
}

TEST_CASE("every kernel of weighted sums gives the bits of plain loops, at any place and length") {
  constexpr int types[] = {0, 2, 3};  // float32, float16, bfloat16
  each_kernel(false, [&](const char* name, const comm::reduction_kernels& fast) {
    for (int type = 0; type < 3; ++type)
      for (const std::int64_t n : {0, 1, 15, 16, 33, 200})
        for (const int count : {1, 2, 8})
          for (const bool weighs : {true, false}) {
            const velo_dtype in = reduced_dtypes[types[type]].dtype, f32 = reduced_dtypes[0].dtype;
            const inputs given(count, n, in);
            std::vector<float> weights;
            for (int r = 0; r < count; ++r)
              weights.push_back(weighs ? 0.3f + static_cast<float>(r) : 1);
            const elements a(f32, n, static_cast<int>(n % 5)), b(f32, n, 0);
            const auto sum = [&](const comm::reduction_kernels& by, const elements& out) {
              by.weighted[type]({given.from.data(), weights.data(), count,
                                 reinterpret_cast<float*>(out.at(0)), n});
            };
            sum(fast, a);
            sum(plain_kernels(), b);
            INFO(name << ", type " << type << ", " << n << " of " << count);
            CHECK(a.same_bits(b));
            CHECK(a.borders_kept());
          }
  });
}

TEST_CASE("float16 is read and rounded alike by every kernel") {
  std::vector<simd::f16> all(1 << 16), back(1 << 16);
  std::vector<float> wide(1 << 16);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  each_kernel(true, [&](const char* name, const comm::reduction_kernels& kernels) {
    INFO(name);
    const void* from = all.data();
    kernels.wide[0][0]({&from, 1, wide.data(), 1 << 16, 1, false});
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double exponent = static_cast<double>(i >> 10 & 31),
                   fraction = static_cast<double>(i & 1023);
      double value = exponent == 0
                         ? fraction * 0x1p-24
                         : (1 + fraction / 1024) * std::ldexp(1.0, static_cast<int>(exponent) - 15);
      if (exponent == 31) value = fraction == 0 ? HUGE_VAL : std::nan("");
      if ((i & 0x8000) != 0) value = -value;
      wrong += !(wide[i] == value || (std::isnan(wide[i]) && std::isnan(value)));
    }
    CHECK(wrong == 0);
  });
  // Rounding: half way between neighbors, and just beside it.
  for (std::uint32_t i = 0; i < 0x7bff; ++i) {
    const float low = simd::to_float(simd::f16{static_cast<std::uint16_t>(i)});
    const float high = simd::to_float(simd::f16{static_cast<std::uint16_t>(i + 1)});
    const float half = low + (high - low) / 2;
    const std::uint32_t even = i % 2 == 0 ? i : i + 1;
    if (simd::to_f16(half).bits != even || simd::to_f16(std::nextafterf(half, 0)).bits != i ||
        simd::to_f16(std::nextafterf(half, 1e9f)).bits != i + 1) {
      FAIL("at " << i);
    }
  }
  CHECK(simd::to_f16(65519.0f).bits == 0x7bff);
  CHECK(simd::to_f16(65520.0f).bits == 0x7c00);
  CHECK(simd::to_f16(-1e30f).bits == 0xfc00);
}
