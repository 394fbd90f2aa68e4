// Foreign kernels: C functions of other libraries as operators, called, queued and destroyed.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "capi/foreign.hpp"

using namespace velo::testing;

TEST_CASE("a C function becomes an operator by description alone") {
  live_context c;
  made(c, axpy());
  float_tensor x({2, 3}, 2.0f), y({2, 3}, 1.0f);
  REQUIRE(op_call(c, "axpy", {{"x", of(x)}, {"y", of(y)}, {"alpha", real(0.5)}}) == VELO_OK);
  CHECK(y.data == std::vector<float>(6, 2.0f));
  REQUIRE(op_call(c, "axpy", {{"x", of(x)}, {"y", of(y)}, {"alpha", integer(-1)}}) == VELO_OK);
  CHECK(y.data == std::vector<float>(6, 0.0f));
}

TEST_CASE("libm reached through a wrapper gives libm's numbers") {
  live_context c;
  made(c, describe("power", "power", "v(ipfp)", "x.numel, x.data, attr.exponent, y.data",
                   "in x f32, out y f32"));
  float_tensor x({5}), y({5});
  for (std::size_t i = 0; i < 5; ++i) x.data[i] = 0.5f + static_cast<float>(i);
  REQUIRE(op_call(c, "power", {{"x", of(x)}, {"y", of(y)}, {"exponent", real(2.5)}}) == VELO_OK);
  for (std::size_t i = 0; i < 5; ++i) CHECK(y.data[i] == powf(x.data[i], 2.5f));
}

TEST_CASE("a function of a system library is found by soname, its result ignored") {
  live_context c;
  velo_kernel_desc desc = describe("power_of_two", "powf", "f(ff)", "attr.base, 2.0", "");
  desc.library = "libm.so.6";
  made(c, desc);
  CHECK(op_call(c, "power_of_two", {{"base", real(3)}}) == VELO_OK);
  CHECK_THAT(listed(c), Catch::Contains("libm"));
}

TEST_CASE("every expression of a binding gives its value") {
  live_context c;
  made(c, describe("witness", "witness", "v(lilldifp)",
                   "x.numel, x.rank, x.shape[1], x.bytes, attr.real, attr.whole, 1.5, out.data",
                   "in x bf16, out out i64"));
  std::int64_t values[7] = {};
  const std::int64_t seven[1] = {7}, shape[3] = {2, 3, 4};
  std::uint16_t data[24] = {};
  const velo_tensor x = view_of(data, bf16, shape);
  const velo_tensor out = view_of(values, i64, seven);
  REQUIRE(op_call(c, "witness",
                  {{"x", of(x)}, {"out", of(out)}, {"real", real(9.0)}, {"whole", integer(-5)}}) ==
          VELO_OK);
  const std::int64_t expected[7] = {24, 3, 3, 48, 9, -5, 3};
  CHECK(std::memcmp(values, expected, sizeof expected) == 0);
}

TEST_CASE("int4 tensors are compact, have even rows and half as many bytes as elements") {
  live_context c;
  made(c, describe("witness", "witness", "v(lilldifp)",
                   "x.numel, x.rank, x.shape[1], x.bytes, attr.real, attr.whole, 1.5, out.data",
                   "in x i4, out out i64"));
  std::int64_t values[14] = {};
  const std::int64_t seven[1] = {7}, strides[2] = {8, 1};
  std::int64_t shape[2] = {2, 6};
  velo_tensor x = view_of(values, i4, shape);
  velo_tensor out = view_of(values + 7, i64, seven);
  const named all = {{"x", of(x)}, {"out", of(out)}, {"real", real(9.0)}, {"whole", integer(-5)}};
  REQUIRE(op_call(c, "witness", all) == VELO_OK);
  CHECK(values[7] == 12);
  CHECK(values[10] == 6);
  SECTION("memory that begins at the last byte of the tensor overlaps, the next does not") {
    alignas(8) unsigned char bytes[72] = {};
    x.data = bytes + 2;
    out.data = bytes + 8;
    CHECK(op_call(c, "witness", all) == VELO_OK);
    x.data = bytes + 3;
    CHECK(op_call(c, "witness", all) == VELO_ERR_OVERLAP);
  }
  SECTION("odd rows") {
    shape[1] = 5;
    CHECK_REFUSED(op_call(c, "witness", all), VELO_ERR_SHAPE, "args.x.shape");
  }
  SECTION("rows apart") {
    x.strides = strides;
    CHECK_REFUSED(op_call(c, "witness", all), VELO_ERR_LAYOUT, "args.x.strides");
  }
}

