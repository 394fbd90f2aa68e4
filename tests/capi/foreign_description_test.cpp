// All the ways in which the description of a foreign kernel can be wrong.
#include "capi/foreign.hpp"
#include "tests/comma_locale.hpp"

using namespace velo::testing;

TEST_CASE("descriptions that cannot work are refused when they are registered") {
  using desc = velo_kernel_desc;
  const struct {
    const char* name;
    const char* desc::*field;
    const char* value;
    wrong how;
  } rows[] = {
      {"no operator name", &desc::op, nullptr, {VELO_ERR_NULL, "desc.op", "NULL"}},
      {"a name that is no word", &desc::op, "a-b", {VELO_ERR_ARGUMENT, "desc.op", "a-b"}},
      {"a name velo has", &desc::op, "rms_norm", {VELO_ERR_ARGUMENT, "desc.op", "rms_norm"}},
      {"an alias velo has",
       &desc::op,
       "npu_rms_norm",
       {VELO_ERR_ARGUMENT, "desc.op", "npu_rms_norm"}},
      {"no such library",
       &desc::library,
       "/no/such.so",
       {VELO_ERR_IO, "desc.library", "/no/such.so"}},
      {"no such symbol", &desc::symbol, "axpi", {VELO_ERR_NOT_FOUND, "desc.symbol", "axpi"}},
      {"no symbol", &desc::symbol, nullptr, {VELO_ERR_NULL, "desc.symbol", "NULL"}},
      {"no signature", &desc::signature, nullptr, {VELO_ERR_NULL, "desc.signature", "NULL"}},
      {"no binding", &desc::binding, nullptr, {VELO_ERR_NULL, "desc.binding", "NULL"}},
      {"no tensors", &desc::tensors, nullptr, {VELO_ERR_NULL, "desc.tensors", "NULL"}},
      {"a malformed signature",
       &desc::signature,
       "v(lfplpq)",
       {VELO_ERR_PARSE, "desc.signature", "column 8"}},
      {"a variadic signature",
       &desc::signature,
       "v(lf...)",
       {VELO_ERR_PARSE, "desc.signature", "column 5"}},
      {"too few expressions",
       &desc::binding,
       "x.numel, attr.alpha",
       {VELO_ERR_ARGUMENT, "desc.binding", "2"}},
      {"too many expressions",
       &desc::binding,
       "x.numel, attr.alpha, x.data, 1, y.data, 1, 1",
       {VELO_ERR_ARGUMENT, "desc.binding", "more"}},
      {"an undeclared tensor",
       &desc::binding,
       "z.numel, attr.alpha, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 1"}},
      {"an unknown part",
       &desc::binding,
       "x.size, attr.alpha, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 3"}},
      {"a dimension out of range",
       &desc::binding,
       "x.shape[8], attr.alpha, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 9"}},
      {"data for a number",
       &desc::binding,
       "x.data, attr.alpha, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 1"}},
      {"a number for a pointer",
       &desc::binding,
       "x.numel, attr.alpha, 3, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 22"}},
      {"a real constant for an integer",
       &desc::binding,
       "x.numel, attr.alpha, x.data, 1.5, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 30"}},
      {"a size for a real",
       &desc::binding,
       "x.numel, x.numel, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 10"}},
      {"an attribute for a pointer",
       &desc::binding,
       "x.numel, attr.alpha, attr.beta, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 22"}},
      {"an attribute named as a tensor",
       &desc::binding,
       "x.numel, attr.x, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 15"}},
      {"the stream for a number",
       &desc::binding,
       "stream, attr.alpha, x.data, 1, y.data, 1",
       {VELO_ERR_PARSE, "desc.binding", "column 1"}},
      {"nothing after a comma",
       &desc::binding,
       "x.numel, ",
       {VELO_ERR_PARSE, "desc.binding", "the end"}},
      {"an unknown direction",
       &desc::tensors,
       "input x f32",
       {VELO_ERR_PARSE, "desc.tensors", "column 1"}},
      {"an unknown dtype",
       &desc::tensors,
       "in x f33",
       {VELO_ERR_PARSE, "desc.tensors", "column 6"}},
      {"a tensor declared twice",
       &desc::tensors,
       "in x f32, out x f32",
       {VELO_ERR_PARSE, "desc.tensors", "column 15"}},
  };
  live_context c;
  velo_kernel kernel = nullptr;
  for (const auto& row : rows) {
    INFO(row.name);
    velo_kernel_desc d = axpy();
    d.*row.field = row.value;
    CHECK(velo_kernel_register(c, &d, &kernel) == row.how.code);
    expect(row.how, "velo_kernel_register");
  }
  velo_kernel_desc short_one = axpy();
  short_one.struct_size = 40;
  CHECK(velo_kernel_register(c, &short_one, &kernel) == VELO_ERR_STRUCT);
  expect({VELO_ERR_STRUCT, "desc.struct_size", "40"}, "velo_kernel_register");
  CHECK(kernel == nullptr);
  CHECK(listed(c) == "[]");
}

TEST_CASE("numbers of a binding are read alike in every locale, and as one writes numbers") {
  const auto registers = [](const char* factor) {
    live_context c;
    const std::string binding = std::string("x.numel, ") + factor + ", x.data, 1, y.data, 1";
    velo_kernel_desc desc = axpy();
    desc.binding = binding.c_str();
    velo_kernel kernel = nullptr;
    if (velo_kernel_register(c, &desc, &kernel) != VELO_OK) return 0.0f;
    float_tensor x({3}, 2.0f), y({3}, 1.0f);
    REQUIRE(op_call(c.inline_stream(), "axpy", {{"x", of(x)}, {"y", of(y)}}) == VELO_OK);
    return y.data[2];
  };
  const auto check = [&] {
    CHECK(registers("0.5") == 2.0f);
    CHECK(registers("-1.5e-1") == 0.7f);
    CHECK(registers("2") == 5.0f);
    CHECK(registers("02") == 0.0f);
    CHECK(registers("+2") == 0.0f);
    CHECK(registers("1e999") == 0.0f);
  };
  check();
  const velo::testing::comma_locale comma;
  check();
}

TEST_CASE("a name is taken once in a context, and free in another") {
  live_context c, other;
  made(c, axpy());
  const velo_kernel_desc again = axpy();
  velo_kernel kernel = nullptr;
  CHECK_REFUSED(velo_kernel_register(c, &again, &kernel), VELO_ERR_ARGUMENT, "desc.op");
  CHECK(velo_kernel_register(other, &again, &kernel) == VELO_OK);
  CHECK(velo_kernel_register(c, nullptr, &kernel) == VELO_ERR_NULL);
  CHECK_REFUSED(velo_kernel_register(other, &again, nullptr), VELO_ERR_NULL, "kernel");
}
