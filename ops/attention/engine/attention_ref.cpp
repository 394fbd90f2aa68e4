// Attention in plain loops with sums in double: the reference for the kernels, and the code for
// processors without AVX2. Scores are recomputed wherever they are needed, so there is no scratch.
// Cost: O(Sq Skv D) a head, some hundred times slower than the kernels.
#include <cfloat>
#include <cmath>
#include <vector>

#include "core/simd/scalar.hpp"
#include "ops/attention/engine/attention_tile.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t largest_head = 512;

template <class T>
const T* row_at(const attention_problem& p, const void* data, const attention_strides& strides,
                std::int64_t b, std::int64_t first, std::int64_t head, std::int64_t row) {
  return static_cast<const T*>(data) + offset_of(p, strides, b, first, head) + row * strides.token;
}

template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(simd::to_float(a[i])) * static_cast<double>(simd::to_float(b[i]));
  }
  return sum;
}

template <class T>
void add(double* to, double factor, const T* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] += factor * static_cast<double>(simd::to_float(row[i]));
}

template <class T>
void put(void* data, std::int64_t start, const double* from, std::int64_t n, bool add = false) {
  for (std::int64_t i = 0; i < n; ++i) {
    T& to = static_cast<T*>(data)[start + i];
    simd::assign(to, from[i] + (add ? static_cast<double>(simd::to_float(to)) : 0));
  }
}

// Results are of T or float32.
template <class T>
void put_result(bool is_float, void* data, std::int64_t start, const double* from, std::int64_t n,
                bool add) {
  is_float ? put<float>(data, start, from, n, add) : put<T>(data, start, from, n, add);
}

// A score as the kernels round it, so that a difference from the saved maximum is exact.
template <class T>
double score_of(const attention_problem& p, const pair_terms& terms, const T* q, const T* k) {
  const auto addend = static_cast<double>(terms.addend);
  if (std::isinf(addend)) return addend;
  const double product = static_cast<double>(p.scale) * dot(q, k, p.d);
  return static_cast<double>(static_cast<float>(product + addend));
}

template <class T>
void forward_row(const attention_problem& p, const attention_tensors& t,
                 const attention_sequence& s, std::int64_t b, std::int64_t head, std::int64_t row) {
  const std::int64_t kv_head = head / (p.heads / p.kv_heads);
  const std::int64_t first = s.keys.first(row), last = s.keys.last(row);
  const T* q = row_at<T>(p, t.q, p.q, b, s.q_first, head, row);
  const auto score = [&](std::int64_t j) {
    return score_of(p, terms_of(p, s, b, head, row, j), q,
                    row_at<T>(p, t.k, p.k, b, s.kv_first, kv_head, j));
  };
  const std::int64_t stats = statistics_of(p, s, b, head, row).first;
  const bool goes_on = t.before != nullptr && t.sum[stats] != 0;
  double max = goes_on ? static_cast<double>(t.max[stats]) : -HUGE_VAL, sum = 0;
  double out[largest_head] = {};
  for (std::int64_t j = first; j < last; ++j) max = std::fmax(max, score(j));
  if (goes_on) {
    sum = static_cast<double>(t.sum[stats]) * std::exp(static_cast<double>(t.max[stats]) - max);
    add(out, sum, row_at<float>(p, t.before, p.before, b, s.q_first, head, row), p.dv);
  }
  for (std::int64_t j = first; j < last; ++j) {
    const double from_max = score(j) - max;
    const double e = std::isinf(score(j)) && score(j) < 0 ? 0 : std::exp(from_max);
    sum += e;
    const double kept = e * static_cast<double>(terms_of(p, s, b, head, row, j).multiplier);
    add(out, kept, row_at<T>(p, t.v, p.v, b, s.kv_first, kv_head, j), p.dv);
  }
  for (std::int64_t i = 0; i < p.dv && sum != 0; ++i) out[i] /= sum;
  put_result<T>(p.float_results, t.out, offset_of(p, p.out, b, s.q_first, head) + row * p.out.token,
                out, p.dv, false);
  for (int i = 0; i < p.copies; ++i) {
    if (t.max != nullptr) t.max[stats + i] = sum != 0 ? static_cast<float>(max) : -FLT_MAX;
    if (t.sum != nullptr) t.sum[stats + i] = static_cast<float>(sum);
  }
}

