// The matrix product engine against double precision: isas, types, transposes, packs, strides,
// bias, accumulation, threads.
#include "ops/gemm/gemm.hpp"

#include <sys/mman.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/round_up.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "tests/ops/aligned_memory.hpp"
#include "tests/ops/compared_rows.hpp"
#include "tests/ops/isas.hpp"
#include "tests/ops/one_by_one.hpp"
#include "tests/ops/typed_element.hpp"
#include "tests/random.hpp"
#include "tests/threads.hpp"

using namespace velo::ops;
using velo::core::isa;
using velo::core::parallel;
using namespace velo::testing;

namespace {

// Assigns tasks to `count` threads round robin, the last first: an order that the engine must not
// depend on.
struct dealer {
  int count;

  static void run(void* self, std::int64_t tasks, parallel::task_fn fn, void* user) {
    const int count = static_cast<dealer*>(self)->count;
    on_threads(count, [=](int t) {
      for (std::int64_t task = tasks - 1; task >= 0; --task) {
        if (task % count == t) fn(user, task, t);
      }
    });
  }
  parallel as_parallel() { return {this, run, count}; }
};

// A stored matrix with NaN between its rows, which a read outside a row brings into the result.
struct matrix {
  std::int64_t rows, columns, ld;
  element_type type;
  std::vector<unsigned char> bytes;

  matrix(std::int64_t r, std::int64_t c, std::int64_t gap, element_type t, std::uint64_t seed)
      : rows(r),
        columns(c),
        ld(c + gap),
        type(t),
        bytes(static_cast<std::size_t>(r * ld) * size(), 0xff) {
    cheap_random draw(seed);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        set(i, j, static_cast<float>(static_cast<std::int32_t>(draw())) / 2147483648.0f);
    }
  }
  std::size_t size() const { return size_of(type); }
  std::size_t offset(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * ld + j) * size();
  }
  void set(std::int64_t i, std::int64_t j, float value) {
    put_element(bytes.data() + offset(i, j), type, value);
  }
  double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(element_at(bytes.data() + offset(i, j), type));
  }
};

struct variant {
  element_type type = element_type::f32, c_type = element_type::f32;
  bool transpose_a = false, transpose_b = false, bias = false, accumulate = false, packed = false;
  bool dot = false;  // whether bf16 stays bf16 where the isa would widen it
  std::int64_t gap = 0;
};

void add_products(double x, const double* y, std::int64_t n, double* sums, double* sizes) {
  for (std::int64_t j = 0; j < n; ++j) {
    const double term = x * y[j];
    sums[j] += term;
    sizes[j] += std::fabs(term);
  }
}

struct product {
  variant v;
  std::int64_t m, n, k;
  matrix a, b, c;
  std::vector<float> bias;

  product(const variant& how, std::int64_t m_, std::int64_t n_, std::int64_t k_)
      : v(how),
        m(m_),
        n(n_),
        k(k_),
        a(how.transpose_a ? k_ : m_, how.transpose_a ? m_ : k_, how.gap, how.type, 1),
        b(how.transpose_b ? n_ : k_, how.transpose_b ? k_ : n_, how.gap, how.type, 2),
        c(m_, n_, how.gap, how.c_type, 3),
        bias(static_cast<std::size_t>(n_)) {
    for (std::size_t j = 0; j < bias.size(); ++j)
      bias[j] = 0.25f * static_cast<float>(j % 7) - 0.5f;
  }

