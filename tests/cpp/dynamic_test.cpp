// The dlopen route, in a program that is not linked to velo: load, refuse, work. VELO_LIBRARY is
// the path of the library.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>

#include "velo/velo.hpp"

namespace {

TEST_CASE("this program is not linked to velo") {
  CHECK(dlsym(RTLD_DEFAULT, "velo_version") == nullptr);
}

TEST_CASE("a call before load is an error that names load") {
  REQUIRE_FALSE(velo::loaded());
  try {
    velo::context::create();
    FAIL("a context was made without a library");
  } catch (const velo::error& failure) {
    CHECK(failure.status() == VELO_ERR_STATE);
    CHECK(std::string(failure.what()).find("velo::load") != std::string::npos);
  }
}

TEST_CASE("a library that is not there is an error that names the path and the loader's reason") {
  REQUIRE_FALSE(velo::loaded());
  try {
    velo::load("/nowhere/libvelo.so.1");
    FAIL("a missing library was loaded");
  } catch (const velo::error& failure) {
    CHECK(failure.status() == VELO_ERR_IO);
    CHECK(std::string(failure.got()) == "/nowhere/libvelo.so.1");
    CHECK(std::string(failure.what()).find("No such file") != std::string::npos);
  }
  CHECK_FALSE(velo::loaded());
}

TEST_CASE("a library that is not velo is refused") {
  CHECK_THROWS_AS(velo::load("libm.so.6"), velo::error);
  CHECK_FALSE(velo::loaded());
}

TEST_CASE("a loaded library computes through its table") {
  velo::load(VELO_LIBRARY);
  REQUIRE(velo::loaded());
  velo::load(VELO_LIBRARY);  // again does nothing
  velo::context context = velo::context::create();
  const float x[4] = {1, 2, 3, 4};
  const float gamma[4] = {1, 1, 1, 1};
  float y[4] = {};
  const velo::tensor_view vx(x, {1, 4});
  const velo::tensor_view vg(gamma, {4});
  const velo::tensor_view vy(y, {1, 4});
  velo::op_call(context.inline_stream(), "rms_norm", {{"x", vx}, {"gamma", vg}, {"y", vy}});
  CHECK(y[3] == Approx(4 / 2.7386128).epsilon(1e-5));
  CHECK_THROWS_AS(context.set("no.such.key", "1"), velo::error);
}

}  // namespace
