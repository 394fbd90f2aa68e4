// dropout_add_rms_norm and dropout_add_layer_norm of parts of a whole: rows that are cut in any
// dimension give the bits of the whole; columns have the mask, the sums and, where no gradient
// comes through the norm, the gradients of the whole; places that do not fit are refused by name.
#include "tests/ops/parts.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

struct layer_norm {
  using args = velo_dropout_add_layer_norm_args;
  using gradient = velo_dropout_add_layer_norm_backward_args;
  static constexpr bool centered = true;
  static constexpr auto forward = &velo_dropout_add_layer_norm;
  static constexpr auto backward = &velo_dropout_add_layer_norm_backward;
  static constexpr const char* ops[] = {"dropout_add_layer_norm",
                                        "dropout_add_layer_norm_backward"};
};
struct rms_norm {
  using args = velo_dropout_add_rms_norm_args;
  using gradient = velo_dropout_add_rms_norm_backward_args;
  static constexpr bool centered = false;
  static constexpr auto forward = &velo_dropout_add_rms_norm;
  static constexpr auto backward = &velo_dropout_add_rms_norm_backward;
  static constexpr const char* ops[] = {"dropout_add_rms_norm", "dropout_add_rms_norm_backward"};
};

extents without_columns(extents shape) {
  shape.back() = 1;
  return shape;
}
extents rows_of(extents shape) {
  shape.pop_back();
  return shape;
}

// The tensors of a forward and a gradient call of a norm. T: x, y and scales; Z: residual and sum.
template <class Norm, class T, class Z>
struct calls {
  array<T> x, y, dy, dx, rowscale, layerscale;
  array<Z> residual, pre_norm, dz, dresidual;
  array<float> gamma, mean, rstd, drowscale, dgamma, dlayerscale;
  array<std::uint8_t> mask;

  explicit calls(const extents& shape)
      : x(shape),
        y(shape),
        dy(shape),
        dx(shape),
        rowscale(rows_of(shape)),
        layerscale({shape.back()}),
        residual(shape),
        pre_norm(shape),
        dz(shape),
        dresidual(shape),
        gamma({shape.back()}),
        mean(without_columns(shape)),
        rstd(without_columns(shape)),
        drowscale(rows_of(shape)),
        dgamma({shape.back()}),
        dlayerscale({shape.back()}),
        mask(shape) {}

  void fill(double gradient) {
    x.fill(1), rowscale.fill(2), layerscale.fill(3), residual.fill(4), gamma.fill(5);
    dy.fill(6, gradient), dz.fill(7);
  }
  void take(const part& of, const calls& whole) {
    of.take(x, whole.x), of.take(residual, whole.residual), of.take(dy, whole.dy);
    of.take(dz, whole.dz), of.rows().take(rowscale, whole.rowscale);
    of.columns().take(layerscale, whole.layerscale), of.columns().take(gamma, whole.gamma);
  }
  void run(session& s, const velo_ints* origin = nullptr, const velo_ints* sizes = nullptr) {
    typename Norm::args f{};
    f.struct_size = sizeof f, f.epsilon = 1e-5;
    f.x = x.tensor(), f.residual = residual.tensor(), f.gamma = gamma.tensor();
    f.y = y.tensor(), f.pre_norm = pre_norm.tensor(), f.mask = mask.tensor();
    f.rstd = rstd.tensor();
    typename Norm::gradient b{};
    b.struct_size = sizeof b;
    b.dy = dy.tensor(), b.dpre_norm = dz.tensor(), b.x = f.x, b.pre_norm = f.pre_norm;
    b.gamma = f.gamma, b.rstd = f.rstd, b.dx = dx.tensor(), b.dresidual = dresidual.tensor();
    b.dgamma = dgamma.tensor(), b.drowscale = drowscale.tensor();
    b.dlayerscale = dlayerscale.tensor();
    if constexpr (Norm::centered) f.mean = mean.tensor(), b.mean = f.mean;
    f.rowscale = b.rowscale = rowscale.tensor(), f.layerscale = b.layerscale = layerscale.tensor();
    f.p = b.p = 0.3, f.seed = b.seed = 77, f.offset = b.offset = 5;
    f.dropout_origin = b.dropout_origin = origin, f.dropout_extents = b.dropout_extents = sizes;
    VELO_RUN(Norm::forward(s.stream(), &f));
    VELO_RUN(Norm::backward(s.stream(), &b));
  }
};