  // C after the product, with A `skip` bytes further on.
  matrix run(isa on, const parallel& threads = one_by_one(), std::size_t skip = 0) const {
    matrix out = c;
    gemm_problem p;
    p.m = m, p.n = n, p.k = k, p.type = v.type;
    p.a = a.bytes.data() + skip, p.lda = a.ld, p.transpose_a = v.transpose_a;
    p.b = b.bytes.data(), p.ldb = b.ld, p.transpose_b = v.transpose_b;
    p.c = out.bytes.data(), p.ldc = out.ld, p.c_type = v.c_type;
    p.epilogue.bias = v.bias ? bias.data() : nullptr, p.epilogue.accumulate = v.accumulate;

    const gemm_target target = v.dot ? gemm_target(on, true) : gemm_target(on);
    packed_matrix pack(k, n, v.type, target);
    aligned_memory pack_memory(v.packed ? pack.bytes() : 0);
    if (v.packed) {
      pack.set_memory(pack_memory.start);
      pack.update(p.b, p.ldb, p.transpose_b, threads);
      p.packed_b = &pack;
      p.b = nullptr;
    }
    aligned_memory scratch(gemm_scratch_bytes(p, threads.threads(), target));
    gemm(p, threads, scratch.start, target);
    CHECK(scratch.intact());
    CHECK(pack_memory.intact());
    return out;
  }

  // op(B) in contiguous rows.
  std::vector<double> whole_b() const {
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(n * k));
    for (std::int64_t q = 0; q < k; ++q)
      for (std::int64_t j = 0; j < n; ++j) all.push_back(v.transpose_b ? b.at(j, q) : b.at(q, j));
    return all;
  }

  // The largest error in units of the rounding error; infinite when bytes between rows changed. All
  // sums of a row are computed side by side, so that none waits for its own previous term.
  double error(const matrix& out) const {
    double worst = 0;
    const std::vector<double> all_b = whole_b();
    std::vector<double> sums, sizes;
    for (std::int64_t i = 0; i < m; i = next_compared(i, m)) {
      sums.assign(static_cast<std::size_t>(n), 0);
      sizes.assign(static_cast<std::size_t>(n), 0);
      for (std::int64_t q = 0; q < k; ++q)
        add_products(v.transpose_a ? a.at(q, i) : a.at(i, q), all_b.data() + q * n, n, sums.data(),
                     sizes.data());
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = sums[static_cast<std::size_t>(j)], size = sizes[static_cast<std::size_t>(j)];
        if (v.bias) sum += static_cast<double>(bias[static_cast<std::size_t>(j)]), size += 1;
        if (v.accumulate) sum += c.at(i, j), size += std::fabs(c.at(i, j));
        double bound = 6e-8 * size * (3 + std::sqrt(static_cast<double>(k)));
        if (v.c_type == element_type::bf16) bound += std::fabs(sum) / 256 + 1e-30;
        if (v.c_type == element_type::f16) bound += std::fabs(sum) / 2048 + 0x1p-25;
        const double units = std::fabs(out.at(i, j) - sum) / (bound + 1e-38);
        if (!(units <= 1)) return std::isnan(units) ? INFINITY : units;
        worst = std::fmax(worst, units);
      }
      const std::size_t gap = static_cast<std::size_t>(c.ld - n) * c.size();
      if (gap != 0 && std::memcmp(&out.bytes[out.offset(i, n)], &c.bytes[c.offset(i, n)], gap) != 0)
        return INFINITY;
    }
    return worst;
  }
};

// Runs body(isa, type) for all types on every isa from `least` on.
template <class Body>
void for_each_type(int least, const Body& body) {
  for (const isa on : tested_isas(least)) {
    INFO("isa " << static_cast<int>(on));
    for (const element_type type : element_types) body(on, type);
  }
}

const std::int64_t sizes[] = {1, 2, 15, 16, 31, 33, 64, 65, 127, 200};

}  // namespace

