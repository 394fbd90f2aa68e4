// unpad_rope against its formula in double: every kernel, heads and lengths, the true gradient,
// that of AscendSpeed, finite differences, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct setup {
  std::vector<std::int32_t> lengths;
  std::int64_t positions, width, q_heads, k_heads;
  std::int64_t tokens() const {
    std::int64_t total = 0;
    for (const std::int64_t length : lengths) total += length;
    return total;
  }
};

enum class formula { forward, gradient, upstream };

// The formula for every head of every token of x.
template <class T>
std::vector<double> turned(const array<T>& x, const setup& c, const array<float>& cos,
                           const array<float>& sin, std::int64_t heads, formula how) {
  std::vector<double> out(x.size());
  const auto d = static_cast<std::size_t>(c.width), half = d / 2;
  std::size_t at = 0;
  for (const std::int32_t length : c.lengths) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(length); ++j) {
      for (std::int64_t h = 0; h < heads; ++h, at += d) {
        for (std::size_t i = 0; i < half; ++i) {
          const double a = x.at(at + i), b = x.at(at + half + i);
          const double c1 = cos.at(j * d + i), c2 = cos.at(j * d + half + i);
          const double s1 = sin.at(j * d + i), s2 = sin.at(j * d + half + i);
          out[at + i] = a * c1 + (how == formula::forward    ? -b * s1
                                  : how == formula::gradient ? b * s2
                                                             : a * s2);
          out[at + half + i] = b * c2 + (how == formula::forward    ? a * s2
                                         : how == formula::gradient ? -a * s1
                                                                    : -b * s1);
        }
      }
    }
  }
  return out;
}

template <class T>
void check(session& s, const setup& c) {
  INFO("positions " << c.positions << ", D " << c.width << ", bytes " << sizeof(T));
  const std::int64_t tokens = c.tokens();
  array<T> q({tokens, c.q_heads * c.width}), k({tokens, c.k_heads * c.width});
  array<T> q_out({tokens, c.q_heads * c.width}), k_out({tokens, c.k_heads * c.width});
  array<float> cos({c.positions, c.width}), sin({c.positions, c.width});
  array<std::int32_t> lengths({static_cast<std::int64_t>(c.lengths.size())});
  std::copy(c.lengths.begin(), c.lengths.end(), lengths.data());
  q.fill(1), k.fill(2), cos.fill(3), sin.fill(4);
  velo_unpad_rope_args f = VELO_UNPAD_ROPE_ARGS_INIT;
  f.q = q.tensor(), f.k = k.tensor(), f.cos = cos.tensor(), f.sin = sin.tensor();
  f.seq_len = lengths.tensor(), f.q_out = q_out.tensor(), f.k_out = k_out.tensor();
  VELO_RUN(velo_unpad_rope(s.stream(), &f));
  require_close(q_out, turned(q, c, cos, sin, c.q_heads, formula::forward), rounding<T>(), 1e-6);
  require_close(k_out, turned(k, c, cos, sin, c.k_heads, formula::forward), rounding<T>(), 1e-6);
  velo_unpad_rope_backward_args b = VELO_UNPAD_ROPE_BACKWARD_ARGS_INIT;
  b.dq_out = q.tensor(), b.dk_out = k.tensor(), b.cos = cos.tensor(), b.sin = sin.tensor();
  b.seq_len = lengths.tensor(), b.dq = q_out.tensor(), b.dk = k_out.tensor();
  VELO_RUN(velo_unpad_rope_backward(s.stream(), &b));
  require_close(q_out, turned(q, c, cos, sin, c.q_heads, formula::gradient), rounding<T>(), 1e-6);
  require_close(k_out, turned(k, c, cos, sin, c.k_heads, formula::gradient), rounding<T>(), 1e-6);
  b.upstream = 1;
  VELO_RUN(velo_unpad_rope_backward(s.stream(), &b));
  require_close(q_out, turned(q, c, cos, sin, c.q_heads, formula::upstream), rounding<T>(), 1e-6);
  require_close(k_out, turned(k, c, cos, sin, c.k_heads, formula::upstream), rounding<T>(), 1e-6);
}

}  // namespace

