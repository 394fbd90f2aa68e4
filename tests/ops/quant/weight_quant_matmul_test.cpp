// weight_quant_matmul and its gradient against double: int8 and int4, scales by channel and by
// group, offsets, both ways of storing, packs, one row and many, every kernel, threads, dtypes,
// refusals.
#include "tests/ops/matmul/weight_pack.hpp"
#include "tests/ops/operator_testing.hpp"
#include "tests/ops/quant/quantized_weight.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// y [m][columns] = x [m][depth] times the weight, or its transpose.
template <class T>
void check_product(const array<T>& x, const quantized_weight& w, const array<float>* bias,
                   const array<T>& y, std::int64_t m, bool backward) {
  const std::int64_t depth = backward ? w.n : w.k, columns = backward ? w.k : w.n;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t l = 0; l < depth; ++l) {
        const double term = x.at(static_cast<std::size_t>(i * depth + l)) *
                            (backward ? w.at(0, j, l) : w.at(0, l, j));
        sum += term, size += std::abs(term);
      }
      if (bias != nullptr) sum += bias->at(static_cast<std::size_t>(j));
      const double bound = size * 0x1p-24 * (4 + std::sqrt(static_cast<double>(depth))) +
                           std::abs(sum) * (rounding<T>() + 0x1p-22) + 1e-30;
      const double got = y.at(static_cast<std::size_t>(i * columns + j));
      if (!(std::abs(got - sum) <= bound))
        FAIL("row " << i << " column " << j << ": got " << got << ", truth " << sum);
    }
  }
  CHECK(y.intact());
}

template <class T>
void check(session& s, std::int64_t m, std::int64_t n, std::int64_t k, const weight_form& f) {
  INFO("m " << m << " n " << n << " k " << k << " int4 " << f.int4 << " turned " << f.transposed
            << " group " << f.group << " offset " << f.offset << " bytes " << sizeof(T));
  quantized_weight w(1, k, n, f);
  array<T> x({m, k}), y({m, n}), dy({m, n}), dx({m, k});
  array<float> bias({n});
  x.fill(1, f.x_size), dy.fill(2), bias.fill(3);
  velo_weight_quant_matmul_args a = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = w.weight(), a.scale = w.scale(), a.offset = w.offset();
  a.bias = f.bias ? bias.tensor() : nullptr;
  a.y = y.tensor(), a.transpose_weight = f.transposed;
  VELO_RUN(velo_weight_quant_matmul(s.stream(), &a));
  check_product(x, w, f.bias ? &bias : nullptr, y, m, false);
  const weight_pack pack(s, *w.weight(), f.transposed, true);
  array<T> from_pack({m, n});
  a.weight = nullptr, a.packed = pack, a.transpose_weight = 0, a.y = from_pack.tensor();
  VELO_RUN(velo_weight_quant_matmul(s.stream(), &a));
  check_product(x, w, f.bias ? &bias : nullptr, from_pack, m, false);
  if (!f.transposed) CHECK(from_pack.bytes() == y.bytes());
  velo_weight_quant_matmul_backward_args b = VELO_WEIGHT_QUANT_MATMUL_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.weight = w.weight(), b.scale = w.scale(), b.offset = w.offset();
  b.dx = dx.tensor(), b.transpose_weight = f.transposed;
  VELO_RUN(velo_weight_quant_matmul_backward(s.stream(), &b));
  check_product(dy, w, nullptr, dx, m, true);
}

template <class T>
void check_forms(session& s) {
  for (int bits = 0; bits < 16; ++bits) {
    weight_form f;
    f.int4 = bits & 1, f.transposed = bits & 2, f.offset = bits & 4, f.bias = bits & 8;
    check<T>(s, 1, 70, 37 + 2 * (bits & 1) + (bits & 1), f);
    check<T>(s, 3, 50, 34, f);
    check<T>(s, 5, 70, 38, f);
    for (const std::int64_t group : {32, 64, 96}) {
      f.group = group;
      check<T>(s, 1 + bits % 3, 66, 192, f);
    }
  }
}

}  // namespace