template <class Norm, class T, class Z>
void check_part(session& s, const part& of, const calls<Norm, T, Z>& whole, bool whole_rows) {
  INFO("origin " << Catch::Detail::stringify(of.origin) << ", shape "
                 << Catch::Detail::stringify(of.shape) << ", bytes " << sizeof(T) << sizeof(Z));
  calls<Norm, T, Z> mine(of.shape);
  mine.take(of, whole);
  const velo_ints origin = list_of(of.origin), sizes = list_of(of.whole);
  mine.run(s, &origin, &sizes);
  CHECK(of.agrees(mine.mask, whole.mask));
  CHECK(of.agrees(mine.pre_norm, whole.pre_norm));
  CHECK(of.agrees(mine.dresidual, whole.dresidual));
  CHECK(of.agrees(mine.dx, whole.dx));
  if (!whole_rows) return;
  CHECK(of.agrees(mine.y, whole.y));
  CHECK(of.rows().agrees(mine.rstd, whole.rstd));
  CHECK(of.rows().agrees(mine.drowscale, whole.drowscale));
  if (Norm::centered) CHECK(of.rows().agrees(mine.mean, whole.mean));
}

// The gradient of a norm needs whole rows: parts of columns have none to pass through it.
template <class Norm, class T, class Z>
void check_parts(session& s) {
  for (const extents& shape : {extents{9, 41}, {4, 5, 70}, {2, 3, 4, 33}})
    for (const double gradient : {1.0, 0.0}) {
      calls<Norm, T, Z> whole(shape);
      whole.fill(gradient);
      whole.run(s);
      for (const part& one : parts_of(shape)) {
        const bool whole_rows = one.shape.back() == shape.back();
        if (whole_rows || gradient == 0) check_part(s, one, whole, whole_rows);
      }
    }
}

template <class Norm>
void check_norm() {
  for (const char* op : Norm::ops)
    for_each_kernel(op, [](session& s) {
      check_parts<Norm, float, float>(s);
      check_parts<Norm, bf16, bf16>(s), check_parts<Norm, bf16, float>(s);
      check_parts<Norm, f16, f16>(s), check_parts<Norm, f16, float>(s);
    });
}

template <class Norm>
void check_refused() {
  session s;
  array<float> x({3, 4}), y({3, 4}), gamma({4}), statistics({3, 1});
  x.fill(1), y.fill(2), gamma.fill(3), statistics.fill(4);
  typename Norm::args f{};
  f.struct_size = sizeof f;
  f.x = x.tensor(), f.gamma = gamma.tensor(), f.y = y.tensor();
  check_places<typename Norm::args>(s, Norm::forward, f, y);
  typename Norm::gradient b{};
  b.struct_size = sizeof b;
  b.dy = b.pre_norm = f.x, b.gamma = f.gamma, b.rstd = statistics.tensor(), b.dx = f.y;
  if constexpr (Norm::centered) b.mean = b.rstd;
  check_places<typename Norm::gradient>(s, Norm::backward, b, y);
}

}  // namespace

TEST_CASE("parts of dropout_add_norms drop what the whole drops, for every kernel and dtypes") {
  check_norm<layer_norm>();
  check_norm<rms_norm>();
}

TEST_CASE("dropout_add_norms and their gradients refuse places that do not fit, by name") {
  check_refused<layer_norm>();
  check_refused<rms_norm>();
}
