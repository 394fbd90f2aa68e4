// Gradients of keys in float32 of 16-bit attention: sums over calls that are rounded once.
#include <vector>

#include "tests/ops/attention/attention_truth.hpp"

using namespace velo;
using namespace velo::testing;
using simd::bf16;
using simd::f16;

namespace {

// Some rows of a compact tensor [1, rows, heads, size].
struct rows_view {
  rows_view(const velo_tensor& of, std::int64_t first, std::int64_t last)
      : shape{1, last - first, of.shape[2], of.shape[3]}, tensor(of) {
    tensor.shape = shape;
    tensor.byte_offset =
        static_cast<std::uint64_t>(first * shape[2] * shape[3] * (of.dtype.bits / 8));
  }
  rows_view(const rows_view&) = delete;
  std::int64_t shape[4];
  velo_tensor tensor;
};

setup causal() {
  setup p = make(VELO_ATTENTION_LAYOUT_BSND, 1, 4, 2, 192, 192, 32, 32);
  p.mode = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL;
  return p;
}

// The gradient of `rows` queries, of the keys before their end, added to dk and dv.
template <class T, class D>
void add_split(session& s, const setup& p, tensors<T>& t, std::int64_t begin, std::int64_t end,
               array<D>& dk, array<D>& dv) {
  const rows_view q(*t.q.tensor(), begin, end), dy(*t.dy.tensor(), begin, end),
      out(*t.out.tensor(), begin, end), dq(*t.dq.tensor(), begin, end), k(*t.k.tensor(), 0, end),
      v(*t.v.tensor(), 0, end), to_k(*dk.tensor(), 0, end), to_v(*dv.tensor(), 0, end);
  array<float> max({1, p.heads, end - begin}), sum({1, p.heads, end - begin});
  for (std::int64_t h = 0; h < p.heads; ++h)
    for (std::int64_t row = begin; row < end; ++row) {
      const auto to = static_cast<std::size_t>(h * (end - begin) + row - begin);
      max[to] = t.max[p.stats_at(0, h, row)], sum[to] = t.sum[p.stats_at(0, h, row)];
    }
  velo_fusion_attention_backward_args a = t.backward;
  a.query = &q.tensor, a.key = &k.tensor, a.value = &v.tensor, a.dy = &dy.tensor;
  a.attention_out = &out.tensor, a.softmax_max = max.tensor(), a.softmax_sum = sum.tensor();
  a.dquery = &dq.tensor, a.dkey = &to_k.tensor, a.dvalue = &to_v.tensor;
  a.sparse_mode = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL, a.accumulate = 1;
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &a));
}

// The root mean square error of values that are rounded to T.
template <class T, class D>
double error_of(const array<D>& got, const std::vector<double>& want) {
  double sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    T rounded;
    simd::assign(rounded, got.at(i));
    const double each = value_of(rounded) - want[i];
    sum += each * each;
  }
  return std::sqrt(sum / static_cast<double>(got.size()));
}

struct errors {
  double dk, dv;
};

// Of the gradient computed split by split, the last one first, and summed in D.
template <class T, class D>
errors errors_of_splits(session& s, const setup& p, tensors<T>& t, const truth& want,
                        std::int64_t splits) {
  array<D> dk({1, p.skv, p.kv_heads, p.d}), dv({1, p.skv, p.kv_heads, p.dv});
  dk.fill(1, 0), dv.fill(1, 0);
  for (std::int64_t i = splits; i-- > 0;)
    add_split(s, p, t, i * p.sq / splits, (i + 1) * p.sq / splits, dk, dv);
  CHECK(dk.intact());
  CHECK(dv.intact());
  return {error_of<T>(dk, want.dk), error_of<T>(dv, want.dv)};
}

template <class T>
void check_splits(session& s) {
  const setup p = causal();
  tensors<T> t(p);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  const truth want = truth_of(p, t);
  const errors whole = {error_of<T>(t.dk, want.dk), error_of<T>(t.dv, want.dv)};
  for (const std::int64_t splits : {1, 3, 48}) {
    CAPTURE(splits);
    const errors exact = errors_of_splits<T, float>(s, p, t, want, splits);
    CHECK(exact.dk <= 1.05 * whole.dk);
    CHECK(exact.dv <= 1.05 * whole.dv);
  }
  // Sums of 16 bits round each time.
  const errors rounded = errors_of_splits<T, T>(s, p, t, want, 48);
  CHECK(rounded.dk > 1.5 * whole.dk);
  CHECK(rounded.dv > 1.5 * whole.dv);
}

}  // namespace

TEST_CASE("float32 dkey and dvalue of splits are as exact as those of one call") {
  for_each_kernel("fusion_attention_backward", [](session& s) { check_splits<bf16>(s); });
}

TEST_CASE("float32 dkey and dvalue have the bits of a call that writes them, rounded") {
  session s;
  const setup p = causal();
  tensors<bf16> t(p);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  const auto dq = t.dq.bytes();
  array<float> dk({1, p.skv, p.kv_heads, p.d}), dv({1, p.skv, p.kv_heads, p.dv});
  auto a = t.backward;
  a.dkey = dk.tensor(), a.dvalue = dv.tensor();
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &a));
  CHECK(t.dq.bytes() == dq);
  for (std::size_t i = 0; i < dk.size(); ++i) {
    bf16 rounded_key, rounded_value;
    simd::assign(rounded_key, dk.at(i)), simd::assign(rounded_value, dv.at(i));
    REQUIRE(value_of(rounded_key) == t.dk.at(i));
    REQUIRE(value_of(rounded_value) == t.dv.at(i));
  }
}

TEST_CASE("dvalue must have the dtype of dkey, and both the key's or float32") {
  session s;
  const setup p = causal();
  tensors<bf16> t(p);
  array<float> exact({1, p.skv, p.kv_heads, p.d});
  array<f16> other({1, p.skv, p.kv_heads, p.d});
  const auto refused = [&](const velo_tensor* dkey, const velo_tensor* dvalue, const char* field) {
    auto a = t.backward;
    a.dkey = dkey, a.dvalue = dvalue;
    CHECK(velo_fusion_attention_backward(s.stream(), &a) == VELO_ERR_DTYPE);
    CHECK(last_record().argument == field);
  };
  refused(exact.tensor(), t.dv.tensor(), "args.dvalue.dtype");
  refused(t.dk.tensor(), exact.tensor(), "args.dvalue.dtype");
  refused(other.tensor(), t.dv.tensor(), "args.dkey.dtype");
}