TEST_CASE("weight_quant_matmul and its gradient agree with double for every kernel and form") {
  for (const char* op : {"weight_quant_matmul", "weight_quant_matmul_backward"}) {
    for_each_kernel(op, [](session& s) {
      check_forms<float>(s);
      check_forms<bf16>(s);
      check_forms<f16>(s);
    });
  }
}

TEST_CASE("weight_quant_matmul serves blocks of depth, rows and columns, and sizes of 0") {
  for (const int threads : {1, 3}) {
    for_each_kernel(
        "weight_quant_matmul",
        [](session& s) {
          for (const bool transposed : {false, true}) {
            weight_form f;
            f.transposed = transposed, f.group = 128;
            check<float>(s, 17, 130, 640, f);
            check<float>(s, 11, 130, 640, f);
            check<float>(s, 8, 130, 2176, f);
            check<bf16>(s, 6, 1050, 256, f);
            f.int4 = true;
            check<bf16>(s, 1, 2100, 256, f);
            f.group = 0;
            check<float>(s, 1, 6, 2050, f);
            check<float>(s, 270, 20, 22, f);
            check<f16>(s, 2, 0, 4, f);
            check<f16>(s, 2, 4, 0, f);
            check<f16>(s, 1, 4, 0, f);
            check<f16>(s, 0, 4, 4, f);
          }
        },
        threads);
  }
}

TEST_CASE("weight_quant_matmul multiplies many rows of bf16 for every kernel and form") {
  for (const int threads : {1, 3}) {
    for_each_kernel(
        "weight_quant_matmul",
        [](session& s) {
          for (int bits = 0; bits < 8; ++bits) {
            weight_form f;
            f.int4 = bits & 1, f.transposed = bits & 2, f.offset = bits & 4, f.bias = bits & 1;
            check<bf16>(s, 18, 70, 40, f);
            for (const std::int64_t group : {32, 96}) {
              f.group = group;
              check<bf16>(s, 33, 66, 192, f);
            }
          }
          weight_form f;
          check<bf16>(s, 17, 20, 2060, f);  // several blocks of the depth,
          f.transposed = true;
          check<bf16>(s, 18, 530, 34, f);  // of the columns
          check<bf16>(s, 530, 18, 34, f);  // and of the rows
          f.group = 1056, f.transposed = false;
          check<bf16>(s, 20, 18, 2112, f);
          f.group = 0;
          check<bf16>(s, 20, 4, 0, f);
          f.x_size = 2e36;
          check<bf16>(s, 20, 70, 64, f);  // sums that overflow before their scales
        },
        threads);
  }
}

TEST_CASE("weight_quant_matmul takes scales in the dtype of x, and int4 as such") {
  session s;
  const std::int64_t k = 64, n = 20;
  array<bf16> x({2, k}), scale({2, n}), offset({2, n}), y({2, n});
  array<std::uint8_t> weight({k, n / 2});
  x.fill(1), scale.fill(2), offset.fill(3);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<std::uint8_t>(i * 37);
  velo_tensor four = *weight.tensor();
  const std::int64_t shape[] = {k, n};
  four.dtype = {VELO_DTYPE_INT, 4, 1}, four.shape = shape;
  velo_weight_quant_matmul_args a = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = &four, a.scale = scale.tensor(), a.offset = offset.tensor();
  a.y = y.tensor();
  VELO_RUN(velo_weight_quant_matmul(s.stream(), &a));
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const auto at = static_cast<std::size_t>(l / 32 * n + j);
        const double term = x.at(static_cast<std::size_t>(i * k + l)) * scale.at(at) *
                            (int4_at(weight.data(), l * n + j) + offset.at(at));
        sum += term, size += std::abs(term);
      }
      CHECK(std::abs(y.at(static_cast<std::size_t>(i * n + j)) - sum) <=
            std::abs(sum) * rounding<bf16>() + size * 1e-6);
    }
  }
}

