// Block products of every kernel kind against double precision: levels, types, tails, leading
// dimensions, accumulation.
#include "ops/gemm/block.hpp"
#include "ops/gemm/block_kernels.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/ops/levels.hpp"

using velo::core::isa;
using velo::ops::block_kernel;
using velo::ops::block_session;
using velo::ops::block_shape;
using velo::ops::block_type;
using velo::testing::levels;

namespace {

std::uint16_t round_to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float widen(std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

class random_floats {
 public:
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) / 2147483648.0f;
  }

 private:
  std::uint64_t state_ = 12345;
};

std::size_t at(std::int64_t row, std::int64_t column, std::int64_t ld) {
  return static_cast<std::size_t>(row * ld + column);
}

// Operands of one block: plain values, the bytes the kernel reads, and C with marked gaps between
// its rows.
struct problem {
  block_shape shape;
  std::vector<float> a, b;  // [m][k], [k][n], values as the kernel sees them
  std::vector<unsigned char> a_bytes, b_bytes;
  std::vector<float> c_before;

  explicit problem(const block_shape& s) : shape(s), a(at(s.m, 0, s.k)), b(at(s.k, 0, s.n)) {
    const bool bf16 = s.type == block_type::bf16;
    const std::int64_t bytes = bf16 ? 2 : 4;
    random_floats random;
    for (float& x : a) x = bf16 ? widen(round_to_bf16(random.next())) : random.next();
    for (float& x : b) x = bf16 ? widen(round_to_bf16(random.next())) : random.next();
    // Gaps hold NaN: a kernel that reads them into a sum shows it.
    a_bytes.assign(static_cast<std::size_t>(s.m * s.lda * bytes), 0xff);
    b_bytes.assign(static_cast<std::size_t>(s.k * s.ldb * bytes), 0xff);
    for (int i = 0; i < s.m; ++i) {
      for (int k = 0; k < s.k; ++k) put(a_bytes, at(i, k, s.lda), a[at(i, k, s.k)]);
    }
    for (int k = 0; k < s.k; ++k) {
      for (int j = 0; j < s.n; ++j) {
        const std::size_t place =
            bf16 ? at(k / 2, j, s.ldb) * 2 + static_cast<std::size_t>(k % 2) : at(k, j, s.ldb);
        put(b_bytes, place, b[at(k, j, s.n)]);
      }
    }
    c_before.resize(at(s.m, 0, s.ldc));
    for (float& x : c_before) x = random.next();
  }

  void put(std::vector<unsigned char>& to, std::size_t place, float value) const {
    if (shape.type == block_type::bf16) {
      const std::uint16_t bits = round_to_bf16(value);
      std::memcpy(to.data() + place * 2, &bits, 2);
    } else {
      std::memcpy(to.data() + place * 4, &value, 4);
    }
  }

  static std::uint32_t bits(float x) {
    std::uint32_t word;
    std::memcpy(&word, &x, sizeof word);
    return word;
  }

  // The largest error in units of what summation in f32 may lose; infinite when a gap of C was
  // written.
  double error(const std::vector<float>& c) const {
    double worst = 0;
    for (int i = 0; i < shape.m; ++i) {
      for (std::int64_t j = 0; j < shape.ldc; ++j) {
        const std::size_t place = at(i, j, shape.ldc);
        if (j >= shape.n) {
          if (bits(c[place]) != bits(c_before[place])) return INFINITY;
          continue;
        }
        double sum = shape.accumulate ? static_cast<double>(c_before[place]) : 0,
               size = std::fabs(sum);
        for (int k = 0; k < shape.k; ++k) {
          const double term =
              static_cast<double>(a[at(i, k, shape.k)]) * static_cast<double>(b[at(k, j, shape.n)]);
          sum += term;
          size += std::fabs(term);
        }
        const double off = std::fabs(static_cast<double>(c[place]) - sum);
        const double units = off / (6e-8 * size * (3 + std::sqrt(shape.k)));
        if (std::isnan(units)) return INFINITY;
        worst = std::fmax(worst, units);
      }
    }
    return worst;
  }

  std::vector<float> run(isa level, bool jit) const {
    const block_kernel kernel = block_kernel::make(shape, level, jit);
    std::vector<float> c = c_before;
    const block_session session(level);
    kernel(a_bytes.data(), b_bytes.data(), c.data());
    return c;
  }
};

block_shape shape_of(int m, int n, int k, block_type type, bool accumulate, int gap) {
  return {m, n, k, k + 2 * gap, n + gap, n + gap, type, accumulate};
}

const int all_m[] = {1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 64, 77};
const int all_n[] = {16, 32, 48, 64, 80, 128};
const int all_k[] = {2, 8, 30, 32, 34, 64, 78, 128, 600};