TEST_CASE("a kernel that binds strides takes strided tensors, another one refuses them") {
  live_context c;
  made(c, describe("twice", "twice", "v(lllpp)",
                   "x.shape[0], x.shape[1], x.stride[0], x.data, y.data", "in x f64, out y f64"));
  double x[6] = {1, 2, -1, 3, 4, -1}, y[4] = {};
  const std::int64_t shape[2] = {2, 2}, strides[2] = {3, 1};
  const velo_tensor from = view_of(x, f64, shape, strides);
  const velo_tensor to = view_of(y, f64, shape);
  REQUIRE(op_call(c, "twice", {{"x", of(from)}, {"y", of(to)}}) == VELO_OK);
  CHECK(std::vector<double>(y, y + 4) == std::vector<double>{2, 4, 6, 8});

  made(c, axpy());
  float_tensor a({2, 2}), b({2, 2});
  a.view.strides = strides;
  CHECK(op_call(c, "axpy", {{"x", of(a)}, {"y", of(b)}, {"alpha", real(1)}}) == VELO_ERR_LAYOUT);
  CHECK(last_record().argument == "args.x.strides");
}

TEST_CASE("calls that break a kernel's declaration are refused, and nothing runs") {
  struct call {
    float_tensor x = float_tensor({4}, 1.0f), y = float_tensor({4}, 1.0f);
    named values = {{"x", of(x)}, {"y", of(y)}, {"alpha", real(1)}};
  };
  const struct {
    const char* name;
    void (*change)(call&);
    wrong how;
  } rows[] = {
      {"an attribute left out",
       [](call& c) { c.values.pop_back(); },
       {VELO_ERR_ARGUMENT, "args.alpha", "none"}},
      {"an attribute of another kind",
       [](call& c) { c.values[2].value = string("1"); },
       {VELO_ERR_ARGUMENT, "args.alpha", "a string"}},
      {"an attribute no float holds",
       [](call& c) { c.values[2].value = real(1e300); },
       {VELO_ERR_ARGUMENT, "args.alpha", "1e+300"}},
      {"a tensor left out",
       [](call& c) { c.values.erase(c.values.begin()); },
       {VELO_ERR_NULL, "args.x", "NULL"}},
      {"another dtype",
       [](call& c) { c.x.view.dtype = f64; },
       {VELO_ERR_DTYPE, "args.x.dtype", "float64"}},
      {"another device",
       [](call& c) { c.x.view.device.type = 2; },
       {VELO_ERR_DEVICE, "args.x.device", "cuda:0"}},
      {"no data", [](call& c) { c.x.view.data = nullptr; }, {VELO_ERR_NULL, "args.x.data", "NULL"}},
      {"an output that is also an input",
       [](call& c) { c.values[0].value = of(c.y); },
       {VELO_ERR_OVERLAP, "args.y", "args.x"}},
      {"an unknown field",
       [](call& c) { c.values[2].name = "beta"; },
       {VELO_ERR_NOT_FOUND, "args.beta", "values[2]"}},
  };
  live_context c;
  made(c, axpy());
  for (const auto& row : rows) {
    INFO(row.name);
    call wrong_call;
    row.change(wrong_call);
    expect(op_call(c, "axpy", wrong_call.values), row.how, "velo_op_call");
    CHECK(wrong_call.y.data == std::vector<float>(4, 1.0f));
  }
}

TEST_CASE("a tensor needs the dimensions that the binding names") {
  live_context c;
  made(c, describe("twice", "twice", "v(lllpp)",
                   "x.shape[0], x.shape[1], x.stride[0], x.data, y.data", "in x f32, out y f32"));
  float_tensor x({4}), y({4});
  CHECK_REFUSED(op_call(c, "twice", {{"x", of(x)}, {"y", of(y)}}), VELO_ERR_RANK, "args.x.ndim");
}

TEST_CASE("a foreign exception is a failure with the library's name, inline and queued") {
  live_context c;
  const std::string library = module("throws");
  velo_kernel_desc desc = describe("throws", "throws_exception", "v()", "", "");
  desc.library = library.c_str();
  made(c, desc);
  CHECK(op_call(c, "throws", {}) == VELO_ERR_FOREIGN);
  CHECK_THAT(last_record().got,
             Catch::Contains("throws_exception of") && Catch::Contains("plugin_throws.so"));
  CHECK(last_record().cause == "no more paper");
  const velo_stream queue = c.new_stream();
  REQUIRE(op_call(queue, "throws", {}) == VELO_OK);
  CHECK(velo_stream_synchronize(queue) == VELO_ERR_FOREIGN);
  CHECK(last_record().cause == "no more paper");
  REQUIRE(velo_stream_clear(queue) == VELO_OK);
}