TEST_CASE("a pack of int4 takes rows at any distance, turned or not, and experts") {
  session s;
  const std::int64_t k = 130, n = 70, experts = 2;
  for (const bool turned : {false, true}) {
    INFO("turned " << turned);
    const std::int64_t rows = turned ? n : k, bytes = (turned ? k : n) / 2, ld = bytes + 9;
    array<std::uint8_t> apart({experts, rows, ld}), together({experts, rows, bytes});
    for (std::size_t i = 0; i < apart.size(); ++i)
      apart[i] = static_cast<std::uint8_t>(i * 37 >> 2);
    for (std::int64_t i = 0; i < experts * rows; ++i)
      std::copy_n(apart.data() + i * ld, bytes, together.data() + i * bytes);
    array<float> x({3, k}), scale({experts, n}), y({3, n}), from_pack({3, n});
    x.fill(1), scale.fill(2);
    const std::int64_t ends[] = {1, 3}, strides[] = {rows * ld, ld, 1};
    const velo_ints list{ends, experts};
    velo_weight_quant_grouped_matmul_args a = VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT;
    a.x = x.tensor(), a.scale = scale.tensor(), a.group_list = &list, a.y = y.tensor();
    a.weight = together.tensor(), a.transpose_weight = turned;
    VELO_RUN(velo_weight_quant_grouped_matmul(s.stream(), &a));
    velo_tensor view = *together.tensor();
    view.data = apart.data(), view.strides = strides;
    const weight_pack pack(s, view, turned, true);
    a.weight = nullptr, a.packed = pack, a.transpose_weight = 0, a.y = from_pack.tensor();
    VELO_RUN(velo_weight_quant_grouped_matmul(s.stream(), &a));
    for (std::size_t i = 0; i < y.size(); ++i)
      CHECK(std::abs(y.at(i) - from_pack.at(i)) <= 1e-4 * (1 + std::abs(y.at(i))));
    if (!turned) CHECK(from_pack.bytes() == y.bytes());
  }
}

TEST_CASE("a pack with weight_only is refused where it does not fit, by name") {
  session s;
  array<std::int8_t> weight({64, 6});
  array<float> floats({64, 6}), x({2, 64}), scale({6}), y({2, 6});
  const weight_pack pack(s, *weight.tensor(), false, true), other(s, *floats.tensor(), false);
  velo_weight_quant_matmul_args valid = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.packed = pack, valid.scale = scale.tensor(), valid.y = y.tensor();
  VELO_RUN(velo_weight_quant_matmul(s.stream(), &valid));
  using args = velo_weight_quant_matmul_args;
  static const std::int64_t short_row[] = {2, 63}, five[] = {5};
  check_refusals<args>(
      s, velo_weight_quant_matmul, valid, y,
      {{[](args& a) { a.packed = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.weight = weight.tensor(); }, VELO_ERR_ARGUMENT, "args.weight"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_ARGUMENT, "args.transpose_weight"},
       {[&](args& a) { a.packed = other; }, VELO_ERR_ARGUMENT, "args.packed"},
       {changed(&args::x, [](velo_tensor& t) { t.shape = short_row; }), VELO_ERR_SHAPE,
        "args.x.shape"},
       {changed(&args::scale, [](velo_tensor& t) { t.shape = five; }), VELO_ERR_SHAPE,
        "args.scale.shape"}});
  velo_matmul_args product = VELO_MATMUL_ARGS_INIT;
  product.a = x.tensor(), product.packed = pack, product.c = y.tensor();
  CHECK_REFUSED(velo_matmul(s.stream(), &product), VELO_ERR_ARGUMENT, "args.packed");

  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  velo_pack made = nullptr;
  desc.k = desc.n = 4, desc.weight_only = 1;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &made), VELO_ERR_DTYPE, "desc.dtype");
  desc.weight_only = 2;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &made), VELO_ERR_ARGUMENT, "desc.weight_only");
  desc.dtype = velo::ops::i4, desc.weight_only = 0;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &made), VELO_ERR_DTYPE, "desc.dtype");
  desc.weight_only = 1, desc.n = 5;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &made), VELO_ERR_SHAPE, "desc.n");
  desc.transpose = 1, desc.k = 3;
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, &made), VELO_ERR_SHAPE, "desc.k");
  CHECK(made == nullptr);
  desc.k = 4;
  VELO_RUN(velo_pack_create(s.context(), &desc, &made));
  array<std::uint8_t> pairs({5, 2}), wrong({5, 4});
  VELO_RUN(velo_pack_update(s.stream(), made, pairs.tensor()));
  CHECK_REFUSED(velo_pack_update(s.stream(), made, wrong.tensor()), VELO_ERR_SHAPE, "weight.shape");
  array<float> other_dtype({5, 4});
  CHECK_REFUSED(velo_pack_update(s.stream(), made, other_dtype.tensor()), VELO_ERR_DTYPE,
                "weight.dtype");
  velo_pack_destroy(made);
}

