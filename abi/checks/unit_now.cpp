// The unit of today beside the frozen unit (abi/client/unit.cpp): takes the handles the old unit
// made, gives it handles of its own, and calls the same operator through its own copy of the C++
// layer.
#include <cstdio>

#include "velo/velo.hpp"

velo_context unit_then_context();
double unit_then_norm(velo_stream stream);
int unit_then_failure(velo_context context);

int main() try {
  velo::context context;
  context.reset(unit_then_context());
  const velo::stream stream = velo::stream::create(context);
  if (unit_then_norm(context.inline_stream()) != 3) return 1;
  if (unit_then_failure(context) != VELO_ERR_NOT_FOUND) return 2;
  const float x[4] = {2, 2, 2, 2};
  const float gamma[4] = {1, 1, 1, 3};
  float y[4] = {};
  const velo::tensor_view vx(x, {1, 4}), vg(gamma, {4}), vy(y, {1, 4});
  velo::rms_norm(stream, velo::rms_norm_args().x(vx).gamma(vg).y(vy).epsilon(0));
  stream.synchronize();
  return y[3] == 3 ? 0 : 3;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 4;
}
