// A C++ translation unit of this release, compiled against the velo.hpp of that day and linked into
// one program with a unit that uses the headers of today: the two layers may not collide, and both
// work on the same handles.
#include "velo/velo.hpp"

velo_context unit_then_context() {
  return velo::context::create().release();
}

double unit_then_norm(velo_stream stream) {
  const float x[4] = {2, 2, 2, 2};
  const float gamma[4] = {1, 1, 1, 3};
  float y[4] = {};
  const velo::tensor_view vx(x, {1, 4}), vg(gamma, {4}), vy(y, {1, 4});
  velo::rms_norm(stream, velo::rms_norm_args().x(vx).gamma(vg).y(vy).epsilon(0));
  return y[3];
}

int unit_then_failure(velo_context context) {
  try {
    velo::stream stream = velo::stream::create(context);
    velo::op_call(stream, "no_such_operator", {});
  } catch (const velo::error& failure) {
    return failure.status();
  }
  return VELO_OK;
}
