// Operators as C function pointers, made at run time and from precompiled functions.
#include <string>
#include <vector>

#include "capi/fixture.hpp"

using namespace fixture;

namespace {

using norm_function = velo_status (*)(const velo_tensor*, const velo_tensor*, const velo_tensor*);
using norm_with_epsilon = velo_status (*)(const velo_tensor*, double, const velo_tensor*,
                                          const velo_tensor*);

struct made_closure {
  velo_closure handle = nullptr;
  void* function = nullptr;
  velo_status status;
  made_closure(velo_stream stream, const char* op, const char* fields)
      : status(velo_closure_create(stream, op, fields, &function, &handle)) {}
  ~made_closure() { velo_closure_destroy(handle); }
  made_closure(const made_closure&) = delete;
  made_closure& operator=(const made_closure&) = delete;
  template <class F>
  F as() const {
    return reinterpret_cast<F>(function);
  }
};

bool can_make_code() {
  std::int32_t available = 0;
  REQUIRE(velo_capability_query(VELO_CAP_CLOSURES, &available) == VELO_OK);
  return available == 1;
}

}  // namespace

TEST_CASE("an operator is called through a pointer, with code made at run time or without") {
  for (const char* json : {R"({"closures": "on"})", R"({"closures": "off"})"}) {
    context c(json);
    made_closure f(c.stream, "rms_norm", "x, gamma, y");
    REQUIRE(f.status == VELO_OK);
    tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
    CHECK(f.as<norm_function>()(&x.view, &gamma.view, &y.view) == VELO_OK);
    CHECK(y.data[7] == Approx(3.0f));
    CHECK(f.as<norm_function>()(&x.view, nullptr, &y.view) == VELO_ERR_NULL);
    CHECK(last().function == "velo_rms_norm");
    CHECK(last().argument == "args.gamma");
  }
}

TEST_CASE("integers and reals are passed in the order of the fields") {
  context c;
  tensor x({2, 6}), halves({2, 3}), y({2, 4});
  made_closure split(c.stream, "swiglu", "dim,x , y");
  REQUIRE(split.status == VELO_OK);
  using swiglu = velo_status (*)(std::int64_t, const velo_tensor*, const velo_tensor*);
  CHECK(split.as<swiglu>()(1, &x.view, &halves.view) == VELO_OK);
  CHECK(split.as<swiglu>()(0, &x.view, &halves.view) == VELO_ERR_SHAPE);
  if (!can_make_code()) return;
  made_closure f(c.stream, "rms_norm", "x, epsilon, gamma, y");
  REQUIRE(f.status == VELO_OK);
  tensor a({2, 4}, 2.0f), gamma({4}, 3.0f);
  CHECK(f.as<norm_with_epsilon>()(&a.view, 12.0, &gamma.view, &y.view) == VELO_OK);
  CHECK(y.data[0] == Approx(1.5f));
}

