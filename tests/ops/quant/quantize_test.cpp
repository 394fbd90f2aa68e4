// quantize against plain loops: every kernel, what shares a scale, formats, dtypes, ties, NaN and
// Inf, sizes of 0, refusals.
#include <limits>

#include "tests/ops/operator_testing.hpp"
#include "tests/ops/quant/integers.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct form {
  std::int64_t over = VELO_QUANTIZED_OVER_TENSOR;
  bool int4 = false;
  std::int64_t group = 0;
};

// Where the scale of an element is.
std::int64_t scale_index(const form& f, std::int64_t k, std::int64_t n, std::int64_t i) {
  const std::int64_t row = i / n, column = i % n;
  if (f.over == VELO_QUANTIZED_OVER_TENSOR) return 0;
  if (f.over == VELO_QUANTIZED_OVER_TOKEN) return row;
  const std::int64_t group = f.over == VELO_QUANTIZED_OVER_GROUP ? f.group : k;
  return row / group * n + column;
}

std::vector<std::int64_t> scale_shape(const form& f, std::int64_t b, std::int64_t k,
                                      std::int64_t n) {
  if (f.over == VELO_QUANTIZED_OVER_TENSOR) return {};
  if (f.over == VELO_QUANTIZED_OVER_TOKEN) return {b, k};
  if (f.over == VELO_QUANTIZED_OVER_CHANNEL) return {b, n};
  return {b, k / f.group, n};
}

template <class T, class Change>
void check(session& s, std::int64_t b, std::int64_t k, std::int64_t n, const form& f,
           const Change& change) {
  INFO("b " << b << " k " << k << " n " << n << " over " << f.over << " int4 " << f.int4);
  array<T> x({b, k, n});
  x.fill(1, 5);
  change(x);
  array<std::int8_t> whole({b, k, n});
  array<std::uint8_t> pairs({b, k, n / 2});
  array<float> scale(scale_shape(f, b, k, n));
  velo_quantize_args a = VELO_QUANTIZE_ARGS_INIT;
  a.x = x.tensor(), a.y = f.int4 ? pairs.tensor() : whole.tensor(), a.scale = scale.tensor();
  a.over = f.over, a.group_size = f.group;
  a.format = f.int4 ? VELO_QUANTIZED_FORMAT_INT4 : VELO_QUANTIZED_FORMAT_INT8;
  VELO_RUN(velo_quantize(s.stream(), &a));
  const float limit = f.int4 ? 7 : 127;
  std::vector<float> wanted(scale.size(), 0);
  const auto count = static_cast<std::int64_t>(x.size());
  for (std::int64_t i = 0; i < count; ++i) {
    float& largest = wanted[static_cast<std::size_t>(scale_index(f, k, n, i))];
    const auto value = static_cast<float>(std::abs(x.at(static_cast<std::size_t>(i))));
    if (std::isnan(value) || value > largest) largest = value;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = wanted[i] / limit == 0 ? 1 : wanted[i] / limit;
    if (std::isnan(wanted[i]))
      CHECK(std::isnan(scale[i]));
    else
      REQUIRE(scale[i] == wanted[i]);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float q =
        static_cast<float>(x.at(at)) / wanted[static_cast<std::size_t>(scale_index(f, k, n, i))];
    const float want = std::isnan(q) ? 0 : std::nearbyint(std::min(limit, std::max(-limit, q)));
    REQUIRE(static_cast<float>(f.int4 ? int4_at(pairs.data(), i) : whole[at]) == want);
  }
  CHECK((whole.intact() && pairs.intact() && scale.intact()));
}

template <class T>
void check_forms(session& s) {
  const auto keep = [](array<T>&) {};
  for (const bool int4 : {false, true}) {
    for (const std::int64_t over :
         {VELO_QUANTIZED_OVER_TENSOR, VELO_QUANTIZED_OVER_TOKEN, VELO_QUANTIZED_OVER_CHANNEL}) {
      check<T>(s, 2, 5, 38, {over, int4, 0}, keep);
      check<T>(s, 1, 33, 2050, {over, int4, 0}, keep);
      check<T>(s, 2, 0, 4, {over, int4, 0}, keep);
      check<T>(s, 2, 3, 0, {over, int4, 0}, keep);
      check<T>(s, 1, 3, 70, {over, int4, 0}, [](array<T>& x) {
        for (std::size_t i = 0; i < x.size(); ++i)
          velo::simd::assign(x[i], i < 70 ? 0 : static_cast<double>(i % 9));
        velo::simd::assign(x[75], std::numeric_limits<double>::infinity());
        velo::simd::assign(x[145], std::numeric_limits<double>::quiet_NaN());
      });
      check<T>(s, 1, 1, 256, {over, int4, 0}, [&](array<T>& x) {  // ties
        for (std::size_t i = 0; i < x.size(); ++i)
          velo::simd::assign(x[i], 0.5 * static_cast<double>(i % 15) - 3.5);
        velo::simd::assign(x[7], int4 ? 7 : 127);
      });
    }
    for (const std::int64_t group : {32, 64, 96})
      check<T>(s, 2, 192, 34, {VELO_QUANTIZED_OVER_GROUP, int4, group}, keep);
  }
  check<float>(s, 1, 2, 64, {VELO_QUANTIZED_OVER_TOKEN, false, 0}, [](array<float>& x) {
    x.fill(3, 1e-44);  // the scale is denormal, or becomes 0
  });
}

