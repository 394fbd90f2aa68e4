// Operators as C function pointers, made at run time and from precompiled functions.
#include <string>
#include <vector>

#include "tests/capi/values.hpp"

using namespace velo::testing;

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
    live_context c(json);
    made_closure f(c.inline_stream(), "rms_norm", "x, gamma, y");
    REQUIRE(f.status == VELO_OK);
    float_tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
    CHECK(f.as<norm_function>()(&x.view, &gamma.view, &y.view) == VELO_OK);
    CHECK(y.data[7] == Approx(3.0f));
    CHECK(f.as<norm_function>()(&x.view, nullptr, &y.view) == VELO_ERR_NULL);
    CHECK(last_record().function == "velo_rms_norm");
    CHECK(last_record().argument == "args.gamma");
  }
}

TEST_CASE("integers and reals are passed in the order of the fields") {
  live_context c;
  float_tensor x({2, 6}), halves({2, 3}), y({2, 4});
  made_closure split(c.inline_stream(), "swiglu", "dim,x , y");
  REQUIRE(split.status == VELO_OK);
  using swiglu = velo_status (*)(std::int64_t, const velo_tensor*, const velo_tensor*);
  CHECK(split.as<swiglu>()(1, &x.view, &halves.view) == VELO_OK);
  CHECK(split.as<swiglu>()(0, &x.view, &halves.view) == VELO_ERR_SHAPE);
  if (!can_make_code()) return;
  made_closure f(c.inline_stream(), "rms_norm", "x, epsilon, gamma, y");
  REQUIRE(f.status == VELO_OK);
  float_tensor a({2, 4}, 2.0f), gamma({4}, 3.0f);
  CHECK(f.as<norm_with_epsilon>()(&a.view, 12.0, &gamma.view, &y.view) == VELO_OK);
  CHECK(y.data[0] == Approx(1.5f));
}

TEST_CASE("closures run on the stream they were made for") {
  live_context c;
  const velo_stream queue = c.new_stream();
  made_closure f(queue, "rms_norm", "x, gamma, y");
  REQUIRE(f.status == VELO_OK);
  float_tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
  CHECK(f.as<norm_function>()(&x.view, &gamma.view, &y.view) == VELO_OK);
  CHECK(velo_stream_synchronize(queue) == VELO_OK);
  CHECK(y.data[0] == Approx(3.0f));
  velo_stream_destroy(queue);
  CHECK_REFUSED(f.as<norm_function>()(&x.view, &gamma.view, &y.view), VELO_ERR_HANDLE, "stream");
}

TEST_CASE("a foreign kernel can be handed out as well") {
  live_context c;
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
  REQUIRE(velo_kernel_register(c, &desc, &kernel) == VELO_OK);
  made_closure f(c.inline_stream(), "fill", "y, value");
  REQUIRE(f.status == VELO_OK);
  float_tensor y({5});
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
  live_context c(R"({"closures": "off"})");
  float_tensor x({2, 4}, 2.0f), gamma({4}, 3.0f), y({2, 4});
  std::vector<velo_closure> all;
  std::vector<void*> functions;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 64; ++i) {
      velo_closure closure = nullptr;
      void* function = nullptr;
      REQUIRE(velo_closure_create(c.inline_stream(), "rms_norm", "x, gamma, y", &function,
                                  &closure) == VELO_OK);
      for (void* earlier : functions) REQUIRE(earlier != function);
      all.push_back(closure);
      functions.push_back(function);
    }
    made_closure one_more(c.inline_stream(), "rms_norm", "x, gamma, y");
    CHECK_REFUSED(one_more.status, VELO_ERR_UNSUPPORTED, "closure");
    CHECK(last_record().expected == "one of 64 precompiled functions");
    CHECK(last_record().cause == "closures are off in the configuration");
    for (void* f : functions)
      CHECK(reinterpret_cast<norm_function>(f)(&x.view, &gamma.view, &y.view) == VELO_OK);
    for (velo_closure closure : all) velo_closure_destroy(closure);
    all.clear();
    functions.clear();
  }
}

TEST_CASE("without code, reals and long lists are refused with the reason") {
  live_context c(R"({"closures": "off"})");
  made_closure real_field(c.inline_stream(), "rms_norm", "x, gamma, y, epsilon");
  CHECK_REFUSED(real_field.status, VELO_ERR_UNSUPPORTED, "fields");
  CHECK(last_record().got == "a real number as parameter 3");
  CHECK(last_record().cause == "closures are off in the configuration");
}

TEST_CASE("precompiled functions taken by a context come back when it is destroyed") {
  for (int round = 0; round < 3; ++round) {
    live_context c(R"({"closures": "off"})");
    for (int i = 0; i < 60; ++i) {
      velo_closure closure = nullptr;
      void* function = nullptr;
      REQUIRE(velo_closure_create(c.inline_stream(), "rms_norm", "x, gamma, y", &function,
                                  &closure) == VELO_OK);
    }
  }
}

TEST_CASE("what cannot be a closure is refused by name") {
  live_context c;
  void* function = nullptr;
  velo_closure closure = nullptr;
  const auto create = [&](const char* op, const char* fields) {
    return velo_closure_create(c.inline_stream(), op, fields, &function, &closure);
  };
  CHECK_REFUSED(create("nonsense", "x"), VELO_ERR_NOT_FOUND, "op");
  CHECK_REFUSED(create("rms_norm", "x, gama"), VELO_ERR_NOT_FOUND, "fields");
  CHECK(last_record().got == "\"gama\"");
  CHECK_REFUSED(create("rms_norm", "x, x"), VELO_ERR_ARGUMENT, "fields");
  CHECK(create("rms_norm", "x,") == VELO_ERR_NOT_FOUND);
  CHECK(create("rms_norm", "x y") == VELO_ERR_NOT_FOUND);
  CHECK_REFUSED(create("rms_norm", nullptr), VELO_ERR_NULL, "fields");
  CHECK_REFUSED(create(nullptr, "x"), VELO_ERR_NULL, "op");
  CHECK_REFUSED(velo_closure_create(nullptr, "rms_norm", "x", &function, &closure), VELO_ERR_NULL,
                "stream");
  CHECK_REFUSED(velo_closure_create(c.inline_stream(), "rms_norm", "x", nullptr, &closure),
                VELO_ERR_NULL, "function");
  CHECK_REFUSED(velo_closure_create(c.inline_stream(), "rms_norm", "x", &function, nullptr),
                VELO_ERR_NULL, "closure");
  CHECK(closure == nullptr);
  CHECK(function == nullptr);
}