TEST_CASE("closures run on the stream they were made for") {
  context c;
  velo_stream queue = nullptr;
  REQUIRE(velo_stream_create(c.handle, &queue) == VELO_OK);
  made_closure f(queue, "rms_norm", "x, gamma, y");
  REQUIRE(f.status == VELO_OK);
  tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
  CHECK(f.as<norm_function>()(&x.view, &gamma.view, &y.view) == VELO_OK);
  CHECK(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(y.data[0] == Approx(3.0f));
  velo_stream_destroy(queue);
  CHECK(f.as<norm_function>()(&x.view, &gamma.view, &y.view) == VELO_ERR_HANDLE);
  CHECK(last().argument == "stream");
}

TEST_CASE("a foreign kernel can be handed out as well") {
  context c;
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  const auto fill = +[](std::int64_t n, std::int64_t value, float* y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(value);
  };
  desc.op = "fill";
  desc.signature = "v(llp)";
  desc.binding = "y.numel, attr.value, y.data";
  desc.tensors = "out y f32";
  desc.function = reinterpret_cast<void*>(fill);
  velo_kernel kernel = nullptr;
  REQUIRE(velo_kernel_register(c.handle, &desc, &kernel) == VELO_OK);
  made_closure f(c.stream, "fill", "y, value");
  REQUIRE(f.status == VELO_OK);
  tensor y({5});
  using function = velo_status (*)(const velo_tensor*, std::int64_t);
  CHECK(f.as<function>()(&y.view, 7) == VELO_OK);
  CHECK(y.data == std::vector<float>(5, 7.0f));
  velo_kernel_destroy(kernel);
  CHECK(f.as<function>()(&y.view, 8) == VELO_ERR_NOT_FOUND);
  CHECK(y.data[0] == 7.0f);
}

TEST_CASE(
    "64 precompiled functions stand in for code, each with its own operator, and come back when "
    "freed") {
  context c(R"({"closures": "off"})");
  tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
  std::vector<velo_closure> all;
  std::vector<void*> functions;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 64; ++i) {
      velo_closure closure = nullptr;
      void* function = nullptr;
      REQUIRE(velo_closure_create(c.stream, "rms_norm", "x, gamma, y", &function, &closure) ==
              VELO_OK);
      for (void* earlier : functions) REQUIRE(earlier != function);
      all.push_back(closure);
      functions.push_back(function);
    }
    made_closure one_more(c.stream, "rms_norm", "x, gamma, y");
    CHECK(one_more.status == VELO_ERR_UNSUPPORTED);
    CHECK(last().argument == "closure");
    CHECK(last().expected == "one of 64 precompiled functions");
    CHECK(last().cause == "closures are off in the configuration");
    for (void* f : functions)
      CHECK(reinterpret_cast<norm_function>(f)(&x.view, &gamma.view, &y.view) == VELO_OK);
    for (velo_closure closure : all) velo_closure_destroy(closure);
    all.clear();
    functions.clear();
  }
}

TEST_CASE("without code, reals and long lists are refused with the reason") {
  context c(R"({"closures": "off"})");
  made_closure real_field(c.stream, "rms_norm", "x, gamma, y, epsilon");
  CHECK(real_field.status == VELO_ERR_UNSUPPORTED);
  CHECK(last().argument == "fields");
  CHECK(last().got == "a real number as parameter 3");
  CHECK(last().cause == "closures are off in the configuration");
}

TEST_CASE("precompiled functions taken by a context come back when it is destroyed") {
  for (int round = 0; round < 3; ++round) {
    context c(R"({"closures": "off"})");
    for (int i = 0; i < 60; ++i) {
      velo_closure closure = nullptr;
      void* function = nullptr;
      REQUIRE(velo_closure_create(c.stream, "rms_norm", "x, gamma, y", &function, &closure) ==
              VELO_OK);
    }
  }
}

TEST_CASE("what cannot be a closure is refused by name") {
  context c;
  void* function = nullptr;
  velo_closure closure = nullptr;
  const auto create = [&](const char* op, const char* fields) {
    return velo_closure_create(c.stream, op, fields, &function, &closure);
  };
  CHECK(create("nonsense", "x") == VELO_ERR_NOT_FOUND);
  CHECK(last().argument == "op");
  CHECK(create("rms_norm", "x, gama") == VELO_ERR_NOT_FOUND);
  CHECK(last().argument == "fields");
  CHECK(last().got == "\"gama\"");
  CHECK(create("rms_norm", "x, x") == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "fields");
  CHECK(create("rms_norm", "x,") == VELO_ERR_NOT_FOUND);
  CHECK(create("rms_norm", "x y") == VELO_ERR_NOT_FOUND);
  CHECK(create("rms_norm", nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "fields");
  CHECK(create(nullptr, "x") == VELO_ERR_NULL);
  CHECK(last().argument == "op");
  CHECK(velo_closure_create(nullptr, "rms_norm", "x", &function, &closure) == VELO_ERR_NULL);
  CHECK(last().argument == "stream");
  CHECK(velo_closure_create(c.stream, "rms_norm", "x", nullptr, &closure) == VELO_ERR_NULL);
  CHECK(last().argument == "function");
  CHECK(velo_closure_create(c.stream, "rms_norm", "x", &function, nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "closure");
  CHECK(closure == nullptr);
  CHECK(function == nullptr);
}