TEST_CASE("products agree with double precision for every isa, type, transpose and form of B") {
  for (const isa on : tested_isas()) {
    int checked = 0;
    for (int number = 0; number < 9 * 128; ++number) {
      variant v;
      const int bits = number / 9;
      v.type = element_types[number % 3], v.c_type = element_types[number / 3 % 3];
      if (v.type == element_type::bf16 && v.c_type == element_type::f16) continue;
      v.transpose_a = bits & 1, v.transpose_b = bits & 2, v.bias = bits & 4,
      v.accumulate = bits & 8;
      v.packed = bits & 16, v.gap = bits & 32 ? 3 : 0;
      v.dot = bits & 64 && on >= isa::avx512_bf16;
      const auto pick = [&](int salt) {
        return sizes[static_cast<std::size_t>((number * 7 + salt * 31 + static_cast<int>(on) * 3) %
                                              10)];
      };
      const product p(v, pick(1), pick(2), pick(number / 10));
      const double error = p.error(p.run(on));
      if (!(error <= 1)) {
        FAIL("isa " << static_cast<int>(on) << " number " << number << " m " << p.m << " n " << p.n
                    << " k " << p.k << " error " << error);
      }
      ++checked;
    }
    CHECK(checked == 8 * 128);
  }
}

TEST_CASE("several tiles, passes and panels add up") {
  for_each_type(0, [](isa on, element_type type) {
    for (const bool packed : {false, true}) {
      variant v;
      v.type = type, v.c_type = packed ? type : element_type::f32, v.packed = packed, v.bias = true;
      v.transpose_a = packed, v.transpose_b = !packed;
      for (const auto& [m, n, k] :
           {std::array<std::int64_t, 3>{45, 1100, 1300}, {700, 70, 600}, {300, 600, 40}}) {
        if (on == isa::scalar && m * n * k > 30000000) continue;  // plain code is slow
        const product p(v, m, n, k);
        CHECK(p.error(p.run(on)) <= 1);
      }
    }
  });
}

TEST_CASE("the bits of a product do not depend on the number of threads or the order of tasks") {
  for_each_type(1, [](isa on, element_type type) {
    for (const bool packed : {false, true}) {
      variant v;
      v.type = v.c_type = type, v.packed = packed, v.accumulate = true;
      const product p(v, 530, 700, 700);
      const matrix one = p.run(on);
      for (int count : {2, 3}) {
        dealer threads{count};
        CHECK(p.run(on, threads.as_parallel()).bytes == one.bytes);
      }
      for (int count : {8, 64, 192}) {
        CHECK(p.run(on, one_by_one(count)).bytes == one.bytes);
      }
    }
  });
}

// With many threads tiles are any number of eights high, and A that is stored transposed is packed
// in vectors of two eights.
TEST_CASE("the bits of a product with A transposed do not depend on the number of threads") {
  for_each_type(1, [](isa on, element_type type) {
    for (const std::int64_t m : {8, 40, 104, 530}) {
      for (const bool packed : {false, true}) {
        variant v;
        v.type = v.c_type = type, v.transpose_a = true, v.packed = packed, v.accumulate = true;
        const product p(v, m, 40, 2100);
        const matrix one = p.run(on);
        CHECK(p.error(one) <= 1);
        for (int count : {3, 5, 8, 24, 64, 192}) {
          const matrix many = p.run(on, one_by_one(count));
          CHECK((many.bytes == one.bytes));
        }
      }
    }
  });
}

TEST_CASE("micro-panels of any number of eights are written whole and no further") {
  constexpr int depth = 20, most = 64;
  constexpr std::uint32_t untouched = 0xa5a5a5a5;
  const std::vector<float> source(most * depth, 1.0f);
  for (const isa on : tested_isas()) {
    const reorder_kernels& reorders = gemm_kernels_for(on).floats;
    for (int rows = 1; rows <= most; ++rows) {
      const int panels = (rows + 7) / 8;
      for (const auto each : {reorders.micro_rows, reorders.micro_transpose}) {
        std::vector<std::uint32_t> to((most / 8 + 2) * 8 * depth, untouched);
        const bool transposed = each == reorders.micro_transpose;
        each({source.data(), transposed ? most : depth, transposed ? depth : rows,
              transposed ? rows : depth, to.data(), 8 * depth, 8 * panels});
        const auto end = to.begin() + panels * 8 * depth;
        CHECK(std::count(to.begin(), end, untouched) == 0);
        CHECK(std::count(end, to.end(), untouched) == to.end() - end);
      }
    }
  }
}

