// Foreign kernels and plugins: C functions of other libraries as operators, and all the ways in
// which a description can be wrong.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "capi/fixture.hpp"

using namespace fixture;

namespace {

std::string module(const char* name) {
  return std::string(VELO_TEST_PLUGINS) + "/plugin_" + name + ".so";
}
const std::string kernels_library = module("kernels");

velo_kernel_desc describe(const char* op, const char* symbol, const char* signature,
                          const char* binding, const char* tensors) {
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = op;
  desc.library = kernels_library.c_str();
  desc.symbol = symbol;
  desc.signature = signature;
  desc.binding = binding;
  desc.tensors = tensors;
  return desc;
}

velo_kernel_desc axpy() {
  return describe("axpy", "axpy", "v(lfplpl)", "x.numel, attr.alpha, x.data, 1, y.data, 1",
                  "in x f32, inout y f32");
}

velo_kernel made(const context& c, const velo_kernel_desc& desc) {
  velo_kernel kernel = nullptr;
  REQUIRE(velo_kernel_register(c.handle, &desc, &kernel) == VELO_OK);
  return kernel;
}

std::string listed(const context& c) {
  return text([&](char* b, std::uint64_t n, std::uint64_t* needed) {
    return velo_kernel_list(c.handle, b, n, needed);
  });
}

struct wrong {
  velo_status code;
  const char* argument;
  const char* got;  // part of it
};

void expect(const wrong& w, const char* function) {
  const failure f = last();
  CHECK(f.code == w.code);
  CHECK(f.function == function);
  CHECK(f.argument == w.argument);
  CHECK_THAT(f.got, Catch::Contains(w.got));
}

}  // namespace

TEST_CASE("a C function becomes an operator by description alone") {
  context c;
  made(c, axpy());
  tensor x({2, 3}, 2.0f), y({2, 3}, 1.0f);
  REQUIRE(op_call(c.stream, "axpy", {{"x", of(x)}, {"y", of(y)}, {"alpha", real(0.5)}}) == VELO_OK);
  CHECK(y.data == std::vector<float>(6, 2.0f));
  REQUIRE(op_call(c.stream, "axpy", {{"x", of(x)}, {"y", of(y)}, {"alpha", integer(-1)}}) ==
          VELO_OK);
  CHECK(y.data == std::vector<float>(6, 0.0f));
}

TEST_CASE("libm reached through a wrapper gives libm's numbers") {
  context c;
  made(c, describe("power", "power", "v(ipfp)", "x.numel, x.data, attr.exponent, y.data",
                   "in x f32, out y f32"));
  tensor x({5}), y({5});
  for (std::size_t i = 0; i < 5; ++i) x.data[i] = 0.5f + static_cast<float>(i);
  REQUIRE(op_call(c.stream, "power", {{"x", of(x)}, {"y", of(y)}, {"exponent", real(2.5)}}) ==
          VELO_OK);
  for (std::size_t i = 0; i < 5; ++i) CHECK(y.data[i] == powf(x.data[i], 2.5f));
}

TEST_CASE("a function of a system library is found by soname, its result ignored") {
  context c;
  velo_kernel_desc desc = describe("power_of_two", "powf", "f(ff)", "attr.base, 2.0", "");
  desc.library = "libm.so.6";
  made(c, desc);
  CHECK(op_call(c.stream, "power_of_two", {{"base", real(3)}}) == VELO_OK);
  CHECK_THAT(listed(c), Catch::Contains("libm"));
}

TEST_CASE("every expression of a binding gives its value") {
  context c;
  made(c, describe("witness", "witness", "v(lilldifp)",
                   "x.numel, x.rank, x.shape[1], x.bytes, attr.real, attr.whole, 1.5, out.data",
                   "in x bf16, out out i64"));
  std::int64_t values[7] = {};
  const std::int64_t seven[1] = {7}, shape[3] = {2, 3, 4};
  std::uint16_t data[24] = {};
  const velo_tensor x = {data, {VELO_DEVICE_CPU, 0}, 3, {VELO_DTYPE_BFLOAT, 16, 1}, shape, nullptr,
                         0};
  const velo_tensor out = {values, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_INT, 64, 1}, seven, nullptr,
                           0};
  REQUIRE(op_call(c.stream, "witness",
                  {{"x", tensor_value(&x)},
                   {"out", tensor_value(&out)},
                   {"real", real(9.0)},
                   {"whole", integer(-5)}}) == VELO_OK);
  const std::int64_t expected[7] = {24, 3, 3, 48, 9, -5, 3};
  CHECK(std::memcmp(values, expected, sizeof expected) == 0);
}

