// All the ways in which the description of a foreign kernel can be wrong.
#include "capi/foreign.hpp"
#include "tests/comma_locale.hpp"

using namespace velo::testing;

TEST_CASE("descriptions that cannot work are refused when they are registered") {
  using desc = velo_kernel_desc;
  live_context c;
  velo_kernel kernel = nullptr;
  struct row {
    const char *name, *value;
    velo_status code;
    const char* got;
  };
  const auto check = [&](const char* desc::*field, const std::string& argument,
                         std::initializer_list<row> rows) {
    for (const row& one : rows) {
      INFO(one.name);
      desc d = axpy();
      d.*field = one.value;
      expect(velo_kernel_register(c, &d, &kernel), {one.code, argument.c_str(), one.got},
             "velo_kernel_register");
    }
  };
  check(&desc::op, "desc.op",
        {
            {"no operator name", nullptr, VELO_ERR_NULL, "NULL"},
            {"a name that is no word", "a-b", VELO_ERR_ARGUMENT, "a-b"},
            {"a name velo has", "rms_norm", VELO_ERR_ARGUMENT, "rms_norm"},
            {"an alias velo has", "npu_rms_norm", VELO_ERR_ARGUMENT, "npu_rms_norm"},
        });
  check(&desc::library, "desc.library",
        {
            {"no such library", "/no/such.so", VELO_ERR_IO, "/no/such.so"},
        });
  check(&desc::symbol, "desc.symbol",
        {
            {"no such symbol", "axpi", VELO_ERR_NOT_FOUND, "axpi"},
            {"no symbol", nullptr, VELO_ERR_NULL, "NULL"},
        });
  check(&desc::signature, "desc.signature",
        {
            {"no signature", nullptr, VELO_ERR_NULL, "NULL"},
            {"a malformed signature", "v(lfplpq)", VELO_ERR_PARSE, "column 8"},
            {"a variadic signature", "v(lf...)", VELO_ERR_PARSE, "column 5"},
        });
  check(&desc::binding, "desc.binding",
        {
            {"no binding", nullptr, VELO_ERR_NULL, "NULL"},
            {"too few expressions", "x.numel, attr.alpha", VELO_ERR_ARGUMENT, "2"},
            {"too many expressions", "x.numel, attr.alpha, x.data, 1, y.data, 1, 1",
             VELO_ERR_ARGUMENT, "more"},
            {"an undeclared tensor", "z.numel, attr.alpha, x.data, 1, y.data, 1", VELO_ERR_PARSE,
             "column 1"},
            {"an unknown part", "x.size, attr.alpha, x.data, 1, y.data, 1", VELO_ERR_PARSE,
             "column 3"},
            {"a dimension out of range", "x.shape[8], attr.alpha, x.data, 1, y.data, 1",
             VELO_ERR_PARSE, "column 9"},
            {"data for a number", "x.data, attr.alpha, x.data, 1, y.data, 1", VELO_ERR_PARSE,
             "column 1"},
            {"a number for a pointer", "x.numel, attr.alpha, 3, 1, y.data, 1", VELO_ERR_PARSE,
             "column 22"},
            {"a real constant for an integer", "x.numel, attr.alpha, x.data, 1.5, y.data, 1",
             VELO_ERR_PARSE, "column 30"},
            {"a size for a real", "x.numel, x.numel, x.data, 1, y.data, 1", VELO_ERR_PARSE,
             "column 10"},
            {"an attribute for a pointer", "x.numel, attr.alpha, attr.beta, 1, y.data, 1",
             VELO_ERR_PARSE, "column 22"},
            {"an attribute named as a tensor", "x.numel, attr.x, x.data, 1, y.data, 1",
             VELO_ERR_PARSE, "column 15"},
            {"the stream for a number", "stream, attr.alpha, x.data, 1, y.data, 1", VELO_ERR_PARSE,
             "column 1"},
            {"nothing after a comma", "x.numel, ", VELO_ERR_PARSE, "the end"},
        });
  check(&desc::tensors, "desc.tensors",
        {
            {"no tensors", nullptr, VELO_ERR_NULL, "NULL"},
            {"an unknown direction", "input x f32", VELO_ERR_PARSE, "column 1"},
            {"an unknown dtype", "in x f33", VELO_ERR_PARSE, "column 6"},
            {"a tensor declared twice", "in x f32, out x f32", VELO_ERR_PARSE, "column 15"},
        });
  velo_kernel_desc short_one = axpy();
  short_one.struct_size = 40;
  expect(velo_kernel_register(c, &short_one, &kernel), {VELO_ERR_STRUCT, "desc.struct_size", "40"},
         "velo_kernel_register");
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
    REQUIRE(op_call(c, "axpy", {{"x", of(x)}, {"y", of(y)}}) == VELO_OK);
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
