// The first program in C++: one context, one operator by its function and by its name, and what a
// mistake looks like.
//
// Views describe memory the program owns. Build it against an installed velo with:
// c++ -std=c++17 hello.cpp $(pkg-config --cflags --libs velo)
#include <cstdio>
#include <velo/velo.hpp>

int main() try {
  const float x[] = {1, 2, 3, 4, 2, 0, -2, 0};
  const float gain[] = {1, 1, 1, 1};
  float y[8];
  const velo::tensor_view tx(x, {2, 4}), tg(gain, {4}), ty(y, {2, 4});

  const velo::context context = velo::context::create();
  const velo::stream_ref stream = context.inline_stream();

  velo::rms_norm(stream, velo::rms_norm_args().x(tx).gamma(tg).y(ty));
  std::printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);

  try {
    const velo::tensor_view cut(gain, {3});
    velo::op_call(stream, "rms_norm", {{"x", tx}, {"gamma", cut}, {"y", ty}});
  } catch (const velo::error& failure) {  // names the argument; y is untouched
    std::printf("%s is wrong: %s\n", failure.argument(), failure.what());
  }
  return 0;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
