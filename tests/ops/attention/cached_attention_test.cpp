// cached_attention for every kernel against its formula in double: dtypes of query and cache,
// lengths, windows, heads that share keys, one read of keys for values; the same bits from pages as
// from rows side by side, whole, in chunks or token by token, and on any number of threads;
// refusals.
#include <numeric>

#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

constexpr std::int64_t all_keys = 2147483647;

struct cache_sizes {
  std::int64_t batch, sq, heads, kv_heads, skv, d, dv;
  std::vector<std::int32_t> lengths;
  std::int64_t pre = all_keys;
};

template <class E>
void fill_cache(array<E>& a, std::uint64_t seed) {
  a.fill(seed);
}
void fill_cache(array<std::int8_t>& a, std::uint64_t seed) {
  cheap_random64 draw(seed);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(draw() >> 56);
}
template <class E>
double number(E x) {
  return value_of(x);
}
double number(std::int8_t x) {
  return x;
}

// Queries of type T over a cache of type E, one page a sequence.
template <class T, class E>
struct cache_call {
  cache_sizes z;
  array<T> q, out;
  array<E> k, v;
  array<float> key_scale, value_scale;
  array<std::int32_t> lengths;
  velo_cached_attention_args args = VELO_CACHED_ATTENTION_ARGS_INIT;

  explicit cache_call(const cache_sizes& sizes)
      : z(sizes),
        q({z.batch, z.sq, z.heads, z.d}),
        out({z.batch, z.sq, z.heads, z.dv}),
        k({z.batch, z.skv, z.kv_heads, z.d}),
        v({z.batch, z.skv, z.kv_heads, z.dv}),
        key_scale({z.batch, z.skv, z.kv_heads}),
        value_scale({z.batch, z.skv, z.kv_heads}),
        lengths({z.batch}) {
    q.fill(1), fill_cache(k, 2), fill_cache(v, 3);
    key_scale.fill(4, 1.0 / 127), value_scale.fill(5, 1.0 / 127);
    if (z.lengths.empty()) z.lengths.assign(static_cast<std::size_t>(z.batch), int(z.skv));
    std::copy(z.lengths.begin(), z.lengths.end(), lengths.data());
    args.query = q.tensor(), args.key = k.tensor(), args.value = v.tensor();
    args.attention_out = out.tensor(), args.cache_seqlens = lengths.tensor();
    args.scale = 0.3, args.pre_tokens = z.pre;
    if (!narrow) return;
    args.key_scale = key_scale.tensor(), args.value_scale = value_scale.tensor();
  }
  static constexpr bool narrow = std::is_same_v<E, std::int8_t>;

  std::size_t cache_row(std::int64_t b, std::int64_t j, std::int64_t g) const {
    return static_cast<std::size_t>((b * z.skv + j) * z.kv_heads + g);
  }
  std::vector<double> truth() const {
    std::vector<double> r;
    for (std::int64_t b = 0; b < z.batch; ++b)
      for (std::int64_t i = 0; i < z.sq; ++i)
        for (std::int64_t h = 0; h < z.heads; ++h) add_row(b, i, h, r);
    return r;
  }

 private:
  void add_row(std::int64_t b, std::int64_t i, std::int64_t h, std::vector<double>& to) const {
    const std::int64_t g = h / (z.heads / z.kv_heads);
    const std::int64_t own = z.lengths[static_cast<std::size_t>(b)] - z.sq + i;
    const auto d = static_cast<std::size_t>(z.d), dv = static_cast<std::size_t>(z.dv);
    const std::size_t row = static_cast<std::size_t>((b * z.sq + i) * z.heads + h) * d;
    std::vector<double> out(dv);
    double sum = 0;
    for (std::int64_t j = std::max<std::int64_t>(0, own - z.pre); j <= own; ++j) {
      const std::size_t at = cache_row(b, j, g);
      double dot = 0;
      for (std::size_t c = 0; c < d; ++c) dot += q.at(row + c) * number(k.data()[at * d + c]);
      if (narrow) dot *= key_scale.at(at);
      const double e = std::exp(args.scale * dot - 20);
      sum += e;
      const double by = e * (narrow ? value_scale.at(at) : 1);
      for (std::size_t c = 0; c < dv; ++c) out[c] += by * number(v.data()[at * dv + c]);
    }
    for (const double x : out) to.push_back(sum == 0 ? 0 : x / sum);
  }
};

