// rotary_position_embedding against its formula in double: modes, broadcasts, strides, gradients of
// x and of the tables.
#include <functional>

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

namespace {

// Rows of a table by position against the same table expanded row by row.
template <class T>
void check_positions(session& s, const sizes& shape, const sizes& positions_shape,
                     const std::function<std::int64_t(std::size_t)>& position) {
  constexpr std::int64_t rows = 9;
  const std::int64_t rotated = 12;
  const sizes expanded_shape{positions_shape[0], positions_shape[1], positions_shape[2], rotated};
  array<T> x(shape), dy(shape), y(shape), dx(shape), want_y(shape), want_dx(shape);
  array<float> cos({rows, rotated}), sin({rows, rotated}), dcos({rows, rotated}),
      dsin({rows, rotated});
  array<float> cos4(expanded_shape), sin4(expanded_shape), dcos4(expanded_shape),
      dsin4(expanded_shape);
  array<std::int32_t> positions(positions_shape);
  x.fill(1), dy.fill(2), cos.fill(3), sin.fill(4), dcos.fill(5), dsin.fill(6);
  const auto width = static_cast<std::size_t>(rotated);
  for (std::size_t p = 0; p < positions.size(); ++p) {
    positions[p] = static_cast<std::int32_t>(position(p));
    for (std::size_t f = 0; f < width; ++f) {
      const std::size_t from = static_cast<std::size_t>(positions[p]) * width + f;
      cos4[p * width + f] = cos[from], sin4[p * width + f] = sin[from];
    }
  }
  for (const std::int64_t mode : {VELO_ROTARY_MODE_HALF, VELO_ROTARY_MODE_INTERLEAVED}) {
    velo_rotary_position_embedding_args f = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
    f.x = x.tensor(), f.cos = cos4.tensor(), f.sin = sin4.tensor(), f.y = want_y.tensor();
    f.mode = mode;
    VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
    f.cos = cos.tensor(), f.sin = sin.tensor(), f.y = y.tensor();
    f.positions = positions.tensor();
    VELO_RUN(velo_rotary_position_embedding(s.stream(), &f));
    CHECK(y.bytes() == want_y.bytes());
    velo_rotary_position_embedding_backward_args b =
        VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT;
    b.dy = dy.tensor(), b.cos = cos4.tensor(), b.sin = sin4.tensor(), b.x = x.tensor();
    b.dx = want_dx.tensor(), b.dcos = dcos4.tensor(), b.dsin = dsin4.tensor(), b.mode = mode;
    VELO_RUN(velo_rotary_position_embedding_backward(s.stream(), &b));
    b.cos = cos.tensor(), b.sin = sin.tensor(), b.dx = dx.tensor();
    b.dcos = dcos.tensor(), b.dsin = dsin.tensor(), b.positions = positions.tensor();
    VELO_RUN(velo_rotary_position_embedding_backward(s.stream(), &b));
    CHECK(dx.bytes() == want_dx.bytes());
    std::vector<double> want_dcos(dcos.size()), want_dsin(dsin.size());
    for (std::size_t i = 0; i < dcos4.size(); ++i) {
      const std::size_t to = static_cast<std::size_t>(positions[i / width]) * width + i % width;
      want_dcos[to] += dcos4.at(i), want_dsin[to] += dsin4.at(i);
    }
    require_close(dcos, want_dcos, 1e-5, 1e-5);
    require_close(dsin, want_dsin, 1e-5, 1e-5);
  }
}

}  // namespace

TEST_CASE("rotary_position_embedding takes the rows of its tables that positions name") {
  for (const char* op : {"rotary_position_embedding", "rotary_position_embedding_backward"}) {
    for_each_kernel(op, [](session& s) {
      const auto packed = [](std::size_t p) { return static_cast<std::int64_t>(p % 5); };
      const auto scattered = [](std::size_t p) { return static_cast<std::int64_t>(p * p % 7); };
      const auto same = [](std::size_t p) { return static_cast<std::int64_t>(p / 40); };
      for (const auto& position : {std::function<std::int64_t(std::size_t)>(packed),
                                   std::function<std::int64_t(std::size_t)>(scattered),
                                   std::function<std::int64_t(std::size_t)>(same)}) {
        check_positions<float>(s, {2, 9, 3, 16}, {2, 9, 1}, position);    // BSND, packed rows
        check_positions<float>(s, {2, 3, 70, 12}, {2, 1, 70}, position);  // BNSD
        check_positions<bf16>(s, {7, 2, 3, 16}, {7, 1, 1}, position);     // SBND
        check_positions<float>(s, {2, 3, 4, 12}, {1, 1, 1}, position);
      }
      check_positions<float>(s, {0, 3, 4, 12}, {1, 3, 1}, packed);
    });
  }
}

TEST_CASE("rotary_position_embedding refuses positions that name no row, before it writes") {
  session s;
  array<float> x({1, 3, 4, 8}), y({1, 3, 4, 8}), cos({5, 8}), wide({1, 5, 1, 8});
  array<std::int64_t> positions({1, 3, 1}), flat({3}), other({1, 2, 1});
  y.fill(1);
  using args = velo_rotary_position_embedding_args;
  args valid = VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT;
  valid.x = x.tensor(), valid.cos = cos.tensor(), valid.sin = cos.tensor(), valid.y = y.tensor();
  valid.positions = positions.tensor();
  check_refusals(
      s, velo_rotary_position_embedding, valid, y,
      {{[&](args& f) { f.cos = f.sin = wide.tensor(); }, VELO_ERR_RANK, "args.cos.ndim"},
       {[&](args& f) { f.positions = flat.tensor(); }, VELO_ERR_RANK, "args.positions.ndim"},
       {[&](args& f) { f.positions = other.tensor(); }, VELO_ERR_SHAPE, "args.positions.shape"}});
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}}) {
    positions[1] = bad;
    check_refusals(s, velo_rotary_position_embedding, valid, y,
                   {{[](args&) {}, VELO_ERR_ARGUMENT, "args.positions"}});
  }
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