TEST_CASE("int4 tensors are compact, have even rows and half as many bytes as elements") {
  context c;
  made(c, describe("witness", "witness", "v(lilldifp)",
                   "x.numel, x.rank, x.shape[1], x.bytes, attr.real, attr.whole, 1.5, out.data",
                   "in x i4, out out i64"));
  std::int64_t values[14] = {};
  const std::int64_t seven[1] = {7}, strides[2] = {8, 1};
  std::int64_t shape[2] = {2, 6};
  velo_tensor x = {values, {VELO_DEVICE_CPU, 0}, 2, {VELO_DTYPE_INT, 4, 1}, shape, nullptr, 0};
  velo_tensor out = {values + 7, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_INT, 64, 1}, seven, nullptr,
                     0};
  const named all = {{"x", tensor_value(&x)},
                     {"out", tensor_value(&out)},
                     {"real", real(9.0)},
                     {"whole", integer(-5)}};
  REQUIRE(op_call(c.stream, "witness", all) == VELO_OK);
  CHECK(values[7] == 12);
  CHECK(values[10] == 6);
  SECTION("memory that begins at the last byte of the tensor overlaps, the next does not") {
    alignas(8) unsigned char bytes[72] = {};
    x.data = bytes + 2;
    out.data = bytes + 8;
    CHECK(op_call(c.stream, "witness", all) == VELO_OK);
    x.data = bytes + 3;
    CHECK(op_call(c.stream, "witness", all) == VELO_ERR_OVERLAP);
  }
  SECTION("odd rows") {
    shape[1] = 5;
    CHECK(op_call(c.stream, "witness", all) == VELO_ERR_SHAPE);
    CHECK(last().argument == "args.x.shape");
  }
  SECTION("rows apart") {
    x.strides = strides;
    CHECK(op_call(c.stream, "witness", all) == VELO_ERR_LAYOUT);
    CHECK(last().argument == "args.x.strides");
  }
}

TEST_CASE("a kernel that binds strides takes strided tensors, another one refuses them") {
  context c;
  made(c, describe("twice", "twice", "v(lllpp)",
                   "x.shape[0], x.shape[1], x.stride[0], x.data, y.data", "in x f64, out y f64"));
  double x[6] = {1, 2, -1, 3, 4, -1}, y[4] = {};
  const std::int64_t shape[2] = {2, 2}, strides[2] = {3, 1};
  const velo_tensor from = {x, {VELO_DEVICE_CPU, 0}, 2, {VELO_DTYPE_FLOAT, 64, 1}, shape, strides,
                            0};
  const velo_tensor to = {y, {VELO_DEVICE_CPU, 0}, 2, {VELO_DTYPE_FLOAT, 64, 1}, shape, nullptr, 0};
  REQUIRE(op_call(c.stream, "twice", {{"x", tensor_value(&from)}, {"y", tensor_value(&to)}}) ==
          VELO_OK);
  CHECK(std::vector<double>(y, y + 4) == std::vector<double>{2, 4, 6, 8});

  made(c, axpy());
  tensor a({2, 2}), b({2, 2});
  a.view.strides = strides;
  CHECK(op_call(c.stream, "axpy", {{"x", of(a)}, {"y", of(b)}, {"alpha", real(1)}}) ==
        VELO_ERR_LAYOUT);
  CHECK(last().argument == "args.x.strides");
}

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

