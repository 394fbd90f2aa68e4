// A module that came by its spec, its header and one source: its operator through every way in, and
// what each says of wrong handles, lists and texts.
#include <velo/velo.h>
#include <velo/velo.hpp>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/hosts/library.hpp"
#include "tests/hosts/torch/torch_host.hpp"
#include "tests/hosts/tvm_host.hpp"
#include "tests/hosts/xla_host.hpp"
#include "tests/record.hpp"
#include "tests/tensors.hpp"

using velo::testing::f32;
using velo::testing::last_record;
using velo::testing::view_of;

namespace {

// Two pairs of tensors, and the toy of a context.
struct fixture {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_toy toy = nullptr;
  std::vector<float> x[2] = {{1, 2, 3}, {4}}, y[2] = {{10, 10, 10}, {10}};
  std::int64_t sizes[2] = {3, 1};
  velo_tensor xs[2], ys[2];
  velo_tensors in{xs, 2}, out{ys, 2};
  velo_toy_scale_args args = VELO_TOY_SCALE_ARGS_INIT;

  fixture() {
    REQUIRE(velo_context_create(nullptr, &context) == VELO_OK);
    REQUIRE(velo_context_stream(context, &stream) == VELO_OK);
    REQUIRE(velo_toy_create(context, &toy) == VELO_OK);
    for (int i = 0; i < 2; ++i) {
      xs[i] = view_of(x[i].data(), f32, sizes[i]);
      ys[i] = xs[i];
      ys[i].data = y[i].data();
    }
    args.toy = toy, args.xs = &in, args.ys = &out;
  }
  ~fixture() { velo_context_destroy(context); }

