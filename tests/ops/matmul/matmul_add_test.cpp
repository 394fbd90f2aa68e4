// matmul_add against double: residuals of every shape that broadcasts, beside a bias, packs and
// transposes, every kernel; its gradient against sums and slopes; threads; refusals.
#include "tests/ops/matmul/broadcast_places.hpp"
#include "tests/ops/matmul/checked_sum.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct operands {
  std::int64_t batch, m, n, k;
};

// a [batch, m, k] by b [k, n], or [n, k]; bits: transposed b, bias, packed.
template <class T>
bool check(session& s, const operands& z, const shape& residual, int bits) {
  const bool turned = bits & 1, packed = bits & 4;
  const auto [batch, m, n, k] = z;
  INFO("m " << m << " n " << n << " k " << k << " bits " << bits << " bytes " << sizeof(T));
  array<T> a({batch, m, k}), b({turned ? n : k, turned ? k : n}), add(residual), c({batch, m, n});
  array<float> bias({n});
  a.fill(1), b.fill(2), add.fill(3), bias.fill(4);
  velo_matmul_add_args args = VELO_MATMUL_ADD_ARGS_INIT;
  args.a = a.tensor(), args.add = add.tensor(), args.c = c.tensor();
  if (bits & 2) args.bias = bias.tensor();
  velo_pack pack = nullptr;
  if (packed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = dtype_of<T>(), desc.k = k, desc.n = n, desc.transpose = turned;
    VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
    VELO_RUN(velo_pack_update(s.stream(), pack, b.tensor()));
    args.packed = pack;
  } else {
    args.b = b.tensor(), args.transpose_b = turned;
  }
  const velo_status status = velo_matmul_add(s.stream(), &args);
  velo_pack_destroy(pack);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  const std::vector<std::size_t> from = places(residual, {batch, m, n});
  for (std::int64_t i = 0; i < batch * m; i = next_compared(i, batch * m)) {
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      checked_sum truth;
      truth.start(add.at(from[at]));
      truth.start(bits & 2 ? bias.at(static_cast<std::size_t>(j)) : 0);
      for (std::int64_t l = 0; l < k; ++l)
        truth.add(a.at(static_cast<std::size_t>(i * k + l)) *
                  b.at(static_cast<std::size_t>(turned ? j * k + l : l * n + j)));
      if (!truth.covers<T>(c.at(at)))
        FAIL("element " << i << ", " << j << ": got " << c.at(at) << ", truth " << truth.sum);
    }
  }
  CHECK(c.intact());
  return true;
}

std::vector<shape> shapes_of(const operands& z) {
  return {{z.batch, z.m, z.n}, {z.m, z.n}, {z.n},           {1},
          {z.batch, 1, z.n},   {z.m, 1},   {z.batch, 1, 1}, {1, z.m, z.n}};
}

template <class T>
void check_gradient(session& s, const shape& residual) {
  array<T> dc({2, 3, 300}), add(residual), dadd(residual);
  dc.fill(1);
  velo_matmul_add_backward_args args = VELO_MATMUL_ADD_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.add = add.tensor(), args.dadd = dadd.tensor();
  const velo_status status = velo_matmul_add_backward(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  std::vector<double> sums(add.size(), 0), sizes(add.size(), 0);
  const std::vector<std::size_t> to = places(residual, {2, 3, 300});
  for (std::size_t i = 0; i < to.size(); ++i) sums[to[i]] += dc.at(i), sizes[to[i]] += 1;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double bound = sizes[i] * 1e-15 + std::abs(sums[i]) * (rounding<T>() + 1e-7) + 0x1p-25;
    CHECK(std::abs(dadd.at(i) - sums[i]) <= bound);
  }
  CHECK(dadd.intact());
}

}  // namespace

TEST_CASE("matmul_add adds a residual of any shape that broadcasts, for every kernel and dtype") {
  for_each_kernel("matmul_add", [](session& s) {
    int bits = 0;
    for (const operands& z :
         {operands{2, 5, 70, 33}, {3, 1, 48, 64}, {1, 20, 1, 9}, {2, 3, 4, 0}}) {
      for (const shape& residual : shapes_of(z)) {
        check<float>(s, z, residual, bits);
        check<bf16>(s, z, residual, bits + 1);
        check<f16>(s, z, residual, bits + 2);
        ++bits;
      }
    }
    check<float>(s, {2, 30, 100, 1100}, {2, 1, 100}, 0);
    check<bf16>(s, {2, 30, 100, 1100}, {2, 30, 100}, 4);
  });
}