TEST_CASE("calls that break a kernel's declaration are refused, and nothing runs") {
  context c;
  made(c, axpy());
  tensor x({4}, 1.0f), y({4}, 1.0f);
  named values = {{"x", of(x)}, {"y", of(y)}, {"alpha", real(1)}};
  wrong w{};
  SECTION("an attribute left out") {
    values.pop_back();
    w = {VELO_ERR_ARGUMENT, "args.alpha", "none"};
  }
  SECTION("an attribute of another kind") {
    values[2].value = string("1");
    w = {VELO_ERR_ARGUMENT, "args.alpha", "a string"};
  }
  SECTION("an attribute no float holds") {
    values[2].value = real(1e300);
    w = {VELO_ERR_ARGUMENT, "args.alpha", "1e+300"};
  }
  SECTION("a tensor left out") {
    values.erase(values.begin());
    w = {VELO_ERR_NULL, "args.x", "NULL"};
  }
  SECTION("another dtype") {
    x.view.dtype.bits = 64;
    w = {VELO_ERR_DTYPE, "args.x.dtype", "float64"};
  }
  SECTION("another device") {
    x.view.device.type = 2;
    w = {VELO_ERR_DEVICE, "args.x.device", "{2, 0}"};
  }
  SECTION("no data") {
    x.view.data = nullptr;
    w = {VELO_ERR_NULL, "args.x.data", "NULL"};
  }
  SECTION("an output that is also an input") {
    values[0].value = of(y);
    w = {VELO_ERR_OVERLAP, "args.y", "args.x"};
  }
  SECTION("an unknown field") {
    values[2].name = "beta";
    w = {VELO_ERR_NOT_FOUND, "args.beta", "values[2]"};
  }
  CHECK(op_call(c.stream, "axpy", values) == w.code);
  expect(w, "velo_op_call");
  CHECK(y.data == std::vector<float>(4, 1.0f));
}

TEST_CASE("a tensor needs the dimensions that the binding names") {
  context c;
  made(c, describe("twice", "twice", "v(lllpp)",
                   "x.shape[0], x.shape[1], x.stride[0], x.data, y.data", "in x f32, out y f32"));
  tensor x({4}), y({4});
  CHECK(op_call(c.stream, "twice", {{"x", of(x)}, {"y", of(y)}}) == VELO_ERR_RANK);
  CHECK(last().argument == "args.x.ndim");
}

TEST_CASE("a foreign exception is a failure with the library's name, inline and queued") {
  context c;
  const std::string library = module("throws");
  velo_kernel_desc desc = describe("throws", "throws_exception", "v()", "", "");
  desc.library = library.c_str();
  made(c, desc);
  CHECK(op_call(c.stream, "throws", {}) == VELO_ERR_FOREIGN);
  CHECK_THAT(last().got,
             Catch::Contains("throws_exception of") && Catch::Contains("plugin_throws.so"));
  CHECK(last().cause == "no more paper");
  velo_stream queue = nullptr;
  REQUIRE(velo_stream_create(c.handle, &queue) == VELO_OK);
  REQUIRE(op_call(queue, "throws", {}) == VELO_OK);
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_FOREIGN);
  CHECK(last().cause == "no more paper");
  REQUIRE(velo_stream_clear(queue) == VELO_OK);
}

TEST_CASE("a kernel that returns a status is believed") {
  context c;
  made(c, describe("status", "returns_status", "s(i)", "attr.status", ""));
  CHECK(op_call(c.stream, "status", {{"status", integer(0)}}) == VELO_OK);
  CHECK(op_call(c.stream, "status", {{"status", integer(6)}}) == VELO_ERR_FOREIGN);
  CHECK_THAT(last().got, Catch::Contains("status 6 from returns_status of"));
  CHECK(op_call(c.stream, "status", {{"status", integer(std::int64_t{1} << 31)}}) ==
        VELO_ERR_ARGUMENT);
  CHECK(last().argument == "args.status");
}