TEST_CASE("a kernel that returns a status is believed") {
  live_context c;
  made(c, describe("status", "returns_status", "s(i)", "attr.status", ""));
  CHECK(op_call(c, "status", {{"status", integer(0)}}) == VELO_OK);
  CHECK(op_call(c, "status", {{"status", integer(6)}}) == VELO_ERR_FOREIGN);
  CHECK_THAT(last_record().got, Catch::Contains("VELO_ERR_SHAPE (6) from returns_status of"));
  CHECK(op_call(c, "status", {{"status", integer(std::int64_t{1} << 31)}}) == VELO_ERR_ARGUMENT);
  CHECK(last_record().argument == "args.status");
}

TEST_CASE("queued calls run in order and need nothing of the caller but the data") {
  live_context c;
  made(c, axpy());
  const velo_stream queue = c.new_stream();
  std::vector<float> x(8, 1.0f), y(8, 0.0f);
  for (int round = 0; round < 10; ++round) {
    float_tensor tx({8}), ty({8});
    tx.view.data = x.data();
    ty.view.data = y.data();
    REQUIRE(op_call(queue, "axpy", {{"x", of(tx)}, {"y", of(ty)}, {"alpha", real(round)}}) ==
            VELO_OK);
  }
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(y == std::vector<float>(8, 45.0f));
}

TEST_CASE("destroying a kernel waits for its running and queued calls") {
  live_context c;
  velo_kernel kernel =
      made(c, describe("sleep", "sleep_for", "i(lp)", "attr.ms, done.data", "inout done i32"));
  const velo_stream queue = c.new_stream();
  std::int32_t done = 0;
  const std::int64_t one[1] = {1};
  const velo_tensor t = view_of(&done, i32, one);
  for (int i = 0; i < 3; ++i)
    REQUIRE(op_call(queue, "sleep", {{"ms", integer(30)}, {"done", of(t)}}) == VELO_OK);
  velo_kernel_destroy(kernel);
  CHECK(done == 3);
  CHECK_REFUSED(op_call(queue, "sleep", {{"ms", integer(1)}, {"done", of(t)}}), VELO_ERR_NOT_FOUND,
                "op");
  CHECK(listed(c) == "[]");
  velo_kernel_destroy(kernel);  // a destroyed handle is ignored
  CHECK(last_record().code == VELO_ERR_HANDLE);
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
  live_context c;
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
        while (status == VELO_OK) status = op_call(c, "counted", {{"n", integer(1)}});
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
  const velo_tensor in = view_of(x, f32, shape);
  const velo_tensor out = view_of(y, f32, shape);
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &in;
  args.gamma = &in;
  args.y = &out;
  return velo_rms_norm(stream, &args);
}

}  // namespace

TEST_CASE("a kernel that takes the stream may call velo on it, and cannot destroy itself") {
  live_context c;
  velo_kernel_desc desc =
      describe("nested", nullptr, "s(ppp)", "stream, x.data, y.data", "in x f32, out y f32");
  desc.library = nullptr;
  desc.function = reinterpret_cast<void*>(&uses_velo);
  own_kernel = made(c, desc);
  float_tensor x({4}, 2.0f), y({4});
  REQUIRE(op_call(c, "nested", {{"x", of(x)}, {"y", of(y)}}) == VELO_OK);
  CHECK(seen_stream == c.inline_stream());
  CHECK(y.data[0] == Approx(2.0f));
  CHECK_THAT(listed(c), Catch::Contains("\"nested\""));
}

TEST_CASE("a foreign kernel explains itself and declares no shapes") {
  live_context c;
  made(c, axpy());
  float_tensor x({4}), y({4});
  const named values = {{"x", of(x)}, {"y", of(y)}, {"alpha", real(1)}};
  const std::string why = text(velo_op_explain, c, "axpy", values.data(), 3);
  CHECK_THAT(why, Catch::Contains("plugin_kernels.so") && Catch::Contains("\"chosen\":true"));
  std::int64_t count = 0;
  CHECK_REFUSED(velo_op_infer(c, "axpy", values.data(), 3, nullptr, 0, &count),
                VELO_ERR_UNSUPPORTED, "op");
}

TEST_CASE("the list of kernels names the file of each, resolved") {
  live_context c;
  made(c, axpy());
  char* resolved = realpath(kernels_library.c_str(), nullptr);
  CHECK_THAT(listed(c), Catch::Contains(std::string("\"library\":\"") + resolved + "\""));
  CHECK_THAT(listed(c), Catch::Contains("\"signature\":\"v(lfplpl)\""));
  std::free(resolved);
}