  void expect(velo_status code, const std::string& argument) {
    CHECK_REFUSED(velo_toy_scale(stream, &args), code, argument);
    CHECK(y[0][0] == 10);
  }
  void scaled(float factor) {
    CHECK(y[0] == std::vector<float>{10 + factor, 10 + 2 * factor, 10 + 3 * factor});
    CHECK(y[1] == std::vector<float>{10 + 4 * factor});
  }
  std::vector<velo_named_value> values() {
    std::vector<velo_named_value> all(4, velo_named_value{});
    all[0].name = "toy", all[0].value.kind = VELO_VALUE_HANDLE, all[0].value.as.p = toy;
    all[1].name = "xs", all[1].value.kind = VELO_VALUE_TENSORS, all[1].value.as.tensors = &in;
    all[2].name = "ys", all[2].value.kind = VELO_VALUE_TENSORS, all[2].value.as.tensors = &out;
    all[3].name = "sign", all[3].value.kind = VELO_VALUE_STRING, all[3].value.as.s = "minus";
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a typed call takes a handle, lists and a text") {
  REQUIRE(velo_toy_scale(stream, &args) == VELO_OK);
  scaled(2);
}

TEST_CASE_METHOD(fixture, "every tensor of a list is checked, and named with its place") {
  SECTION("no list") {
    args.xs = nullptr;
    expect(VELO_ERR_NULL, "args.xs");
  }
  SECTION("no tensors") {
    in.data = nullptr;
    expect(VELO_ERR_NULL, "args.xs.data");
  }
  SECTION("a negative count") {
    out.count = -1;
    expect(VELO_ERR_ARGUMENT, "args.ys.count");
  }
  SECTION("no elements") {
    ys[1].data = nullptr;
    expect(VELO_ERR_NULL, "args.ys[1].data");
  }
  SECTION("dtype") {
    xs[1].dtype.bits = 64;
    expect(VELO_ERR_DTYPE, "args.xs[1].dtype");
  }
  SECTION("device") {
    ys[1].device.type = 2;
    expect(VELO_ERR_DEVICE, "args.ys[1].device");
  }
  SECTION("a size") {
    sizes[1] = -1;
    expect(VELO_ERR_SHAPE, "args.xs[1].shape[0]");
  }
  SECTION("outputs that share memory") {
    ys[1].data = &y[0][2];
    expect(VELO_ERR_OVERLAP, "args.ys[0]");
    CHECK(last_record().got == "memory shared with args.ys[1]");
  }
  SECTION("an output on an input at another place") {
    ys[1].data = &x[0][2];
    expect(VELO_ERR_OVERLAP, "args.ys[1]");
  }
  SECTION("the toy") {
    args.toy = reinterpret_cast<velo_toy>(stream);
    expect(VELO_ERR_HANDLE, "args.toy");
    CHECK(last_record().expected == "a toy");
  }
  SECTION("no toy") {
    args.toy = nullptr;
    expect(VELO_ERR_NULL, "args.toy");
  }
  SECTION("the text") {
    args.sign = "times";
    expect(VELO_ERR_ARGUMENT, "args.sign");
  }
}

TEST_CASE_METHOD(fixture, "a list may be worked on in place, and may be empty") {
  out.data = xs;
  REQUIRE(velo_toy_scale(stream, &args) == VELO_OK);
  CHECK(x[0] == std::vector<float>{3, 6, 9});
  in.count = out.count = 0;
  in.data = out.data = nullptr;
  CHECK(velo_toy_scale(stream, &args) == VELO_OK);
}

TEST_CASE_METHOD(fixture, "a queued call has copies of lists and text") {
  velo_stream queue = nullptr;
  velo_event gate = nullptr;
  REQUIRE(velo_stream_create(context, &queue) == VELO_OK);
  REQUIRE(velo_event_create(context, &gate) == VELO_OK);
  std::string sign = "minus";
  args.sign = sign.c_str();
  for (int i = 0; i < 64; ++i) REQUIRE(velo_toy_scale(queue, &args) == VELO_OK);
  sign = "?????";
  for (int i = 0; i < 2; ++i) xs[i] = ys[i] = {};
  sizes[0] = sizes[1] = 1 << 20;
  REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
  scaled(-128);
}

TEST_CASE_METHOD(fixture, "by name, a list is one value and a handle of another kind is refused") {
  auto all = values();
  REQUIRE(velo_op_call(stream, "toy_scale", all.data(), 4) == VELO_OK);
  scaled(-2);
  all[1].value.kind = VELO_VALUE_TENSOR;
  CHECK(velo_op_call(stream, "toy_scale", all.data(), 4) == VELO_ERR_ARGUMENT);
  CHECK(last_record().expected == "a list of tensors");
  all = values();
  all[0].value.as.p = stream;
  CHECK(velo_op_call(stream, "toy_scale", all.data(), 4) == VELO_ERR_HANDLE);
}

TEST_CASE_METHOD(fixture, "as a C function pointer") {
  void* function = nullptr;
  velo_closure closure = nullptr;
  REQUIRE(velo_closure_create(stream, "toy_scale", "sign, toy, xs, ys", &function, &closure) ==
          VELO_OK);
  using plain = velo_status (*)(const char*, velo_toy, const velo_tensors*, const velo_tensors*);
  CHECK(reinterpret_cast<plain>(function)("minus", toy, &in, &out) == VELO_OK);
  scaled(-2);
}

TEST_CASE_METHOD(fixture, "from C++") {
  velo::toy_scale(velo::stream_ref(stream),
                  velo::toy_scale_args().toy(toy).xs(in).ys(out).sign("minus"));
  scaled(-2);
}

TEST_CASE_METHOD(fixture, "from tvm-ffi, a list is an Array of tensors") {
  const hosts::tvm_function call(VELO_ADAPTERS, "velo_toy_scale");
  hosts::tvm_arguments args;
  args.integer(reinterpret_cast<std::int64_t>(toy));
  args.array_of_tensors({xs[0], xs[1]});
  args.array_of_tensors({ys[0], ys[1]});
  args.string("minus");
  call(args);
  scaled(-2);
  hosts::tvm_arguments long_text;
  long_text.integer(reinterpret_cast<std::int64_t>(toy));
  long_text.array_of_tensors({xs[0]});
  long_text.array_of_tensors({ys[0]});
  const std::string sign(100, 'm');
  long_text.string(sign);
  CHECK_THROWS_WITH(call(long_text), Catch::Contains("got " + sign));
  hosts::tvm_arguments wrong;
  wrong.integer(reinterpret_cast<std::int64_t>(toy));
  wrong.array_of({1, 2});
  CHECK_THROWS_WITH(call(wrong), Catch::Contains("xs: expected tensors"));
}

TEST_CASE_METHOD(fixture, "from XLA, a list has its length in `fields`") {
  const hosts::xla_handler call(VELO_ADAPTERS, "velo_xla_toy_scale");
  const auto made = [&](const char* name, const std::vector<float>& from) {
    hosts::array a{f32, {static_cast<std::int64_t>(from.size())}, {}};
    const auto* bytes = reinterpret_cast<const unsigned char*>(from.data());
    a.bytes.assign(bytes, bytes + 4 * from.size());
    return hosts::named_array{name, a};
  };
  const std::vector<hosts::named_array> inputs = {made("xs", x[0]), made("xs", x[1]),
                                                  made("ys", y[0]), made("ys", y[1])};
  std::vector<hosts::named_array> outputs = {made("ys", {0, 0, 0}), made("ys", {0})};
  hosts::attribute handle{"toy", VELO_VALUE_INT, reinterpret_cast<std::int64_t>(toy), 0, "", {}};
  hosts::attribute sign{"sign", VELO_VALUE_STRING, 0, 0, "minus", {}};
  call.execute(inputs, outputs, {handle, sign}, "xs[2],ys[2]->ys[2]", nullptr);
  const auto* first = reinterpret_cast<const float*>(outputs[0].data.bytes.data());
  CHECK(std::vector<float>(first, first + 3) == std::vector<float>{8, 6, 4});
  const auto refused = [&](const char* fields, const char* text) {
    CHECK_THROWS_WITH(call.execute(inputs, outputs, {handle}, fields, nullptr),
                      Catch::Contains(text));
  };
  refused("", "xs: expected the tensors named by the attribute `fields`");
  refused("xs,ys[2]->ys[2]", "the length of the list, xs[n]");
  refused("xs[2],ys[2]->ys[1]", "one length of ys as input and as output");
  refused("xs[1],ys[2]->ys[2]", "names of 4 inputs");
}

TEST_CASE_METHOD(fixture, "from torch, lists of tensors and a text are what they are there") {
  namespace torch = hosts::torch;
  const hosts::library adapters(VELO_ADAPTERS, RTLD_LAZY | RTLD_LOCAL);
  REQUIRE(adapters.function<decltype(velo_torch_register)>("velo_torch_register")() == VELO_OK);
  CHECK(torch::defined().back() == "toy_scale.out");
  CHECK(torch::schema_of("toy_scale.out").text ==
        "toy_scale.out(int toy, Tensor[] xs, Tensor(a!)[] ys, str? sign=None) -> ()");
  const auto made = [](const std::vector<float>& from) {
    hosts::array a{f32, {static_cast<std::int64_t>(from.size())}, {}};
    const auto* bytes = reinterpret_cast<const unsigned char*>(from.data());
    a.bytes.assign(bytes, bytes + 4 * from.size());
    return a;
  };
  hosts::array x0 = made(x[0]), x1 = made(x[1]), y0 = made(y[0]), y1 = made(y[1]);
  std::map<std::string, torch::value> given = {{"toy", reinterpret_cast<std::int64_t>(toy)},
                                               {"xs", std::vector<hosts::array*>{&x0, &x1}},
                                               {"ys", std::vector<hosts::array*>{&y0, &y1}},
                                               {"sign", std::string("minus")}};
  const torch::books before = torch::count();
  torch::call("toy_scale.out", given);
  const auto* first = reinterpret_cast<const float*>(y0.bytes.data());
  CHECK(std::vector<float>(first, first + 3) == std::vector<float>{8, 6, 4});
  given["sign"] = std::string(100, 'm');
  CHECK_THROWS_WITH(torch::call("toy_scale.out", given), Catch::Contains("got mmm"));
  for (long n = 0; torch::calls_left() < 0; ++n) {
    torch::fail_after(n);
    CHECK_THROWS(torch::call("toy_scale.out", given));
    const bool balanced = torch::count() == before;
    CHECK(balanced);
  }
  torch::fail_after(-1);
}

TEST_CASE_METHOD(fixture, "from MindSpore, a slot holds handle, text and the lists' lengths") {
  const hosts::library adapters(VELO_ADAPTERS, RTLD_LAZY | RTLD_LOCAL);
  const std::string json = "{\"toy\": " + std::to_string(reinterpret_cast<std::int64_t>(toy)) +
                           ", \"sign\": \"minus\", \"fields\": \"xs[2],ys[2]->ys[2]\"}";
  const auto bind = adapters.function<decltype(velo_ms_slot_bind)>("velo_ms_slot_bind");
  REQUIRE(bind(7, "toy_scale", json.c_str(), nullptr) == VELO_OK);
  using aot = int(int, void**, int*, std::int64_t**, const char**, void*, void*);
  std::vector<float> out0(3), out1(1);
  void* data[] = {x[0].data(), x[1].data(), y[0].data(), y[1].data(), out0.data(), out1.data()};
  int ranks[] = {1, 1, 1, 1, 1, 1};
  std::int64_t* shapes[] = {&sizes[0], &sizes[1], &sizes[0], &sizes[1], &sizes[0], &sizes[1]};
  const char* dtypes[] = {"float32", "float32", "float32", "float32", "float32", "float32"};
  CHECK(adapters.function<aot>("velo_ms_slot_007")(6, data, ranks, shapes, dtypes, nullptr,
                                                   nullptr) == 0);
  CHECK(out0 == std::vector<float>{8, 6, 4});
  CHECK(out1 == std::vector<float>{2});
  CHECK(adapters.function<aot>("velo_ms_toy_scale")(6, data, ranks, shapes, dtypes, nullptr,
                                                    nullptr) == VELO_ERR_ARGUMENT);
  CHECK(hosts::last_error(adapters).find("xs: expected the tensors named") != std::string::npos);
}
