// All the ways in which the description of a foreign kernel can be wrong.
#include "capi/foreign.hpp"
#include "tests/comma_locale.hpp"

using namespace fixture;

TEST_CASE("descriptions that cannot work are refused when they are registered") {
  context c;
  velo_kernel_desc d = axpy();
  wrong w{};
  SECTION("no operator name") {
    d.op = nullptr;
    w = {VELO_ERR_NULL, "desc.op", "NULL"};
  }
  SECTION("a name that is no word") {
    d.op = "a-b";
    w = {VELO_ERR_ARGUMENT, "desc.op", "a-b"};
  }
  SECTION("a name velo has") {
    d.op = "rms_norm";
    w = {VELO_ERR_ARGUMENT, "desc.op", "rms_norm"};
  }
  SECTION("an alias velo has") {
    d.op = "npu_rms_norm";
    w = {VELO_ERR_ARGUMENT, "desc.op", "npu_rms_norm"};
  }
  SECTION("no such library") {
    d.library = "/no/such.so";
    w = {VELO_ERR_IO, "desc.library", "/no/such.so"};
  }
  SECTION("no such symbol") {
    d.symbol = "axpi";
    w = {VELO_ERR_NOT_FOUND, "desc.symbol", "axpi"};
  }
  SECTION("no symbol") {
    d.symbol = nullptr;
    w = {VELO_ERR_NULL, "desc.symbol", "NULL"};
  }
  SECTION("no signature") {
    d.signature = nullptr;
    w = {VELO_ERR_NULL, "desc.signature", "NULL"};
  }
  SECTION("no binding") {
    d.binding = nullptr;
    w = {VELO_ERR_NULL, "desc.binding", "NULL"};
  }
  SECTION("no tensors") {
    d.tensors = nullptr;
    w = {VELO_ERR_NULL, "desc.tensors", "NULL"};
  }
  SECTION("a malformed signature") {
    d.signature = "v(lfplpq)";
    w = {VELO_ERR_PARSE, "desc.signature", "column 8"};
  }
  SECTION("a variadic signature") {
    d.signature = "v(lf...)";
    w = {VELO_ERR_PARSE, "desc.signature", "column 5"};
  }
  SECTION("too few expressions") {
    d.binding = "x.numel, attr.alpha";
    w = {VELO_ERR_ARGUMENT, "desc.binding", "2"};
  }
  SECTION("too many expressions") {
    d.binding = "x.numel, attr.alpha, x.data, 1, y.data, 1, 1";
    w = {VELO_ERR_ARGUMENT, "desc.binding", "more"};
  }
  SECTION("an undeclared tensor") {
    d.binding = "z.numel, attr.alpha, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 1"};
  }
  SECTION("an unknown part") {
    d.binding = "x.size, attr.alpha, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 3"};
  }
  SECTION("a dimension out of range") {
    d.binding = "x.shape[8], attr.alpha, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 9"};
  }
  SECTION("data for a number") {
    d.binding = "x.data, attr.alpha, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 1"};
  }
  SECTION("a number for a pointer") {
    d.binding = "x.numel, attr.alpha, 3, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 22"};
  }
  SECTION("a real constant for an integer") {
    d.binding = "x.numel, attr.alpha, x.data, 1.5, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 30"};
  }
  SECTION("a size for a real") {
    d.binding = "x.numel, x.numel, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 10"};
  }
  SECTION("an attribute for a pointer") {
    d.binding = "x.numel, attr.alpha, attr.beta, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 22"};
  }
  SECTION("an attribute named as a tensor") {
    d.binding = "x.numel, attr.x, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 15"};
  }
  SECTION("the stream for a number") {
    d.binding = "stream, attr.alpha, x.data, 1, y.data, 1";
    w = {VELO_ERR_PARSE, "desc.binding", "column 1"};
  }
  SECTION("nothing after a comma") {
    d.binding = "x.numel, ";
    w = {VELO_ERR_PARSE, "desc.binding", "the end"};
  }
  SECTION("an unknown direction") {
    d.tensors = "input x f32";
    w = {VELO_ERR_PARSE, "desc.tensors", "column 1"};
  }
  SECTION("an unknown dtype") {
    d.tensors = "in x f33";
    w = {VELO_ERR_PARSE, "desc.tensors", "column 6"};
  }
  SECTION("a tensor declared twice") {
    d.tensors = "in x f32, out x f32";
    w = {VELO_ERR_PARSE, "desc.tensors", "column 15"};
  }
  SECTION("a struct that is too short") {
    d.struct_size = 40;
    w = {VELO_ERR_STRUCT, "desc.struct_size", "40"};
  }
  velo_kernel kernel = nullptr;
  CHECK(velo_kernel_register(c.handle, &d, &kernel) == w.code);
  expect(w, "velo_kernel_register");
  CHECK(kernel == nullptr);
  CHECK(listed(c) == "[]");
}

TEST_CASE("numbers of a binding are read alike in every locale, and as one writes numbers") {
  const auto registers = [](const char* factor) {
    context c;
    const std::string binding = std::string("x.numel, ") + factor + ", x.data, 1, y.data, 1";
    velo_kernel_desc desc = axpy();
    desc.binding = binding.c_str();
    velo_kernel kernel = nullptr;
    if (velo_kernel_register(c.handle, &desc, &kernel) != VELO_OK) return 0.0f;
    tensor x({3}, 2.0f), y({3}, 1.0f);
    REQUIRE(op_call(c.stream, "axpy", {{"x", of(x)}, {"y", of(y)}}) == VELO_OK);
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
  context c, other;
  made(c, axpy());
  const velo_kernel_desc again = axpy();
  velo_kernel kernel = nullptr;
  CHECK(velo_kernel_register(c.handle, &again, &kernel) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.op");
  CHECK(velo_kernel_register(other.handle, &again, &kernel) == VELO_OK);
  CHECK(velo_kernel_register(c.handle, nullptr, &kernel) == VELO_ERR_NULL);
  CHECK(velo_kernel_register(other.handle, &again, nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "kernel");
}
