// Foreign kernels: C functions of other libraries as operators, called, queued and destroyed.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "capi/foreign.hpp"

using namespace fixture;

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
  CHECK_THAT(last().got, Catch::Contains("VELO_ERR_SHAPE (6) from returns_status of"));
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