TEST_CASE("queued calls run in order and need nothing of the caller but the data") {
  context c;
  made(c, axpy());
  velo_stream queue = nullptr;
  REQUIRE(velo_stream_create(c.handle, &queue) == VELO_OK);
  std::vector<float> x(8, 1.0f), y(8, 0.0f);
  for (int round = 0; round < 10; ++round) {
    tensor tx({8}), ty({8});
    tx.view.data = x.data();
    ty.view.data = y.data();
    REQUIRE(op_call(queue, "axpy", {{"x", of(tx)}, {"y", of(ty)}, {"alpha", real(round)}}) ==
            VELO_OK);
  }
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(y == std::vector<float>(8, 45.0f));
}

TEST_CASE("destroying a kernel waits for its running and queued calls") {
  context c;
  velo_kernel kernel =
      made(c, describe("sleep", "sleep_for", "i(lp)", "attr.ms, done.data", "inout done i32"));
  velo_stream queue = nullptr;
  REQUIRE(velo_stream_create(c.handle, &queue) == VELO_OK);
  std::int32_t done = 0;
  const std::int64_t one[1] = {1};
  const velo_tensor t = {&done, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_INT, 32, 1}, one, nullptr, 0};
  for (int i = 0; i < 3; ++i)
    REQUIRE(op_call(queue, "sleep", {{"ms", integer(30)}, {"done", tensor_value(&t)}}) == VELO_OK);
  velo_kernel_destroy(kernel);
  CHECK(done == 3);
  CHECK(op_call(queue, "sleep", {{"ms", integer(1)}, {"done", tensor_value(&t)}}) ==
        VELO_ERR_NOT_FOUND);
  CHECK(last().argument == "op");
  CHECK(listed(c) == "[]");
  velo_kernel_destroy(kernel);  // a destroyed handle is ignored
  CHECK(last().code == VELO_ERR_HANDLE);
}

namespace {

// Counts its calls that are inside; a moment long, so that a destroy meets some.
std::atomic<int> inside_now{0}, entered{0};
void counted(std::int64_t) {
  inside_now.fetch_add(1);
  entered.fetch_add(1);
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  inside_now.fetch_sub(1);
}

}  // namespace

TEST_CASE("a kernel destroyed while threads call it is left by all of them, and entered by none") {
  context c;
  velo_kernel_desc desc = describe("counted", nullptr, "v(l)", "attr.n", "");
  desc.library = nullptr;
  desc.function = reinterpret_cast<void*>(&counted);
  for (int round = 0; round < 5; ++round) {
    velo_kernel kernel = made(c, desc);
    std::atomic<int> wrong_status{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&] {
        velo_status status = VELO_OK;
        while (status == VELO_OK) status = op_call(c.stream, "counted", {{"n", integer(1)}});
        if (status != VELO_ERR_NOT_FOUND) wrong_status.fetch_add(1);
      });
    }
    const int before = entered.load();
    while (entered.load() < before + 8) std::this_thread::yield();
    velo_kernel_destroy(kernel);
    CHECK(inside_now.load() == 0);
    const int after = entered.load();
    for (std::thread& caller : callers) caller.join();
    CHECK(entered.load() == after);
    CHECK(wrong_status.load() == 0);
  }
}

namespace {

// A kernel given as a function: it gets the stream and calls velo itself.
velo_stream seen_stream = nullptr;
velo_kernel own_kernel = nullptr;
velo_status uses_velo(velo_stream stream, const float* x, float* y) {
  seen_stream = stream;
  velo_kernel_destroy(own_kernel);  // refused: it is running
  const std::int64_t shape[1] = {4};
  const velo_tensor in = {
      const_cast<float*>(x), {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_FLOAT, 32, 1}, shape, nullptr, 0};
  const velo_tensor out = {y, {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_FLOAT, 32, 1}, shape, nullptr,
                           0};
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &in;
  args.gamma = &in;
  args.y = &out;
  return velo_rms_norm(stream, &args);
}

}  // namespace

