// rotary_position_embedding against its formula in double: modes, broadcasts, strides, gradients of
// x and of the tables.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

using sizes = std::vector<std::int64_t>;

struct walk {  // flat index of table element (i, j, k, f) when its sizes may be 1
  sizes x, table;
  std::size_t operator()(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t f) const {
    const std::int64_t at[] = {i, j, k};
    std::int64_t index = 0;
    for (std::size_t d = 0; d < 3; ++d) index = index * table[d] + (table[d] == 1 ? 0 : at[d]);
    return static_cast<std::size_t>(index * table[3] + f);
  }
};

// rotate(x)[f] = sign * x[partner].
struct partner {
  std::int64_t index;
  double sign;
  partner(std::int64_t f, std::int64_t rotated, bool interleaved) {
    if (interleaved) {
      index = f % 2 == 0 ? f + 1 : f - 1, sign = f % 2 == 0 ? -1 : 1;
    } else {
      index = f < rotated / 2 ? f + rotated / 2 : f - rotated / 2, sign = f < rotated / 2 ? -1 : 1;
    }
  }
};

template <class T, class C>
void check(session& s, const sizes& shape, const sizes& table_shape, bool interleaved) {
  INFO("D " << shape[3] << ", R " << table_shape[3] << ", interleaved " << interleaved << ", bytes "
            << sizeof(T));
  array<T> x(shape), y(shape), dy(shape), dx(shape);
  array<C> cos(table_shape), sin(table_shape);
  array<float> dcos(table_shape), dsin(table_shape);
  x.fill(1), cos.fill(2), sin.fill(3), dy.fill(4), dcos.fill(5);
  const walk table{shape, table_shape};
  const std::int64_t rotated = table_shape[3];
  std::vector<double> want_y(x.size()), want_dx(x.size()), want_dcos(cos.size()),
      want_dsin(cos.size());
  std::size_t row = 0;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    for (std::int64_t j = 0; j < shape[1]; ++j) {
      for (std::int64_t k = 0; k < shape[2]; ++k, row += static_cast<std::size_t>(shape[3])) {
        for (std::int64_t f = 0; f < shape[3]; ++f) {
          const std::size_t at = row + static_cast<std::size_t>(f);
          if (f >= rotated) {
            want_y[at] = x.at(at), want_dx[at] = dy.at(at);
            continue;
          }
          const partner p(f, rotated, interleaved);
          const std::size_t other = row + static_cast<std::size_t>(p.index), t = table(i, j, k, f);
          want_y[at] = x.at(at) * cos.at(t) + p.sign * x.at(other) * sin.at(t);
          want_dx[at] += dy.at(at) * cos.at(t);
          want_dx[other] += dy.at(at) * p.sign * sin.at(t);
          want_dcos[t] += dy.at(at) * x.at(at);
          want_dsin[t] += dy.at(at) * p.sign * x.at(other);
        }
      }
    }
  }
  velo_rotary_position_embedding_args f = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
  f.x = x.tensor(), f.cos = cos.tensor(), f.sin = sin.tensor(), f.y = y.tensor(),
  f.mode = interleaved;
  VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
  require_close(y, want_y, rounding<T>(), 3e-7);
  velo_rotary_position_embedding_backward_args b =
      VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.cos = cos.tensor(), b.sin = sin.tensor(), b.x = x.tensor(),
  b.dx = dx.tensor();
  b.dcos = dcos.tensor(), b.dsin = dsin.tensor(), b.mode = interleaved;
  VELO_RUN(velo_rotary_position_embedding_backward(s.stream(), &b));
  require_close(dx, want_dx, rounding<T>(), 3e-7);
  require_close(dcos, want_dcos, 1e-5, 1e-5);
  require_close(dsin, want_dsin, 1e-5, 1e-5);
  b.dx = b.dy, f.y = f.x;
  VELO_RUN(velo_rotary_position_embedding_backward(s.stream(), &b));
  require_close(dy, want_dx, rounding<T>(), 3e-7);
  VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
  require_close(x, want_y, rounding<T>(), 3e-7);
}

}  // namespace