TEST_CASE("weight_quant_matmul refuses what does not fit, by name") {
  session s;
  weight_form f;
  f.group = 32, f.offset = true;
  quantized_weight w(1, 64, 6, f);
  array<float> x({2, 64}), y({2, 6}), bias({6});
  array<bf16> other({2, 6});
  velo_weight_quant_matmul_args valid = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.weight = w.weight(), valid.scale = w.scale();
  valid.offset = w.offset(), valid.bias = bias.tensor(), valid.y = y.tensor();
  using args = velo_weight_quant_matmul_args;
  static const std::int64_t three[] = {4, 6}, one[] = {1, 6}, flat[] = {6}, short_row[] = {2, 63},
                            odd[] = {64, 5}, huge[] = {0, std::int64_t{1} << 62};
  check_refusals<args>(
      s, velo_weight_quant_matmul, valid, y,
      {{changed(&args::x, [](velo_tensor& t) { t.shape = short_row; }), VELO_ERR_SHAPE,
        "args.x.shape"},
       {changed(&args::weight, [](velo_tensor& t) { t.dtype.bits = 4, t.shape = odd; }),
        VELO_ERR_SHAPE, "args.weight.shape"},
       {changed(&args::weight,
                [](velo_tensor& t) {
                  t.dtype = {VELO_DTYPE_UINT, 8, 1}, t.shape = huge;
                }),
        VELO_ERR_SHAPE, "args.weight.shape"},
       {changed(&args::weight,
                [](velo_tensor& t) {
                  t.dtype = {VELO_DTYPE_INT, 32, 1};
                }),
        VELO_ERR_DTYPE, "args.weight.dtype"},
       {changed(&args::weight, [](velo_tensor& t) { t.ndim = 1; }), VELO_ERR_RANK,
        "args.weight.ndim"},
       {changed(&args::scale, [](velo_tensor& t) { t.shape = three; }), VELO_ERR_SHAPE,
        "args.scale.shape"},
       {changed(&args::scale,
                [](velo_tensor& t) {
                  t.dtype = {VELO_DTYPE_BFLOAT, 16, 1};
                }),
        VELO_ERR_DTYPE, "args.scale.dtype"},
       {changed(&args::scale, [](velo_tensor& t) { t.ndim = 1, t.shape = flat; }), VELO_ERR_RANK,
        "args.offset.shape"},
       {changed(&args::offset, [](velo_tensor& t) { t.shape = one; }), VELO_ERR_SHAPE,
        "args.offset.shape"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.scale.shape"},
       {changed(&args::bias, [](velo_tensor& t) { t.shape = one; }), VELO_ERR_SHAPE,
        "args.bias.shape"},
       {[&](args& a) { a.y = other.tensor(); }, VELO_ERR_DTYPE, "args.y.dtype"}});
}