// The probability, after dropout too, and the gradient of the score of one pair.
struct element {
  double kept, ds;
};

template <class T>
class gradient_row {  // one row of queries
 public:
  gradient_row(const attention_problem& p, const attention_gradients& t,
               const attention_sequence& s, std::int64_t b, std::int64_t head, std::int64_t row)
      : p_(p),
        t_(t),
        s_(s),
        b_(b),
        head_(head),
        row_(row),
        kv_head_(head / (p.heads / p.kv_heads)) {
    const std::int64_t stats = statistics_of(p, s, b, head, row).first;
    q = row_at<T>(p, t.q, p.q, b, s.q_first, head, row);
    dy = row_at<T>(p, t.dy, p.dy, b, s.q_first, head, row);
    max_ = static_cast<double>(t.max[stats]);
    sum_ = static_cast<double>(t.sum[stats]);
    delta_ = t.dots != nullptr ? static_cast<double>(t.dots[stats])
                               : dot(dy, row_at<T>(p, t.out, p.out, b, s.q_first, head, row), p.dv);
  }

  element at(std::int64_t j) const {
    const T* k = row_at<T>(p_, t_.k, p_.k, b_, s_.kv_first, kv_head_, j);
    const T* v = row_at<T>(p_, t_.v, p_.v, b_, s_.kv_first, kv_head_, j);
    const pair_terms terms = terms_of(p_, s_, b_, head_, row_, j);
    const double score = score_of(p_, terms, q, k);
    if (sum_ == 0 || (std::isinf(score) && score < 0)) return {0, 0};
    const double p = std::exp(score - max_) / sum_, by = static_cast<double>(terms.multiplier);
    return {p * by, p * (by * dot(dy, v, p_.dv) - delta_)};
  }

  const T *q, *dy;

 private:
  const attention_problem& p_;
  const attention_gradients& t_;
  const attention_sequence& s_;
  std::int64_t b_, head_, row_, kv_head_;
  double max_, sum_, delta_;
};

template <class T>
void gradient_of_query(const attention_problem& p, const attention_gradients& t,
                       const attention_sequence& s, std::int64_t b, std::int64_t head,
                       std::int64_t row) {
  const gradient_row<T> at(p, t, s, b, head, row);
  const std::int64_t kv_head = head / (p.heads / p.kv_heads);
  double dq[largest_head] = {};
  for (std::int64_t j = s.keys.first(row); j < s.keys.last(row); ++j) {
    add(dq, static_cast<double>(p.scale) * at.at(j).ds,
        row_at<T>(p, t.k, p.k, b, s.kv_first, kv_head, j), p.d);
  }
  put_result<T>(p.float_results, t.dq, offset_of(p, p.dq, b, s.q_first, head) + row * p.dq.token,
                dq, p.d, p.accumulate_q);
}

template <class T>
void gradient_of_key(const attention_problem& p, const attention_gradients& t,
                     const attention_sequence& s, std::int64_t b, std::int64_t kv_head,
                     std::int64_t j) {
  const std::int64_t group = p.heads / p.kv_heads;
  double dk[largest_head] = {}, dv[largest_head] = {};
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t row = s.keys.first_row(j); row < s.keys.last_row(j); ++row) {
      const gradient_row<T> at(p, t, s, b, head, row);
      const element e = at.at(j);
      add(dk, static_cast<double>(p.scale) * e.ds, at.q, p.d);
      add(dv, e.kept, at.dy, p.dv);
    }
  }
  const bool is_float = p.float_results || p.float_keys;
  put_result<T>(is_float, t.dk, offset_of(p, p.dk, b, s.kv_first, kv_head) + j * p.dk.token, dk,
                p.d, p.accumulate);
  put_result<T>(is_float, t.dv,
                offset_of(p, p.dv_rows, b, s.kv_first, kv_head) + j * p.dv_rows.token, dv, p.dv,
                p.accumulate);
}