TEST_CASE("unpad_rope and its gradients agree with the formula for every kernel, size and dtype") {
  for (const char* op : {"unpad_rope", "unpad_rope_backward"}) {
    for_each_kernel(op, [](session& s) {
      check<float>(s, {{3, 0, 7, 1}, 9, 24, 4, 2});
      check<float>(s, {{5}, 5, 2, 1, 1});
      check<bf16>(s, {{100, 33}, 128, 128, 8, 8});
      check<f16>(s, {{100, 33}, 128, 128, 8, 8});
      check<float>(s, {{}, 5, 8, 2, 1});
      check<float>(s, {{0, 0}, 5, 8, 2, 1});
    });
  }
}

TEST_CASE("the gradient of unpad_rope is its slope") {
  session s(1, R"({"level": 0})");
  array<float> q({5, 8}), k({5, 4}), q_out({5, 8}), k_out({5, 4}), dq({5, 8}), dk({5, 4});
  array<float> dq_out({5, 8}), dk_out({5, 4}), cos({3, 4}), sin({3, 4});
  array<std::int64_t> lengths({2});
  lengths[0] = 2, lengths[1] = 3;
  q.fill(1), k.fill(2), cos.fill(3), sin.fill(4), dq_out.fill(5), dk_out.fill(6);
  velo_unpad_rope_args f = VELO_UNPAD_ROPE_ARGS_INIT;
  f.q = q.tensor(), f.k = k.tensor(), f.cos = cos.tensor(), f.sin = sin.tensor();
  f.seq_len = lengths.tensor(), f.q_out = q_out.tensor(), f.k_out = k_out.tensor();
  velo_unpad_rope_backward_args b = VELO_UNPAD_ROPE_BACKWARD_ARGS_INIT;
  b.dq_out = dq_out.tensor(), b.dk_out = dk_out.tensor(), b.cos = f.cos, b.sin = f.sin;
  b.seq_len = f.seq_len, b.dq = dq.tensor(), b.dk = dk.tensor();
  VELO_RUN(velo_unpad_rope_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_unpad_rope(s.stream(), &f));
    double sum = 0;
    for (std::size_t i = 0; i < q_out.size(); ++i) sum += q_out.at(i) * dq_out.at(i);
    for (std::size_t i = 0; i < k_out.size(); ++i) sum += k_out.at(i) * dk_out.at(i);
    return sum;
  };
  check_slope(q, dq, objective);
  check_slope(k, dk, objective);
}

TEST_CASE("unpad_rope refuses what does not fit, by name") {
  session s;
  array<float> q({5, 8}), k({5, 4}), q_out({5, 8}), k_out({5, 4}), cos({3, 4}), wide({3, 8});
  array<float> odd({3, 3}), short_k({4, 4});
  array<std::int64_t> lengths({2}), longer({2}), less({2});
  lengths[0] = 2, lengths[1] = 3, longer[0] = 1, longer[1] = 4, less[0] = 1, less[1] = 3;
  using args = velo_unpad_rope_args;
  args valid = VELO_UNPAD_ROPE_ARGS_INIT;
  valid.q = q.tensor(), valid.k = k.tensor(), valid.cos = cos.tensor(), valid.sin = cos.tensor();
  valid.seq_len = lengths.tensor(), valid.q_out = q_out.tensor(), valid.k_out = k_out.tensor();
  check_refusals(
      s, velo_unpad_rope, valid, q_out,
      {{[&](args& f) { f.seq_len = longer.tensor(); }, VELO_ERR_ARGUMENT, "args.seq_len"},
       {[&](args& f) { f.seq_len = less.tensor(); }, VELO_ERR_ARGUMENT, "args.seq_len"},
       {[&](args& f) { f.k = short_k.tensor(); }, VELO_ERR_SHAPE, "args.k.shape"},
       {[&](args& f) { f.sin = wide.tensor(); }, VELO_ERR_SHAPE, "args.sin.shape"},
       {[&](args& f) { f.cos = f.sin = odd.tensor(); }, VELO_ERR_SHAPE, "args.cos.shape"},
       {[&](args& f) { f.cos = f.sin = wide.tensor(); }, VELO_ERR_SHAPE, "args.k.shape"}});
}
