// Several products in one region against each product alone, bit for bit: isas, types, transposes,
// empty products, tall and deep ones, packed ones, bias, accumulation, threads.
#include "ops/gemm/gemm_groups.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <deque>
#include <vector>

#include "core/host/memory.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"
#include "tests/ops/aligned_memory.hpp"
#include "tests/ops/isas.hpp"
#include "tests/ops/one_by_one.hpp"
#include "tests/ops/typed_element.hpp"
#include "tests/random.hpp"
#include "tests/threads.hpp"

using namespace velo::ops;
using velo::core::arena;
using velo::core::isa;
using velo::core::memory_source;
using velo::core::parallel;
using namespace velo::testing;

namespace {

struct shape {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
};

const shape shapes[] = {{5, 70, 40, false, false, false},    {0, 70, 40, false, false, false},
                        {33, 100, 0, true, false, true},     {1, 200, 130, false, true, false},
                        {700, 50, 1100, true, false, true},  {64, 0, 10, false, false, false},
                        {300, 530, 64, false, false, false}, {17, 48, 520, true, true, true}};

// The products' memory: elements drawn once, results that begin alike.
class products {
 public:
  // packed_for: its right sides come packed.
  explicit products(element_type type, const gemm_target* packed_for = nullptr) {
    std::uint64_t seed = 0;
    for (const shape& s : shapes) {
      gemm_problem p;
      p.m = s.m, p.n = s.n, p.k = s.k, p.type = type;
      p.transpose_a = s.transpose_a, p.transpose_b = s.transpose_b;
      p.lda = s.transpose_a ? s.m : s.k, p.ldb = s.transpose_b ? s.k : s.n, p.ldc = s.n;
      p.a = drawn(s.m * s.k, type, ++seed), p.b = drawn(s.k * s.n, type, ++seed);
      p.c = drawn(s.m * s.n, element_type::f32, ++seed);
      p.epilogue.accumulate = s.accumulate;
      if (!s.accumulate)
        p.epilogue.bias = static_cast<const float*>(drawn(s.n, element_type::f32, ++seed));
      if (packed_for != nullptr) pack(p, *packed_for);
      all.push_back(p);
    }
  }

  std::vector<gemm_problem> all;

  bool same_results(const products& other) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(all[i].m * all[i].n) * sizeof(float);
      if (bytes != 0 && std::memcmp(all[i].c, other.all[i].c, bytes) != 0) return false;
    }
    return true;
  }

 private:
  void pack(gemm_problem& p, const gemm_target& target) {
    packed_matrix& made = packs_.emplace_back(p.k, p.n, p.type, target);
    made.set_memory(memory_.emplace_back(made.bytes()).start);
    made.update(p.b, p.ldb, p.transpose_b, one_by_one());
    p.packed_b = &made, p.b = nullptr;
  }
  void* drawn(std::int64_t count, element_type type, std::uint64_t seed) {
    memory_.emplace_back(static_cast<std::size_t>(count) * size_of(type));
    cheap_random draw(seed);
    unsigned char* start = memory_.back().start;
    for (std::int64_t i = 0; i < count; ++i)
      put_element(start + static_cast<std::size_t>(i) * size_of(type), type,
                  static_cast<float>(static_cast<std::int32_t>(draw())) / 2147483648.0f);
    return start;
  }

  std::deque<aligned_memory> memory_;
  std::deque<packed_matrix> packs_;
};

// Every thread takes the tasks that are its own.
struct dealer {
  int count;

  static void run(void* self, std::int64_t tasks, parallel::task_fn fn, void* user) {
    const int count = static_cast<dealer*>(self)->count;
    on_threads(count, [=](int t) {
      for (std::int64_t task = tasks - 1; task >= 0; --task)
        if (task % count == t) fn(user, task, t);
    });
  }
  parallel as_parallel() { return {this, run, count}; }
};

void multiply_alone(const products& some, const gemm_target& target) {
  for (const gemm_problem& p : some.all) {
    aligned_memory scratch(gemm_scratch_bytes(p, 1, target));
    gemm(p, one_by_one(), scratch.start, target);
  }
}

}  // namespace

TEST_CASE("several products in one region have the bits of each alone, for any number of threads") {
  memory_source* source = memory_source::create(nullptr);
  for (const isa on : tested_isas(1)) {
    for (const element_type type : element_types) {
      INFO("isa " << static_cast<int>(on) << " type " << static_cast<int>(type));
      const products alone(type);
      multiply_alone(alone, on);
      for (const int threads : {1, 2, 5, 64}) {
        for (const bool packed : {false, true}) {
          INFO("threads " << threads << " packed " << packed);
          const gemm_target target(on);
          const products together(type, packed ? &target : nullptr);
          arena scratch(*source);
          dealer deals{threads};
          gemm_groups(together.all.data(), static_cast<std::int64_t>(together.all.size()),
                      deals.as_parallel(), scratch, on);
          CHECK(together.same_results(alone));
        }
      }
    }
  }
  source->release();
}
