// The bias of matmul in every shape that broadcasts to c, in float32 and a's dtype, beside packs,
// transposes and sums into c, for every kernel; its gradient against sums and slopes; refusals.
#include "tests/ops/matmul/broadcast_places.hpp"
#include "tests/ops/matmul/checked_sum.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct operands {
  std::int64_t batch, m, n, k;
};

std::vector<shape> shapes_of(const operands& z) {
  return {{z.batch, z.m, z.n}, {z.m, z.n},  {z.n},           {1, z.n},     {z.m, 1}, {1},
          {z.batch, 1, z.n},   {1, 1, z.n}, {z.batch, 1, 1}, {1, z.m, z.n}};
}

// In times In to Out with a bias of Bias.
template <class In, class Out, class Bias>
void check(session& s, const operands& z, const shape& of_bias, bool accumulate) {
  const auto [batch, m, n, k] = z;
  INFO("m " << m << " n " << n << " k " << k << " acc " << accumulate << " bytes " << sizeof(In)
            << sizeof(Out) << sizeof(Bias));
  array<In> a({batch, m, k}), b({n, k});
  array<Bias> bias(of_bias);
  array<Out> c({batch, m, n}), old({batch, m, n});
  a.fill(1), b.fill(2), bias.fill(3), c.fill(4), old.fill(4);
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.bias = bias.tensor(), args.c = c.tensor();
  args.transpose_b = 1, args.accumulate = accumulate;
  args.dtype = sizeof(Out) == sizeof(In) ? VELO_PRODUCT_DTYPE_LIKE_A : VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_matmul(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  const std::vector<std::size_t> from = places(of_bias, {batch, m, n});
  for (std::int64_t i = 0; i < batch * m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      checked_sum truth;
      truth.start(bias.at(from[at]));
      truth.start(accumulate ? old.at(at) : 0);
      for (std::int64_t l = 0; l < k; ++l)
        truth.add(a.at(static_cast<std::size_t>(i * k + l)) *
                  b.at(static_cast<std::size_t>(j * k + l)));
      if (!truth.covers<Out>(c.at(at)))
        FAIL("element " << i << ", " << j << ": got " << c.at(at) << ", truth " << truth.sum);
    }
  }
  CHECK(c.intact());
}

template <class T>
void check_gradient(session& s, const shape& of_bias, bool accumulate) {
  array<T> dc({2, 3, 300});
  array<float> bias(of_bias), dbias(of_bias), old(of_bias);
  dc.fill(1), dbias.fill(2), old.fill(2);
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.bias = bias.tensor(), args.dbias = dbias.tensor();
  args.accumulate = accumulate;
  const velo_status status = velo_matmul_backward(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  std::vector<double> sums(bias.size(), 0), sizes(bias.size(), 0);
  const std::vector<std::size_t> to = places(of_bias, {2, 3, 300});
  for (std::size_t i = 0; i < to.size(); ++i)
    sums[to[i]] += dc.at(i), sizes[to[i]] += std::abs(dc.at(i));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double truth = sums[i] + (accumulate ? old.at(i) : 0);
    CHECK(std::abs(dbias.at(i) - truth) <= sizes[i] * 1e-6 + std::abs(truth) * 1e-6);
  }
  CHECK(dbias.intact());
}

}  // namespace

TEST_CASE("matmul adds a bias of any shape that broadcasts, for every kernel and dtype") {
  for_each_kernel("matmul", [](session& s) {
    bool accumulate = false;
    for (const operands& z :
         {operands{2, 5, 70, 33}, {3, 1, 48, 64}, {1, 20, 1, 9}, {2, 3, 4, 0}}) {
      for (const shape& bias : shapes_of(z)) {
        check<float, float, float>(s, z, bias, accumulate);
        check<bf16, bf16, bf16>(s, z, bias, accumulate);
        check<bf16, bf16, float>(s, z, bias, !accumulate);
        check<bf16, float, bf16>(s, z, bias, accumulate);
        check<f16, f16, float>(s, z, bias, accumulate);
        check<f16, float, f16>(s, z, bias, !accumulate);
        accumulate = !accumulate;
      }
    }
    check<bf16, bf16, float>(s, {2, 40, 100, 600}, {2, 40, 100}, false);
    check<float, float, float>(s, {2, 40, 100, 1100}, {40, 1}, true);
  });
}

TEST_CASE("matmul_backward sums over what the bias broadcast") {
  for_each_kernel("matmul_backward", [](session& s) {
    for (const shape& bias : shapes_of({2, 3, 300, 0})) {
      for (const bool accumulate : {false, true}) {
        check_gradient<float>(s, bias, accumulate);
        check_gradient<bf16>(s, bias, accumulate);
        check_gradient<f16>(s, bias, accumulate);
      }
    }
  });
}

TEST_CASE("the gradient of a bias of one column is the slope of matmul") {
  session s;
  array<float> a({2, 3, 5}), b({5, 4}), bias({3, 1}), c({2, 3, 4}), dc({2, 3, 4}), dbias({3, 1});
  a.fill(1), b.fill(2), bias.fill(3), dc.fill(4);
  velo_matmul_args forward = VELO_MATMUL_ARGS_INIT;
  forward.a = a.tensor(), forward.b = b.tensor(), forward.bias = bias.tensor();
  forward.c = c.tensor();
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.bias = bias.tensor(), args.dbias = dbias.tensor();
  VELO_RUN(velo_matmul_backward(s.stream(), &args));
  check_slope(bias, dbias, [&] {
    VELO_RUN(velo_matmul(s.stream(), &forward));
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i) sum += c.at(i) * dc.at(i);
    return sum;
  });
}

TEST_CASE("a bias that does not broadcast is refused by name, in both directions") {
  session s;
  array<float> a({4, 8}), b({8, 6}), c({4, 6}), rows({3, 6}), cube({1, 4, 6}), one({4, 1});
  array<float> add({4, 6}), dbias({6});
  array<f16> half({4, 1});
  c.fill(1), dbias.fill(1);
  velo_matmul_args valid = VELO_MATMUL_ARGS_INIT;
  valid.a = a.tensor(), valid.b = b.tensor(), valid.c = c.tensor();
  using args = velo_matmul_args;
  check_refusals<args>(
      s, velo_matmul, valid, c,
      {{[&](args& x) { x.bias = rows.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& x) { x.bias = cube.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& x) { x.bias = half.tensor(); }, VELO_ERR_DTYPE, "args.bias.dtype"}});
  velo_matmul_add_args sum = VELO_MATMUL_ADD_ARGS_INIT;
  sum.a = a.tensor(), sum.b = b.tensor(), sum.add = add.tensor(), sum.c = c.tensor();
  using add_args = velo_matmul_add_args;
  check_refusals<add_args>(
      s, velo_matmul_add, sum, c,
      {{[&](add_args& x) { x.bias = one.tensor(); }, VELO_ERR_RANK, "args.bias.shape"}});
  velo_matmul_backward_args back = VELO_MATMUL_BACKWARD_ARGS_INIT;
  back.dc = c.tensor(), back.dbias = dbias.tensor();
  using gradient = velo_matmul_backward_args;
  check_refusals<gradient>(
      s, velo_matmul_backward, back, dbias,
      {{[&](gradient& x) { x.bias = rows.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](gradient& x) { x.bias = one.tensor(); }, VELO_ERR_RANK, "args.dbias.shape"}});
}