TEST_CASE("matmul_add gives the same bits for any number of threads") {
  std::vector<unsigned char> bits;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<bf16> a({2, 90, 70}), b({70, 200}), add({2, 1, 200}), c({2, 90, 200});
    a.fill(1), b.fill(2), add.fill(3);
    velo_matmul_add_args args = VELO_MATMUL_ADD_ARGS_INIT;
    args.a = a.tensor(), args.b = b.tensor(), args.add = add.tensor(), args.c = c.tensor();
    VELO_RUN(velo_matmul_add(s.stream(), &args));
    if (bits.empty()) bits = c.bytes();
    CHECK(c.bytes() == bits);
  }
}

TEST_CASE("matmul_add_backward sums over what broadcast") {
  for_each_kernel("matmul_add_backward", [](session& s) {
    for (const shape& residual : shapes_of({2, 3, 300, 0})) {
      check_gradient<float>(s, residual);
      check_gradient<bf16>(s, residual);
      check_gradient<f16>(s, residual);
    }
  });
}

TEST_CASE("matmul_add_backward is the slope of matmul_add") {
  session s;
  array<float> a({2, 3, 5}), b({5, 4}), bias({4}), add({2, 1, 4}), c({2, 3, 4}), dc({2, 3, 4});
  array<float> da({2, 3, 5}), db({5, 4}), dbias({4}), dadd({2, 1, 4});
  a.fill(1), b.fill(2), bias.fill(3), add.fill(4), dc.fill(5);
  velo_matmul_add_args forward = VELO_MATMUL_ADD_ARGS_INIT;
  forward.a = a.tensor(), forward.b = b.tensor(), forward.bias = bias.tensor();
  forward.add = add.tensor(), forward.c = c.tensor();
  velo_matmul_add_backward_args args = VELO_MATMUL_ADD_BACKWARD_ARGS_INIT;
  args.dc = dc.tensor(), args.a = a.tensor(), args.b = b.tensor(), args.add = add.tensor();
  args.da = da.tensor(), args.db = db.tensor(), args.dbias = dbias.tensor();
  args.dadd = dadd.tensor();
  VELO_RUN(velo_matmul_add_backward(s.stream(), &args));
  const auto objective = [&] {
    VELO_RUN(velo_matmul_add(s.stream(), &forward));
    double sum = 0;
    for (std::size_t i = 0; i < c.size(); ++i) sum += c.at(i) * dc.at(i);
    return sum;
  };
  check_slope(a, da, objective);
  check_slope(b, db, objective);
  check_slope(bias, dbias, objective);
  check_slope(add, dadd, objective);
}

TEST_CASE("matmul_add and its gradient refuse what does not fit, by name") {
  session s;
  array<float> a({4, 8}), b({8, 6}), add({4, 6}), c({4, 6}), other({3, 6}), cube({1, 4, 6});
  array<bf16> half({4, 6});
  c.fill(1);
  velo_matmul_add_args valid = VELO_MATMUL_ADD_ARGS_INIT;
  valid.a = a.tensor(), valid.b = b.tensor(), valid.add = add.tensor(), valid.c = c.tensor();
  using args = velo_matmul_add_args;
  check_refusals<args>(
      s, velo_matmul_add, valid, c,
      {{[](args& x) { x.add = nullptr; }, VELO_ERR_NULL, "args.add"},
       {[](args& x) { x.b = nullptr; }, VELO_ERR_NULL, "args.b"},
       {[&](args& x) { x.add = other.tensor(); }, VELO_ERR_SHAPE, "args.add.shape"},
       {[&](args& x) { x.add = cube.tensor(); }, VELO_ERR_SHAPE, "args.add.shape"},
       {[&](args& x) { x.add = half.tensor(); }, VELO_ERR_DTYPE, "args.add.dtype"},
       {[](args& x) { x.transpose_b = 1; }, VELO_ERR_SHAPE, "args.b.shape"}});
  array<float> dadd({4, 6});
  dadd.fill(1);
  velo_matmul_add_backward_args back = VELO_MATMUL_ADD_BACKWARD_ARGS_INIT;
  back.dc = c.tensor(), back.add = add.tensor(), back.dadd = dadd.tensor();
  using gradient = velo_matmul_add_backward_args;
  check_refusals<gradient>(
      s, velo_matmul_add_backward, back, dadd,
      {{[](gradient& x) { x.add = nullptr; }, VELO_ERR_NULL, "args.add"},
       {[&](gradient& x) { x.add = other.tensor(); }, VELO_ERR_SHAPE, "args.add.shape"},
       {[&](gradient& x) { x.dadd = other.tensor(); }, VELO_ERR_SHAPE, "args.dadd.shape"}});
}