template <class T, class E>
void check_truth(session& s, const cache_sizes& z) {
  INFO("Sq " << z.sq << " D " << z.d << " bytes " << sizeof(T) << " and " << sizeof(E));
  cache_call<T, E> c(z);
  VELO_RUN(velo_cached_attention(s.stream(), &c.args));
  const std::vector<double> want = c.truth();
  require_close(c.out, want, rounding<T>(), (is_coarse<T> ? 0x1p-7 : 2e-6) * largest(want));
}

template <class T, class E>
void check_truths(session& s) {
  check_truth<T, E>(s, {2, 1, 4, 2, 150, 24, 40, {}});
  check_truth<T, E>(s, {3, 5, 6, 2, 131, 67, 33, {0, 3, 131}});
  check_truth<T, E>(s, {2, 3, 1, 1, 700, 32, 128, {700, 513}, 37});
  check_truth<T, E>(s, {1, 1, 5, 1, 140, 576, 512, {}});
  check_truth<T, E>(s, {1, 20, 8, 1, 150, 16, 16, {}});
}

// The same cache in pages of so many tokens, in another order.
template <class T, class E>
void check_pages(session& s, std::int64_t tokens) {
  const cache_sizes z{3, 2, 4, 2, 600, 64, 48, {600, 1, 530}};
  cache_call<T, E> whole(z);
  VELO_RUN(velo_cached_attention(s.stream(), &whole.args));
  const std::int64_t of_sequence = (z.skv + tokens - 1) / tokens, pages = 3 * of_sequence + 2;
  array<E> k({pages, tokens, 2, z.d}), v({pages, tokens, 2, z.dv});
  array<float> key_scale({pages, tokens, 2}), value_scale({pages, tokens, 2}), unused({1});
  array<std::int32_t> table({3, of_sequence});
  const auto copy = [](const auto& from, std::size_t row, auto& to, std::size_t at, std::size_t n) {
    std::copy_n(from.data() + row * n, n, to.data() + at * n);
  };
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t p = 0; p < of_sequence; ++p) {
      const std::int64_t page = (5 * (b * of_sequence + p) + 1) % pages;
      const bool used = p * tokens < z.lengths[static_cast<std::size_t>(b)];
      table[static_cast<std::size_t>(b * of_sequence + p)] = used ? int(page) : -1;
      for (std::int64_t i = 0; i < tokens && p * tokens + i < z.skv; ++i)
        for (std::int64_t g = 0; g < 2; ++g) {
          const std::size_t from = whole.cache_row(b, p * tokens + i, g);
          const auto to = static_cast<std::size_t>((page * tokens + i) * 2 + g);
          copy(whole.k, from, k, to, 64), copy(whole.v, from, v, to, 48);
          copy(whole.key_scale, from, key_scale, to, 1);
          copy(whole.value_scale, from, value_scale, to, 1);
        }
    }
  const std::vector<unsigned char> want = whole.out.bytes();
  whole.args.key = k.tensor(), whole.args.value = v.tensor();
  whole.args.block_table = table.tensor();
  if (whole.narrow)
    whole.args.key_scale = key_scale.tensor(), whole.args.value_scale = value_scale.tensor();
  VELO_RUN(velo_cached_attention(s.stream(), &whole.args));
  CHECK((whole.out.bytes() == want));
}