// A row of dpse: dS of the pairs that share an element, of one row of queries or of all.
template <class T>
void gradient_of_pse(const attention_problem& p, const attention_gradients& t, std::int64_t batch,
                     std::int64_t head, std::int64_t row) {
  const score_tensor& to = p.dpse;
  const auto last = [](std::int64_t stride, std::int64_t entry, std::int64_t count) {
    return stride > 0 ? entry + 1 : count;
  };
  std::vector<double> sums(static_cast<std::size_t>(p.skv));
  for (std::int64_t b = batch; b < last(to.batch, batch, p.batch); ++b) {
    const attention_sequence s = sequence_of(p, b);
    for (std::int64_t h = head; h < last(to.head, head, p.heads); ++h) {
      for (std::int64_t i = row; i < last(to.row, row, p.sq); ++i) {
        const gradient_row<T> at(p, t, s, b, h, i);
        for (std::int64_t j = s.keys.first(i); j < s.keys.last(i); ++j)
          sums[static_cast<std::size_t>(j)] += at.at(j).ds;
      }
    }
  }
  for (double& sum : sums) sum *= static_cast<double>(p.terms->factor);
  put<T>(t.dpse, batch * to.batch + head * to.head + row * to.row, sums.data(), p.skv);
}

template <class T>
void gradients_of_pse(const attention_problem& p, const attention_gradients& t) {
  const auto entries = [](std::int64_t stride, std::int64_t count) {
    return stride > 0 ? count : std::int64_t{1};
  };
  for (std::int64_t b = 0; b < entries(p.dpse.batch, p.batch); ++b)
    for (std::int64_t h = 0; h < entries(p.dpse.head, p.heads); ++h)
      for (std::int64_t i = 0; i < entries(p.dpse.row, p.sq); ++i)
        gradient_of_pse<T>(p, t, b, h, i);
}

template <class T>
void forward(const attention_problem& p, const attention_tensors& t,
             const core::parallel& threads) {
  threads(p.batch * p.heads, [&](std::int64_t task, int) {
    const std::int64_t b = task / p.heads;
    const attention_sequence s = sequence_of(p, b);
    for (std::int64_t row = 0; row < s.sq; ++row) forward_row<T>(p, t, s, b, task % p.heads, row);
  });
}

template <class T>
void backward(const attention_problem& p, const attention_gradients& t,
              const core::parallel& threads) {
  threads(p.batch * p.heads, [&](std::int64_t task, int) {
    const std::int64_t b = task / p.heads;
    const attention_sequence s = sequence_of(p, b);
    for (std::int64_t row = 0; row < s.sq; ++row) {
      gradient_of_query<T>(p, t, s, b, task % p.heads, row);
    }
  });
  threads(p.batch * p.kv_heads, [&](std::int64_t task, int) {
    const std::int64_t b = task / p.kv_heads;
    const attention_sequence s = sequence_of(p, b);
    for (std::int64_t j = 0; j < s.skv; ++j) gradient_of_key<T>(p, t, s, b, task % p.kv_heads, j);
  });
  if (t.dpse != nullptr) gradients_of_pse<T>(p, t);
}

}  // namespace

void attention_forward_reference(const attention_problem& problem, const attention_tensors& tensors,
                                 const core::parallel& threads) {
  with_elements(problem, [&](auto x) { forward<decltype(x)>(problem, tensors, threads); });
}

void attention_backward_reference(const attention_problem& problem,
                                  const attention_gradients& tensors,
                                  const core::parallel& threads) {
  with_elements(problem, [&](auto x) { backward<decltype(x)>(problem, tensors, threads); });
}

namespace reference {
extern const attention_kernels attention{};
}

}  // namespace velo::ops