// A is read in offset by words; it is packed if it is not aligned to words.
TEST_CASE("small products take no scratch and have the bits of those from a pack") {
  for (const isa on : tested_isas()) {
    for (int number = 0; number < 3 * 8; ++number) {
      variant v;
      const int bits = number / 3;
      v.c_type = element_types[number % 3];
      v.bias = bits & 1, v.accumulate = bits & 2, v.gap = bits & 4 ? 3 : 0;
      for (const auto& [m, n, k] :
           {std::array<std::int64_t, 3>{1, 16, 1}, {13, 48, 7}, {16, 16, 16}, {64, 64, 64}}) {
        const product p(v, m, n, k);
        variant from_pack = v;
        from_pack.packed = true;
        gemm_problem g;
        g.m = m, g.n = n, g.k = k, g.lda = k, g.ldb = n;
        CHECK(gemm_scratch_bytes(g, 4, on) == 0);
        CHECK(p.run(on).bytes == product(from_pack, m, n, k).run(on).bytes);
      }
    }
  }
}

// Up to 48 rows read a B of enough columns in place. Rows 8 KiB apart make strips short, rows
// 32 KiB apart do without them; gaps of three put rows at any place in a line.
TEST_CASE("products of few rows have the bits of those from a pack, for any number of threads") {
  for_each_type(1, [](isa on, element_type type) {
    int number = 0;
    for (const std::int64_t m : {1, 2, 3, 5, 6, 7, 8, 9, 13, 16, 47, 48, 49}) {
      for (const auto& [n, k, gap] : {std::array<std::int64_t, 3>{48, 64, 0},
                                      {100, 200, 3},
                                      {256, 66, 2048 - 256},
                                      {96, 70, 8192 - 96},
                                      {176, 1100, 16}}) {
        variant v;
        v.type = type, v.c_type = number % 2 == 0 ? type : element_type::f32;
        v.bias = number & 2, v.accumulate = number & 4, v.gap = gap;
        v.dot = number++ & 8 && on >= isa::avx512_bf16;
        variant from_pack = v;
        from_pack.packed = true;
        const matrix one = product(from_pack, m, n, k).run(on);
        const product p(v, m, n, k);
        CHECK((p.run(on).bytes == one.bytes));
        dealer threads{3};
        CHECK((p.run(on, threads.as_parallel()).bytes == one.bytes));
      }
    }
  });
}

TEST_CASE("the bits of a product do not depend on where A begins") {
  for_each_type(1, [](isa on, element_type type) {
    variant v;
    v.type = v.c_type = type;
    product p(v, 37, 100, 64);
    const matrix aligned = p.run(on);
    const std::size_t row = p.a.offset(1, 0), element = p.a.size();
    std::vector<unsigned char> shifted(37 * (row + 2 * element) + element, 0xff);
    for (std::size_t i = 0; i < 37; ++i) {
      std::memcpy(&shifted[i * (row + 2 * element) + element], &p.a.bytes[i * row], row);
    }
    p.a.ld += 2;
    p.a.bytes = shifted;
    CHECK(p.run(on, one_by_one(), element).bytes == aligned.bytes);
  });
}

TEST_CASE("an empty depth leaves the bias, or C as it was") {
  for_each_type(0, [](isa on, element_type type) {
    variant v;
    v.type = v.c_type = type, v.bias = true;
    const product p(v, 5, 40, 0);
    CHECK(p.error(p.run(on)) <= 1);
    v.bias = false, v.accumulate = true;
    const product q(v, 5, 40, 0);
    CHECK(q.run(on).bytes == q.c.bytes);
    v.accumulate = false, v.packed = true;
    const product r(v, 5, 40, 0);
    CHECK(r.error(r.run(on)) <= 1);
  });
}