// Rows [first, first + count) of a sequence, as the last that the cache has.
template <class T, class E>
void check_rows(session& s, cache_call<T, E>& c, std::int64_t first, std::int64_t count,
                const std::vector<unsigned char>& whole) {
  const std::int64_t q_shape[] = {1, count, c.z.heads, c.z.d};
  const std::int64_t out_shape[] = {1, count, c.z.heads, c.z.dv};
  velo_tensor q = *c.q.tensor(), out = *c.out.tensor();
  q.shape = q_shape, q.data = c.q.data() + first * c.z.heads * c.z.d;
  out.shape = out_shape, out.data = c.out.data() + first * c.z.heads * c.z.dv;
  velo_cached_attention_args a = c.args;
  a.query = &q, a.attention_out = &out;
  c.lengths[0] = static_cast<std::int32_t>(c.z.skv - c.z.sq + first + count);
  VELO_RUN(velo_cached_attention(s.stream(), &a));
  const auto bytes = static_cast<std::size_t>(c.z.heads * c.z.dv) * sizeof(T);
  const std::vector<unsigned char> got = c.out.bytes();
  const auto begin = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * bytes);
  const auto end = begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * bytes);
  CHECK(std::equal(got.begin() + begin, got.begin() + end, whole.begin() + begin));
}

template <class T, class E>
void check_prefill(session& s, std::int64_t pre) {
  cache_call<T, E> c({1, 70, 3, 1, 540, 40, 72, {}, pre});
  VELO_RUN(velo_cached_attention(s.stream(), &c.args));
  const std::vector<unsigned char> whole = c.out.bytes();
  for (const std::int64_t step : {1, 16})
    for (std::int64_t i = 0; i < 70; i += step)
      check_rows(s, c, i, std::min<std::int64_t>(step, 70 - i), whole);
}

template <class T, class E>
void check_threads(bool shared) {
  std::vector<std::vector<unsigned char>> first;
  for (const int threads : {1, 2, 3}) {
    std::size_t runs = 0;
    for_each_kernel(
        "cached_attention",
        [&](session& s) {
          cache_call<T, E> c({2, 3, 4, shared ? 1 : 2, 1700, 48, 40, {1700, 900}});
          const velo_status status = velo_cached_attention(s.stream(), &c.args);
          if (status == VELO_ERR_UNSUPPORTED) return;
          VELO_RUN(status);
          if (threads == 1) first.push_back(c.out.bytes());
          CHECK((c.out.bytes() == first[runs++]));
        },
        threads);
  }
}

// Runs a check with every kernel that serves these types.
template <class T, class E>
void with_kernels(void (*check)(session&)) {
  for_each_kernel("cached_attention", [check](session& s) {
    cache_call<T, E> one({1, 1, 1, 1, 1, 1, 1, {}});
    if (velo_cached_attention(s.stream(), &one.args) == VELO_OK) check(s);
  });
}

}  // namespace

TEST_CASE("cached_attention agrees with its formula") {
  with_kernels<float, float>(check_truths<float, float>);
  with_kernels<bf16, bf16>(check_truths<bf16, bf16>);
  with_kernels<f16, f16>(check_truths<f16, f16>);
  with_kernels<float, std::int8_t>(check_truths<float, std::int8_t>);
  with_kernels<bf16, std::int8_t>(check_truths<bf16, std::int8_t>);
  with_kernels<f16, std::int8_t>(check_truths<f16, std::int8_t>);
}

TEST_CASE("cached_attention gives the same bits from pages as from rows side by side") {
  for (const std::int64_t tokens : {1, 16, 90}) {
    static std::int64_t page;
    page = tokens;
    with_kernels<float, float>([](session& s) { check_pages<float, float>(s, page); });
    with_kernels<bf16, bf16>([](session& s) { check_pages<bf16, bf16>(s, page); });
    with_kernels<f16, std::int8_t>([](session& s) { check_pages<f16, std::int8_t>(s, page); });
  }
}

TEST_CASE("cached_attention gives a row the same bits whole, in chunks and token by token") {
  with_kernels<float, float>([](session& s) { check_prefill<float, float>(s, all_keys); });
  with_kernels<bf16, bf16>([](session& s) { check_prefill<bf16, bf16>(s, 100); });
  with_kernels<bf16, std::int8_t>(
      [](session& s) { check_prefill<bf16, std::int8_t>(s, all_keys); });
}

TEST_CASE("cached_attention gives the same bits for any number of threads") {
  for (const bool shared : {false, true}) {
    check_threads<float, float>(shared), check_threads<bf16, bf16>(shared);
    check_threads<f16, std::int8_t>(shared);
  }
}

