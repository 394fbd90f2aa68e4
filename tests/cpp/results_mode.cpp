// The result mode, compiled without exceptions and without RTTI, in the same program as the
// throwing mode. Each function here exercises one promise and returns the number of the first step
// that broke, 0 when all held; results_test.cpp reports them.
#include "results_mode.hpp"

#include <cstring>

#include "velo/velo.hpp"

#ifndef VELO_NO_EXCEPTIONS
#error "without exceptions the result mode must choose itself"
#endif

int failure_is_a_value() {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.config_json = "{\"isa\": ";
  velo::result<velo::context> made = velo::context::create(desc);
  if (made.ok()) return 1;
  if (made.status() != VELO_ERR_PARSE) return 2;
  if (made.value()) return 3;
  const velo::error why = made.error();
  if (why.status() != VELO_ERR_PARSE) return 4;
  if (std::strcmp(why.function(), "velo_context_create") != 0) return 5;
  if (std::strstr(why.what(), "velo_context_create") == nullptr) return 6;
  return 0;
}

int success_holds_the_value() {
  velo::result<velo::context> made = velo::context::create();
  if (!made) return 1;
  velo::context context = std::move(made).value();
  if (!context || made.value()) return 2;
  if (!context.inline_stream().value()) return 3;
  if (context.stats()->threads < 1) return 4;
  return 0;
}

int operators_return_results() {
  velo::context context = velo::context::create().value();
  const velo::stream_ref stream = context.inline_stream().value();
  const float x[4] = {1, 2, 3, 4};
  const float gamma[4] = {1, 1, 1, 1};
  float y[4] = {9, 9, 9, 9};
  const velo::tensor_view vx(x, {1, 4});
  const velo::tensor_view vg(gamma, {4});
  const velo::tensor_view wrong(gamma, {3});
  const velo::tensor_view vy(y, {1, 4});
  velo::result<void> refused =
      velo::op_call(stream, "rms_norm", {{"x", vx}, {"gamma", wrong}, {"y", vy}});
  if (refused.ok()) return 1;
  if (std::strstr(refused.error().argument(), "gamma") == nullptr) return 2;
  if (y[0] != 9) return 3;
  if (!velo::op_call(stream, "rms_norm", {{"x", vx}, {"gamma", vg}, {"y", vy}})) return 4;
  if (y[0] == 9) return 5;
  return 0;
}