TEST_CASE("a kernel that takes the stream may call velo on it, and cannot destroy itself") {
  context c;
  velo_kernel_desc desc =
      describe("nested", nullptr, "s(ppp)", "stream, x.data, y.data", "in x f32, out y f32");
  desc.library = nullptr;
  desc.function = reinterpret_cast<void*>(&uses_velo);
  own_kernel = made(c, desc);
  tensor x({4}, 2.0f), y({4});
  REQUIRE(op_call(c.stream, "nested", {{"x", of(x)}, {"y", of(y)}}) == VELO_OK);
  CHECK(seen_stream == c.stream);
  CHECK(y.data[0] == Approx(2.0f));
  CHECK_THAT(listed(c), Catch::Contains("\"nested\""));
}

TEST_CASE("a foreign kernel explains itself and declares no shapes") {
  context c;
  made(c, axpy());
  tensor x({4}), y({4});
  const named values = {{"x", of(x)}, {"y", of(y)}, {"alpha", real(1)}};
  const std::string why = text([&](char* b, std::uint64_t n, std::uint64_t* needed) {
    return velo_op_explain(c.handle, "axpy", values.data(), 3, b, n, needed);
  });
  CHECK_THAT(why, Catch::Contains("plugin_kernels.so") && Catch::Contains("\"chosen\":true"));
  std::int64_t count = 0;
  CHECK(velo_op_infer(c.handle, "axpy", values.data(), 3, nullptr, 0, &count) ==
        VELO_ERR_UNSUPPORTED);
  CHECK(last().argument == "op");
}

TEST_CASE("the list of kernels names the file of each, resolved") {
  context c;
  made(c, axpy());
  char* resolved = realpath(kernels_library.c_str(), nullptr);
  CHECK_THAT(listed(c), Catch::Contains(std::string("\"library\":\"") + resolved + "\""));
  CHECK_THAT(listed(c), Catch::Contains("\"signature\":\"v(lfplpl)\""));
  std::free(resolved);
}

TEST_CASE("a plugin brings all its kernels, whatever the age of its description") {
  context c;
  tensor y({3}, 4.0f);
  REQUIRE(velo_plugin_load(c.handle, module("good").c_str()) == VELO_OK);
  REQUIRE(op_call(c.stream, "good_scale", {{"y", of(y)}, {"by", real(0.5)}}) == VELO_OK);
  REQUIRE(op_call(c.stream, "good_shift", {{"y", of(y)}, {"by", real(1)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  CHECK_THAT(listed(c), Catch::Contains("\"plugin\":\"good 2.1\""));
  REQUIRE(velo_plugin_load(c.handle, module("old").c_str()) == VELO_OK);
  REQUIRE(op_call(c.stream, "old_double", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 6.0f);
  REQUIRE(op_call(c.stream, "old_halve", {{"y", of(y)}}) == VELO_OK);
  CHECK(y.data[0] == 3.0f);
  const std::string before = listed(c);
  CHECK(velo_plugin_load(c.handle, module("good").c_str()) ==
        VELO_ERR_ARGUMENT);  // names are taken
  CHECK(listed(c) == before);
}

TEST_CASE("a plugin that does not fit brings nothing") {
  context c;
  const char* which = nullptr;
  wrong w{};
  SECTION("another major version") {
    which = "wrong_major";
    w = {VELO_ERR_ABI, "path", "ABI 2.0"};
  }
  SECTION("one that refuses this library") {
    which = "refuses";
    w = {VELO_ERR_ABI, "path", "status 14"};
  }
  SECTION("a library without velo_plugin_query") {
    which = "no_query";
    w = {VELO_ERR_NOT_FOUND, "path", "velo_plugin_query"};
  }
  SECTION("one bad kernel among good ones") {
    which = "one_bad";
    w = {VELO_ERR_PARSE, "kernels[1].signature", "'q'"};
  }
  SECTION("no such file") {
    which = "absent";
    w = {VELO_ERR_IO, "path", "plugin_absent.so"};
  }
  CHECK(velo_plugin_load(c.handle, module(which).c_str()) == w.code);
  expect(w, "velo_plugin_load");
  CHECK(listed(c) == "[]");
}

TEST_CASE("a plugin's path and context are needed") {
  context c;
  CHECK(velo_plugin_load(c.handle, nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "path");
  CHECK(velo_plugin_load(nullptr, "x") == VELO_ERR_NULL);
  CHECK(last().argument == "context");
}