// Rows of numbers beside the ties of their scale, whose magnitudes go from least to most.
void check_ties(session& s, float least, float most) {
  constexpr std::int64_t rows = 48, n = 128 * 5 + 6;
  check<float>(s, 1, rows, n, {VELO_QUANTIZED_OVER_TOKEN, false, 0}, [&](array<float>& x) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float share = static_cast<float>(r) / (rows - 1);
      float* row = x.data() + r * n;
      const float largest = least * std::pow(most / least, share) * (1 + std::abs(row[0]) / 8);
      const float scale = largest / 127;
      for (std::int64_t i = 0; i < n; ++i) {
        float tie = (static_cast<float>(i % 127) + 0.5f) * scale;
        for (std::int64_t k = 0; k < i / 127; ++k)
          tie = std::nextafterf(tie, i % 2 == 0 ? 0 : largest);
        row[i] = i % 3 == 0 ? -tie : tie;
      }
      row[1] = largest, row[126] = row[253] = row[380] = row[507] = row[634] = 0;
    }
  });
}

}  // namespace

TEST_CASE("quantize agrees with plain loops for every kernel, form, size and dtype") {
  for_each_kernel("quantize", [](session& s) {
    check_forms<float>(s);
    check_forms<bf16>(s);
    check_forms<f16>(s);
  });
}

TEST_CASE("quantize rounds quotients beside ties as a division does, whatever the scale") {
  for_each_kernel("quantize", [](session& s) {
    check_ties(s, 1e-3f, 1e3f);
    check_ties(s, 1e-36f, 1e36f);
  });
}

TEST_CASE("quantize writes tensors of int4") {
  session s;
  array<float> x({3, 4}), scale({3});
  array<std::uint8_t> y({3, 2});
  x.fill(1);
  velo_tensor four = *y.tensor();
  const std::int64_t shape[] = {3, 4};
  four.dtype = {VELO_DTYPE_INT, 4, 1}, four.shape = shape;
  velo_quantize_args a = VELO_QUANTIZE_ARGS_INIT;
  a.x = x.tensor(), a.y = &four, a.scale = scale.tensor();
  a.over = VELO_QUANTIZED_OVER_TOKEN, a.format = VELO_QUANTIZED_FORMAT_INT4;
  VELO_RUN(velo_quantize(s.stream(), &a));
  for (std::int64_t i = 0; i < 12; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float q = x[at] / scale[at / 4];
    CHECK(static_cast<float>(int4_at(y.data(), i)) == std::nearbyint(q));
  }
  CHECK(y.intact());
}

TEST_CASE("quantize refuses what does not fit, by name") {
  session s;
  array<float> x({64, 6}), scale({6});
  array<std::int8_t> y({64, 6});
  velo_quantize_args valid = VELO_QUANTIZE_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor(), valid.scale = scale.tensor();
  valid.over = VELO_QUANTIZED_OVER_CHANNEL;
  using args = velo_quantize_args;
  static const std::int64_t odd[] = {64, 5}, flat[] = {6};
  check_refusals<args>(
      s, velo_quantize, valid, y,
      {{[](args& a) { a.group_size = 32; }, VELO_ERR_ARGUMENT, "args.group_size"},
       {[](args& a) { a.over = VELO_QUANTIZED_OVER_GROUP; }, VELO_ERR_ARGUMENT, "args.group_size"},
       {[](args& a) { a.over = VELO_QUANTIZED_OVER_GROUP, a.group_size = 48; }, VELO_ERR_ARGUMENT,
        "args.group_size"},
       {[](args& a) { a.over = VELO_QUANTIZED_OVER_GROUP, a.group_size = 128; }, VELO_ERR_ARGUMENT,
        "args.group_size"},
       {[c = changed(&args::x, [](velo_tensor& t) { t.shape = odd; })](args& a) {
          c(a), a.format = VELO_QUANTIZED_FORMAT_INT4;
        },
        VELO_ERR_SHAPE, "args.x.shape"},
       {changed(&args::x, [](velo_tensor& t) { t.ndim = 1, t.shape = flat; }), VELO_ERR_RANK,
        "args.x.ndim"},
       {changed(&args::y,
                [](velo_tensor& t) {
                  t.dtype = {VELO_DTYPE_UINT, 8, 1};
                }),
        VELO_ERR_DTYPE, "args.y.dtype"},
       {[](args& a) { a.over = VELO_QUANTIZED_OVER_TENSOR; }, VELO_ERR_RANK, "args.scale.shape"}});
}
