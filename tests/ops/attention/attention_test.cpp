// Both passes of attention on every isa, tiles in software among them (tests/amx), against the
// plain loops: the operator's tests cannot force an isa.
#include "ops/attention/engine/attention.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/ops/aligned_memory.hpp"
#include "tests/ops/isas.hpp"
#include "tests/ops/one_by_one.hpp"
#include "tests/ops/typed_element.hpp"
#include "tests/random.hpp"

using namespace velo::ops;
using velo::core::isa;
using velo::testing::aligned_memory;
using velo::testing::one_by_one;

namespace {

// A tensor of a type.
struct elements {
  element_type type;
  std::vector<unsigned char> bytes;

  elements(element_type t, std::int64_t count, unsigned seed)
      : type(t), bytes(static_cast<std::size_t>(count) * size(), 0xff) {
    velo::testing::cheap_random draw(seed);
    for (std::size_t i = 0; seed != 0 && i < bytes.size() / size(); ++i) {
      const float value = static_cast<float>(draw() >> 16) / 32768.0f - 1.0f;
      velo::testing::put_element(&bytes[i * size()], type, value);
    }
  }
  std::size_t size() const { return velo::testing::size_of(type); }
  double at(std::size_t i) const {
    return static_cast<double>(velo::testing::element_at(&bytes[i * size()], type));
  }
};

double distance(const elements& a, const elements& b) {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.bytes.size() / a.size(); ++i) {
    const double off = std::fabs(a.at(i) - b.at(i));
    if (std::isnan(off)) return INFINITY;
    worst = std::fmax(worst, off), largest = std::fmax(largest, std::fabs(b.at(i)));
  }
  return worst / largest;
}

attention_problem problem_of(element_type type, std::int64_t sq, std::int64_t skv, std::int64_t d,
                             std::int64_t dv, const attention_window& window) {
  attention_problem p;
  p.type = type, p.batch = 1, p.heads = 2, p.kv_heads = 1;
  p.d = d, p.dv = dv, p.sq = sq, p.skv = skv;
  p.window = window, p.scale = 1 / std::sqrt(static_cast<float>(d));
  p.q = p.dq = {0, d, sq * d};
  p.k = p.dk = {0, d, skv * d};
  p.v = p.dv_rows = {0, dv, skv * dv};
  p.out = p.dy = {0, dv, sq * dv};
  p.stats = {0, 1, sq};
  return p;
}

struct results {
  elements out, dq, dk, dv;
  std::vector<float> max, sum;
};

// Runs forward and backward on `on`, in the plain loops where it is scalar.
results walk(const attention_problem& p, isa on) {
  const elements q(p.type, 2 * p.sq * p.d, 1), k(p.type, p.skv * p.d, 2),
      v(p.type, p.skv * p.dv, 3), dy(p.type, 2 * p.sq * p.dv, 4);
  const auto rows = static_cast<std::size_t>(2 * p.sq);
  results r{{p.type, 2 * p.sq * p.dv, 0}, {p.type, 2 * p.sq * p.d, 0}, {p.type, p.skv * p.d, 0},
            {p.type, p.skv * p.dv, 0},    std::vector<float>(rows),    std::vector<float>(rows)};
  const attention_tensors forward{q.bytes.data(),     k.bytes.data(), v.bytes.data(),
                                  r.out.bytes.data(), r.max.data(),   r.sum.data()};
  const attention_gradients backward{
      q.bytes.data(), k.bytes.data(), v.bytes.data(),    dy.bytes.data(),   r.out.bytes.data(),
      r.max.data(),   r.sum.data(),   r.dq.bytes.data(), r.dk.bytes.data(), r.dv.bytes.data()};
  if (on == isa::scalar) {
    attention_forward_reference(p, forward, one_by_one());
    attention_backward_reference(p, backward, one_by_one());
    return r;
  }
  const std::size_t bytes =
      std::max(attention_forward_bytes(p, on, 1), attention_backward_bytes(p, on, 1));
  const aligned_memory scratch(bytes);
  attention_forward(p, forward, {on, one_by_one(), scratch.start});
  attention_backward(p, backward, {on, one_by_one(), scratch.start});
  CHECK(scratch.intact());
  return r;
}

}  // namespace

TEST_CASE("both passes of attention agree with the plain loops on every isa") {
  struct sizes {
    std::int64_t sq, skv, d, dv;
  };
  // All keys, causal, a narrow band, one that leaves rows without keys, one that begins late.
  constexpr attention_window windows[] = {
      {}, {unlimited, 0, true}, {37, 5, true}, {-20, 30, false}, {10, -4, true}};
  for (const element_type type : velo::testing::element_types) {
    for (const sizes& s : {sizes{40, 40, 32, 32}, {131, 330, 40, 24}, {70, 600, 128, 80}}) {
      for (const attention_window& window : windows) {
        const attention_problem p = problem_of(type, s.sq, s.skv, s.d, s.dv, window);
        const results wanted = walk(p, isa::scalar);
        for (const isa on : velo::testing::tested_isas(1)) {
          INFO("isa " << static_cast<int>(on) << " type " << static_cast<int>(type) << " sq "
                      << s.sq << " skv " << s.skv << " pre " << window.pre << " next "
                      << window.next);
          const results got = walk(p, on);
          const double bound = type == element_type::f32    ? 2e-5
                               : type == element_type::bf16 ? 2e-2
                                                            : 2e-3;
          CHECK(distance(got.out, wanted.out) <= bound);
          CHECK(distance(got.dq, wanted.dq) <= bound);
          CHECK(distance(got.dk, wanted.dk) <= bound);
          CHECK(distance(got.dv, wanted.dv) <= bound);
        }
      }
    }
  }
}