TEST_CASE("cached_attention reads values that are the first columns of keys") {
  with_kernels<bf16, bf16>([](session& s) {
    cache_call<bf16, bf16> c({1, 1, 16, 1, 300, 576, 512, {}});
    for (std::size_t j = 0; j < 300; ++j)
      std::copy_n(c.k.data() + j * 576, 512, c.v.data() + j * 512);
    VELO_RUN(velo_cached_attention(s.stream(), &c.args));
    const std::vector<unsigned char> want = c.out.bytes();
    velo_tensor value = *c.k.tensor();
    const std::int64_t shape[] = {1, 300, 1, 512}, strides[] = {300 * 576, 576, 576, 1};
    value.shape = shape, value.strides = strides;
    c.args.value = &value;
    VELO_RUN(velo_cached_attention(s.stream(), &c.args));
    CHECK((c.out.bytes() == want));
  });
}

TEST_CASE("cached_attention refuses what does not fit, by name") {
  session s;
  cache_call<float, float> c({2, 3, 4, 2, 20, 8, 16, {}});
  array<float> wide({2, 3, 4, 577}), flat({2, 3, 32}), three({2, 20, 3, 8}), scale({2, 20, 2});
  array<bf16> half({2, 20, 2, 8});
  array<std::int8_t> narrow({2, 20, 2, 8}), narrow_values({2, 20, 2, 16});
  array<std::int32_t> table({2, 3}), other({3, 2}), long_length({2}), short_length({2});
  for (std::size_t i = 0; i < 6; ++i) table[i] = 0, other[i] = 0;
  long_length[0] = 1, long_length[1] = 21, short_length[0] = -1, short_length[1] = 2;
  using args = velo_cached_attention_args;
  const auto with_pages = [&](args& a, std::int32_t page) {
    table[4] = page, c.lengths[0] = 20, c.lengths[1] = 21, a.block_table = table.tensor();
  };
  check_refusals(
      s, velo_cached_attention, c.args, c.out,
      {{[&](args& a) { a.query = nullptr; }, VELO_ERR_NULL, "args.query"},
       {[&](args& a) { a.query = flat.tensor(); }, VELO_ERR_RANK, "args.query.ndim"},
       {[&](args& a) { a.query = wide.tensor(); }, VELO_ERR_SHAPE, "args.query.shape",
        "rows of 1 to 576 elements", "577"},
       {[&](args& a) { a.value = wide.tensor(); }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.key = half.tensor(); }, VELO_ERR_DTYPE, "args.key.dtype"},
       {[&](args& a) { a.key = three.tensor(); }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.key = narrow.tensor(); }, VELO_ERR_DTYPE, "args.value.dtype"},
       {[&](args& a) { a.key = narrow.tensor(), a.value = narrow_values.tensor(); }, VELO_ERR_NULL,
        "args.key_scale"},
       {[&](args& a) { a.key_scale = scale.tensor(); }, VELO_ERR_ARGUMENT, "args.key_scale"},
       {[&](args& a) { a.value_scale = scale.tensor(); }, VELO_ERR_ARGUMENT, "args.value_scale"},
       {[&](args& a) { a.scale = 1e39; }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.pre_tokens = -1; }, VELO_ERR_ARGUMENT, "args.pre_tokens"},
       {[&](args& a) { a.block_table = other.tensor(); }, VELO_ERR_SHAPE, "args.block_table.shape"},
       {[&](args& a) { a.block_table = table.tensor(), a.cache_seqlens = nullptr; }, VELO_ERR_NULL,
        "args.cache_seqlens"},
       {[&](args& a) { a.cache_seqlens = long_length.tensor(); }, VELO_ERR_ARGUMENT,
        "args.cache_seqlens", "lengths of 0 to 20", "21 in element 1"},
       {[&](args& a) { a.cache_seqlens = short_length.tensor(); }, VELO_ERR_ARGUMENT,
        "args.cache_seqlens", "lengths of 0 to 20", "-1 in element 0"},
       {[&](args& a) { with_pages(a, 2); }, VELO_ERR_ARGUMENT, "args.block_table",
        "pages in [0, 2)", "2 in element 4"},
       {[&](args& a) { with_pages(a, -1); }, VELO_ERR_ARGUMENT, "args.block_table",
        "pages in [0, 2)", "-1 in element 4"}});
}