void check_levels(block_type type) {
  for (int level = 0; level < levels(); ++level) {
    int checked = 0;
    for (const int m : all_m) {
      for (const int n : all_n) {
        for (const int k : all_k) {
          const int pick = m * 7 + n / 16 * 3 + k / 2 + level;
          if (pick % 5 != 0 && m * n * k > 4000)
            continue;  // all small blocks, a fifth of the large
          const problem p(shape_of(m, n, k, type, pick % 2 == 0, pick % 3));
          for (const bool jit : {false, true}) {
            const double error = p.error(p.run(static_cast<isa>(level), jit));
            if (!(error <= 1)) {
              FAIL("level " << level << " jit " << jit << " m " << m << " n " << n << " k " << k
                            << " error " << error);
            }
            ++checked;
          }
        }
      }
    }
    CHECK(checked > 200);
  }
}

}  // namespace

TEST_CASE("every f32 block kernel agrees with double precision") {
  check_levels(block_type::f32);
}

TEST_CASE("every bf16 block kernel agrees with double precision") {
  check_levels(block_type::bf16);
}

TEST_CASE(
    "generated code for the bf16 dot product agrees, also where it is too slow to be chosen") {
  if (velo::testing::highest_level() < isa::avx512_bf16) return;
  for (const int m : {1, 2, 7, 8, 16, 32}) {
    for (const int n : {16, 32, 48, 64}) {
      for (const int k : {2, 32, 96, 600}) {
        const problem p(shape_of(m, n, k, block_type::bf16, (m + k) % 4 == 0, 2));
        const auto code = velo::ops::jit_block(p.shape, isa::avx512_bf16);
        REQUIRE(code != nullptr);
        std::vector<float> c = p.c_before;
        code(p.b_bytes.data(), p.a_bytes.data(), c.data());
        CHECK(p.error(c) <= 1);
      }
    }
  }
}

TEST_CASE("generated code is never writable and takes few mappings") {
  const isa level = velo::testing::highest_level();
  if (level < isa::avx2) return;
  const auto count_mappings = [] {
    int mappings = 0;
    bool writable_code = false;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line); ++mappings) {
      const std::string rights = line.substr(line.find(' ') + 1, 4);
      writable_code = writable_code || (rights[1] == 'w' && rights[2] == 'x');
    }
    CHECK_FALSE(writable_code);
    return mappings;
  };
  block_kernel::make(shape_of(3, 16, 5, block_type::f32, false, 0), level, true);
  const int before = count_mappings();
  for (int k = 1; k <= 200; ++k) {
    block_kernel::make(shape_of(5, 32, k, block_type::f32, false, 4), level, true);
  }
  CHECK(count_mappings() <= before + 10);
}

TEST_CASE("threads that make the same kernels get the same code") {
  const isa level = velo::testing::highest_level();
  if (level < isa::avx2) return;
  std::vector<std::thread> threads;
  std::vector<velo::ops::jit_function> found[4];
  for (auto& mine : found) {
    threads.emplace_back([&mine, level] {
      for (int k = 1; k <= 60; ++k) {
        mine.push_back(velo::ops::jit_block(shape_of(4, 16, k, block_type::f32, true, 3), level));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : found) CHECK(other == found[0]);
  CHECK(found[0].front() != nullptr);
}

TEST_CASE("an f32 block may have an odd depth") {
  for (int level = 0; level < levels(); ++level) {
    for (const int k : {1, 3, 7, 33}) {
      const problem p(shape_of(9, 32, k, block_type::f32, true, 1));
      CHECK(p.error(p.run(static_cast<isa>(level), true)) <= 1);
      CHECK(p.error(p.run(static_cast<isa>(level), false)) <= 1);
    }
  }
}

TEST_CASE("a row of C does not depend on the block around it") {
  for (const block_type type : {block_type::f32, block_type::bf16}) {
    for (int level = 0; level < levels(); ++level) {
      const problem p(shape_of(40, 64, 96, type, false, 0));
      const std::vector<float> whole = p.run(static_cast<isa>(level), false);
      for (const int m : {1, 6, 16, 23}) {
        block_shape part = p.shape;
        part.m = m;
        const block_kernel kernel = block_kernel::make(part, static_cast<isa>(level), false);
        std::vector<float> c = p.c_before;
        const block_session session(static_cast<isa>(level));
        kernel(p.a_bytes.data(), p.b_bytes.data(), c.data());
        CHECK(std::memcmp(c.data(), whole.data(), at(m, 0, 64) * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("kernels that generated code cannot serve fall back to velo's own") {
  const isa level = velo::testing::highest_level();
  if (level < isa::avx2) return;
  block_shape shape = shape_of(4, 16, 8, block_type::f32, false, 0);
  CHECK(std::string(block_kernel::make(shape, level, true).name()) == "libxsmm");
  CHECK(std::string(block_kernel::make(shape, level, false).name()).rfind("portable", 0) == 0);
  CHECK(std::string(block_kernel::make(shape, isa::scalar, true).name()) == "portable scalar");
  shape.ldc = std::int64_t{1} << 40;
  CHECK(std::string(block_kernel::make(shape, level, true).name()).rfind("portable", 0) == 0);
}
