// Attention over a cache in plain loops with sums in double.
#include <cmath>
#include <vector>

#include "core/simd/scalar.hpp"
#include "ops/attention/cache.hpp"
#include "ops/attention/cached_attention.hpp"
#include "ops/attention/engine/attention_plan.hpp"

namespace velo::ops {
namespace {

double number(std::int8_t x) {
  return x;
}
template <class T>
double number(T x) {
  return static_cast<double>(simd::to_float(x));
}

double scale_at(const float* scales, std::int64_t at) {
  return scales == nullptr ? 1 : static_cast<double>(scales[at]);
}

template <class T, class E>
class plain_row {
 public:
  plain_row(const cached_sequence& s, std::int64_t kv_head, std::int64_t row)
      : s_(s),
        p_(s.p),
        kv_head_(kv_head),
        first_(s.first_key(row)),
        last_(s.last_key(row)),
        q_(static_cast<const T*>(s.t.q) + new_row(s.p, s.p.q, s.index, kv_head, row)),
        out_(static_cast<T*>(s.t.out) + new_row(s.p, s.p.out, s.index, kv_head, row)) {}

  void operator()() const {
    std::vector<double> out(static_cast<std::size_t>(p_.dv));
    double max = -HUGE_VAL, sum = 0;
    for (std::int64_t j = first_; j < last_; ++j) max = std::fmax(max, score(j));
    for (std::int64_t j = first_; j < last_; ++j) {
      const double s = score(j), e = std::isinf(s) && s < 0 ? 0 : std::exp(s - max);
      const E* v = static_cast<const E*>(s_.t.v) + s_.row(p_.v, kv_head_, j);
      const double by = e * scale_at(s_.t.value_scale, s_.row(p_.value_scale, kv_head_, j));
      sum += e;
      for (std::size_t c = 0; c < out.size(); ++c) out[c] += by * number(v[c]);
    }
    for (std::size_t c = 0; c < out.size(); ++c) simd::assign(out_[c], sum == 0 ? 0 : out[c] / sum);
  }

 private:
  double score(std::int64_t j) const {
    const E* k = static_cast<const E*>(s_.t.k) + s_.row(p_.k, kv_head_, j);
    double dot = 0;
    for (std::int64_t c = 0; c < p_.d; ++c) dot += number(q_[c]) * number(k[c]);
    dot *= scale_at(s_.t.key_scale, s_.row(p_.key_scale, kv_head_, j));
    return static_cast<double>(static_cast<float>(static_cast<double>(p_.scale) * dot));
  }

  const cached_sequence& s_;
  const cache_problem& p_;
  std::int64_t kv_head_, first_, last_;
  const T* q_;
  T* out_;
};

template <class T, class E>
void all_rows(const cache_problem& p, const cache_tensors& t, const core::parallel& threads) {
  threads(p.batch * p.kv_heads, [&](std::int64_t task, int) {
    const cached_sequence s(p, t, task / p.kv_heads);
    for (std::int64_t row = 0; row < p.rows(); ++row) plain_row<T, E>(s, task % p.kv_heads, row)();
  });
}

template <class T>
void with_query(const cache_problem& p, const cache_tensors& t, const core::parallel& threads) {
  p.narrow ? all_rows<T, std::int8_t>(p, t, threads) : all_rows<T, T>(p, t, threads);
}

}  // namespace

void cached_attention_reference(const cache_problem& p, const cache_tensors& t,
                                const core::parallel& threads) {
  if (p.type == element_type::f32) return with_query<float>(p, t, threads);
  if (p.type == element_type::f16) return with_query<simd::f16>(p, t, threads);
  with_query<simd::bf16>(p, t, threads);
}

namespace reference {
extern const cached_attention_kernels cached_attention{};
}

}  // namespace velo::ops
