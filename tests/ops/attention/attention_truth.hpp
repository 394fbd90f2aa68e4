// The truth of an attention problem, in double, and both calls held against it.
#pragma once

#include <cfloat>

#include "tests/ops/attention/attention_setup.hpp"

namespace velo::testing {

struct truth {
  std::vector<double> out, max, sum, dq, dk, dv;
  std::vector<double> ds;  // [B, N, Sq, Skv]; without lists
};

// The formulas, a row of queries at a time; gradients of sum(out * dy) with the exact softmax.
template <class T>
truth truth_of(const setup& p, const tensors<T>& t) {
  truth r;
  r.out.assign(t.out.size(), 0), r.max.assign(t.max.size(), -static_cast<double>(FLT_MAX));
  r.sum.assign(t.sum.size(), 0);
  r.dq.assign(t.q.size(), 0), r.dk.assign(t.k.size(), 0), r.dv.assign(t.v.size(), 0);
  const auto n = [](std::int64_t x) { return static_cast<std::size_t>(x); };
  if (!p.lists()) r.ds.assign(n(p.batch * p.heads * p.sq * p.skv), 0);
  for (std::int64_t b = 0; b < p.sequences(); ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::int64_t g = h / (p.heads / p.kv_heads), keys = p.kv_length(b);
      for (std::int64_t i = 0; i < p.q_length(b); ++i) {
        const std::size_t q = p.at(true, p.heads, p.d, b, h, i);
        const std::size_t o = p.at(true, p.heads, p.dv, b, h, i);
        std::vector<double> score(n(keys)), prob(n(keys)), slope(n(keys));
        double max = -HUGE_VAL, sum = 0, delta = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          if (!p.visible(b, i, j)) continue;
          const std::size_t k = p.at(false, p.kv_heads, p.d, b, g, j);
          double dot = 0;
          for (std::size_t c = 0; c < n(p.d); ++c) dot += t.q.at(q + c) * t.k.at(k + c);
          score[n(j)] = p.scale * dot + p.addend(b, h, i, j);
          max = std::max(max, score[n(j)]);
        }
        for (std::int64_t j = 0; j < keys; ++j) {
          const bool seen = p.visible(b, i, j) && p.addend(b, h, i, j) > -HUGE_VAL;
          prob[n(j)] = seen ? std::exp(score[n(j)] - max) : 0;
          sum += prob[n(j)];
        }
        if (sum == 0) continue;
        for (std::int64_t copy = 0; copy < p.copies; ++copy) {
          const std::size_t at = p.stats_at(b, h, i) + n(copy);
          r.max[at] = max, r.sum[at] = sum;
        }
        for (std::int64_t j = 0; j < keys; ++j) {
          prob[n(j)] /= sum;
          const std::size_t v = p.at(false, p.kv_heads, p.dv, b, g, j);
          const double by = p.multiplier(b, h, i, j);
          for (std::size_t c = 0; c < n(p.dv); ++c) {
            r.out[o + c] += by * prob[n(j)] * t.v.at(v + c);
            slope[n(j)] += by * t.dy.at(o + c) * t.v.at(v + c);
            r.dv[v + c] += by * prob[n(j)] * t.dy.at(o + c);
          }
          delta += prob[n(j)] * slope[n(j)];
        }
        for (std::int64_t j = 0; j < keys; ++j) {
          const double score_gradient = prob[n(j)] * (slope[n(j)] - delta);
          const double ds = p.scale * score_gradient;
          if (!p.lists()) r.ds[n(((b * p.heads + h) * p.sq + i) * p.skv + j)] = score_gradient;
          const std::size_t k = p.at(false, p.kv_heads, p.d, b, g, j);
          for (std::size_t c = 0; c < n(p.d); ++c) {
            r.dq[q + c] += ds * t.k.at(k + c);
            r.dk[k + c] += ds * t.q.at(q + c);
          }
        }
      }
    }
  }
  return r;
}

inline double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

// Results of bfloat16 have an exp and probabilities of its own precision; those of float16 are
// float32's, rounded once.
template <class T>
constexpr bool is_coarse = std::is_same_v<T, simd::bf16>;

// The gradient reads the output as it was rounded.
template <class T>
constexpr double gradient_error() {
  return is_coarse<T> ? 0x1p-7 : sizeof(T) == 2 ? 0x1p-10 : 4e-6;
}

// Forward and backward of one problem. Bounds are relative to the largest value of a tensor, since
// sums of many products of either sign have no better bound.
template <class T>
void check(session& s, const setup& p) {
  INFO("layout " << p.layout << " mode " << p.mode << " B " << p.batch << " N " << p.heads << "/"
                 << p.kv_heads << " S " << p.sq << "/" << p.skv << " D " << p.d << "/" << p.dv
                 << " bytes " << sizeof(T));
  tensors<T> t(p);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  const truth want = truth_of(p, t);
  const double loose = gradient_error<T>();
  require_close(t.out, want.out, rounding<T>(), (is_coarse<T> ? 0x1p-7 : 4e-6) * largest(want.out));
  require_close(t.max, want.max, 1e-6, 1e-5);
  require_close(t.sum, want.sum, is_coarse<T> ? 2e-4 : 4e-6, 0);
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  // Terms cancel in dS: the bound follows the largest gradient of the call, not the element.
  const double scale = largest(want.dq) + largest(want.dk) + largest(want.dv);
  require_close(t.dq, want.dq, 2 * rounding<T>(), loose * scale);
  require_close(t.dk, want.dk, 2 * rounding<T>(), loose * scale);
  require_close(t.dv, want.dv, 2 * rounding<T>(), loose * largest(want.dv));
}

// Kernels for bfloat16 alone refuse float32 and float16 when they are forced.
template <class T>
bool serves(session& s) {
  setup p;
  tensors<T> t(p);
  return velo_fusion_attention(s.stream(), &t.forward) == VELO_OK &&
         velo_fusion_attention_backward(s.stream(), &t.backward) == VELO_OK;
}
inline bool serves_all(session& s) {
  const bool float32 = serves<float>(s), float16 = serves<simd::f16>(s);
  CHECK(float32 == float16);
  return float32;
}

// Makes the gradient run on the kernel that is forced for the forward.
inline void take_same_kernel(session& s) {
  char name[64] = "";
  VELO_RUN(
      velo_config_get(s.context(), "kernel.fusion_attention", name, sizeof name, nullptr, nullptr));
  VELO_RUN(velo_config_set(s.context(), "kernel.fusion_attention_backward", name));
}

}  // namespace velo::testing