TEST_CASE(
    "rotary_position_embedding agrees with its formula for every kernel, mode, broadcast and "
    "dtype") {
  for (const char* op : {"rotary_position_embedding", "rotary_position_embedding_backward"}) {
    for_each_kernel(op, [](session& s) {
      for (const bool interleaved : {false, true}) {
        for (const std::int64_t d : {2, 6, 32, 64, 80, 128}) {
          check<float, float>(s, {2, 5, 3, d}, {1, 5, 1, d}, interleaved);
          check<bf16, bf16>(s, {2, 5, 3, d}, {1, 5, 1, d}, interleaved);
          check<f16, f16>(s, {2, 5, 3, d}, {1, 5, 1, d}, interleaved);
        }
        check<float, float>(s, {2, 3, 70, 64}, {1, 1, 70, 64}, interleaved);  // BNSD
        check<float, float>(s, {2, 3, 5, 16}, {2, 1, 5, 16}, interleaved);
        check<float, float>(s, {2, 3, 5, 16}, {2, 3, 5, 16}, interleaved);
        check<bf16, float>(s, {7, 2, 3, 16}, {7, 1, 1, 16}, interleaved);  // SBND
        check<f16, float>(s, {7, 2, 3, 16}, {7, 1, 1, 16}, interleaved);
        check<float, float>(s, {2, 5, 3, 40}, {1, 5, 1, 24},
                            interleaved);  // the last 16 features pass through
        check<float, float>(s, {0, 5, 3, 8}, {1, 5, 1, 8}, interleaved);
      }
    });
  }
}

TEST_CASE("rotary_position_embedding writes large outputs around the cache with the same result") {
  for_each_kernel("rotary_position_embedding", [](session& s) {
    check<float, float>(s, {2, 1100, 32, 128}, {1, 1100, 1, 128}, false);
  });
}

TEST_CASE("rotary_position_embedding turns queries where they lie inside a fused projection") {
  for_each_kernel("rotary_position_embedding", [](session& s) {
    constexpr std::int64_t batch = 2, length = 3, heads = 2, d = 8,
                           width = 40;  // heads * d of each token's 40
    array<float> fused({batch, length, width}), cos({1, length, 1, d}), sin({1, length, 1, d});
    fused.fill(1), cos.fill(2), sin.fill(3);
    array<float> apart({batch, length, heads, d}), turned({batch, length, heads, d});
    for (std::size_t t = 0; t < 6; ++t) {
      for (std::size_t i = 0; i < 16; ++i) apart[t * 16 + i] = fused[t * 40 + i];
    }
    velo_rotary_position_embedding_args f = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
    f.x = apart.tensor(), f.cos = cos.tensor(), f.sin = sin.tensor(), f.y = turned.tensor();
    VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
    const std::int64_t shape[] = {batch, length, heads, d},
                       strides[] = {length * width, width, d, 1};
    velo_tensor view = *fused.tensor();
    view.ndim = 4, view.shape = shape, view.strides = strides;
    f.x = &view, f.y = &view;
    VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
    array<float> untouched({batch, length, width});
    untouched.fill(1);
    for (std::size_t t = 0; t < 6; ++t) {
      for (std::size_t i = 0; i < 40; ++i) {
        REQUIRE(fused[t * 40 + i] == (i < 16 ? turned[t * 16 + i] : untouched[t * 40 + i]));
      }
    }
  });
}

TEST_CASE("rotary_position_embedding refuses what does not fit, by name") {
  session s;
  array<float> x({2, 3, 4, 8}), cos({1, 3, 1, 8}), odd({1, 3, 1, 7}), wide({1, 3, 1, 10}),
      wrong({1, 2, 1, 8});
  const std::int64_t strides[] = {192, 64, 16, 2};
  using args = velo_rotary_position_embedding_args;
  args valid = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
  valid.x = x.tensor(), valid.cos = cos.tensor(), valid.sin = cos.tensor(), valid.y = x.tensor();
  check_refusals(s, velo_rotary_position_embedding, valid, x,
                 {{[&](args& f) { f.cos = odd.tensor(); }, VELO_ERR_SHAPE, "args.cos.shape"},
                  {[&](args& f) { f.cos = wide.tensor(); }, VELO_ERR_SHAPE, "args.cos.shape"},
                  {[&](args& f) { f.cos = wrong.tensor(); }, VELO_ERR_SHAPE, "args.cos.shape"},
                  {[&](args& f) { f.sin = odd.tensor(); }, VELO_ERR_SHAPE, "args.sin.shape"},
                  {[&](args& f) { f.mode = 2; }, VELO_ERR_ARGUMENT, "args.mode"},
                  {changed(&args::x, [&](velo_tensor& t) { t.strides = strides; }), VELO_ERR_LAYOUT,
                   "args.x.strides"}});
}