TEST_CASE("empty results touch nothing") {
  for (const auto& [m, n] : {std::array<std::int64_t, 2>{0, 5}, {5, 0}, {0, 0}}) {
    for (const bool packed : {false, true}) {
      variant v;
      v.packed = packed;
      const product p(v, m, n, 7);
      CHECK(p.run(highest_isa()).bytes == p.c.bytes);
    }
  }
}

TEST_CASE("infinities and NaN stay in the elements whose sums contain them") {
  for_each_type(0, [](isa on, element_type type) {
    variant v;
    v.type = v.c_type = type;
    product p(v, 37, 50, 33);
    p.a.set(3, 32, INFINITY);
    p.a.set(36, 0, NAN);
    for (std::int64_t j = 0; j < p.n; ++j) p.b.set(32, j, 1.0f);
    const matrix out = p.run(on);
    bool right = true;
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        const double x = out.at(i, j);
        right = right && (i == 3 ? std::isinf(x) : i == 36 ? std::isnan(x) : std::isfinite(x));
      }
    }
    CHECK(right);
  });
}

// Memory that ends at a page without access rights: a read one byte past its end crashes.
class cliff {
 public:
  explicit cliff(const std::vector<unsigned char>& bytes)
      : size_(velo::core::round_up(bytes.size(), page) + page) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    base_ = static_cast<unsigned char*>(memory);
    REQUIRE(mprotect(base_ + size_ - page, page, PROT_NONE) == 0);
    start = base_ + size_ - page - bytes.size();
    if (!bytes.empty()) std::memcpy(start, bytes.data(), bytes.size());
  }
  ~cliff() { munmap(base_, size_); }
  cliff(const cliff&) = delete;

  unsigned char* start;

 private:
  static constexpr std::size_t page = 4096;
  unsigned char* base_;
  std::size_t size_;
};

TEST_CASE("no operand is read past its end") {
  for (const isa on : tested_isas()) {
    for (int number = 0; number < 3 * 8; ++number) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{33, 65, 47},
                                    {64, 96, 64},
                                    {5, 17, 3},
                                    {13, 48, 7},
                                    {3, 144, 66}}) {
        variant v;
        const int bits = number / 3;
        v.type = v.c_type = element_types[number % 3];
        v.transpose_a = bits & 1, v.transpose_b = bits & 2,
        v.dot = bits & 4 && on >= isa::avx512_bf16;
        const product p(v, m, n, k);
        const cliff a(p.a.bytes), b(p.b.bytes), c(p.c.bytes);
        gemm_problem g;
        g.m = m, g.n = n, g.k = k, g.type = v.type, g.c_type = v.c_type;
        g.a = a.start, g.lda = p.a.ld, g.transpose_a = v.transpose_a;
        g.b = b.start, g.ldb = p.b.ld, g.transpose_b = v.transpose_b;
        g.c = c.start, g.ldc = p.c.ld;
        const gemm_target target = v.dot ? gemm_target(on, true) : gemm_target(on);
        aligned_memory scratch(gemm_scratch_bytes(g, 1, target));
        gemm(g, one_by_one(), scratch.start, target);
        matrix out = p.c;
        std::memcpy(out.bytes.data(), c.start, out.bytes.size());
        CHECK(p.error(out) <= 1);
      }
    }
  }
}

TEST_CASE("a pack can be updated in offset") {
  const isa highest = highest_isa();
  for (const element_type type : element_types) {
    packed_matrix pack(100, 90, type, highest), again(100, 90, type, highest);
    aligned_memory one(pack.bytes()), two(pack.bytes());
    pack.set_memory(one.start);
    again.set_memory(two.start);
    const matrix old(100, 90, 0, type, 5), fresh(90, 100, 2, type, 6);
    pack.update(old.bytes.data(), old.ld, false, one_by_one());
    pack.update(fresh.bytes.data(), fresh.ld, true, one_by_one());
    again.update(fresh.bytes.data(), fresh.ld, true, one_by_one());
    CHECK(one.intact());
    CHECK(std::memcmp(one.start, two.start, pack.bytes()) == 0);
  }
}
