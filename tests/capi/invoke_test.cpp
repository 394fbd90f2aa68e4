// The function table, velo_invoke over it, signatures, and calls through them.
#include "core/invoke.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/failure.hpp"
#include "tests/capi/values.hpp"
#include "tests/core/fails.hpp"

using namespace velo::testing;
using velo::core::parse_signature;
using velo::core::passing;
using velo::core::word;

namespace {

velo_status invoke(const char* function, const std::vector<velo_value>& values,
                   velo_value* result = nullptr) {
  return velo_invoke(function, values.data(), static_cast<std::int64_t>(values.size()), result);
}

word run(const char* signature, velo::core::any_function f, std::vector<word> arguments) {
  return velo::core::call_foreign(velo::core::prepare(parse_signature(signature, "signature")), f,
                                  arguments.data(), "a function of the test");
}

template <class F>
velo::core::any_function erased(F* f) {
  return reinterpret_cast<velo::core::any_function>(f);
}

template <class T>
word word_of(T value) {
  word w{};
  std::memcpy(&w, &value, sizeof value);
  return w;
}

// The ABI that the spec states, as the description begins: "1.0".
std::string stated_abi() {
  const std::string all = text(velo_describe);
  const std::string begin = "{\"abi\":\"";
  REQUIRE(all.compare(0, begin.size(), begin) == 0);
  return all.substr(begin.size(), all.find('"', begin.size()) - begin.size());
}

// As calls have it: major * 100 + minor.
std::uint32_t number_of(const std::string& abi) {
  return static_cast<std::uint32_t>(100 * std::stoul(abi) +
                                    std::stoul(abi.substr(abi.find('.') + 1)));
}

}  // namespace

TEST_CASE("the function table is the library's own and refuses what it cannot serve") {
  const velo_api* api = nullptr;
  const std::string stated = stated_abi();
  const std::uint32_t abi = number_of(stated);
  REQUIRE(velo_get_api(100, sizeof(velo_api), &api) == VELO_OK);
  CHECK(api->struct_size == sizeof(velo_api));
  CHECK(api->abi == abi);
  CHECK(api->rms_norm != nullptr);
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = 0;
  REQUIRE(api->version(&major, &minor, &patch, nullptr) == VELO_OK);
  CHECK(major == 1);

  const velo_api* untouched = nullptr;
  CHECK_REFUSED(velo_get_api(205, sizeof(velo_api), &untouched), VELO_ERR_ABI, "needed");
  CHECK(last_record().expected == "ABI 2.5");
  CHECK(last_record().got == "ABI " + stated + " of release " + std::to_string(major) + "." +
                                 std::to_string(minor) + "." + std::to_string(patch));
  CHECK(last_record().cause.find('/') != std::string::npos);
  CHECK(velo_get_api(abi + 1, sizeof(velo_api), &untouched) == VELO_ERR_ABI);
  CHECK(velo_get_api(abi, sizeof(velo_api) + 8, &untouched) == VELO_ERR_ABI);
  CHECK(velo_get_api(100, sizeof(velo_api), nullptr) == VELO_ERR_NULL);
  CHECK(untouched == nullptr);
}

TEST_CASE("a function is called by its name with checked values") {
  live_context c;
  std::int32_t major = -1;
  std::uint32_t abi = 0;
  velo_value result{};
  REQUIRE(invoke("velo_version", {pointer(&major), none(), none(), pointer(&abi)}, &result) ==
          VELO_OK);
  CHECK(major == 1);
  CHECK(abi == number_of(stated_abi()));
  CHECK(result.kind == VELO_VALUE_INT);
  CHECK(result.as.i == VELO_OK);

  velo_stream stream = nullptr;
  REQUIRE(invoke("velo_stream_create", {handle(c), pointer(&stream)}) == VELO_OK);
  CHECK(invoke("velo_stream_synchronize", {handle(stream)}) == VELO_OK);
  CHECK(invoke("velo_stream_destroy", {handle(stream)}, &result) == VELO_OK);
  CHECK(result.kind == VELO_VALUE_NONE);
}

TEST_CASE("a struct travels by pointer") {
  live_context c;
  const std::int64_t shape[1] = {6};
  velo_managed_tensor* made = nullptr;
  velo_dtype dtype = bf16;
  REQUIRE(invoke("velo_tensor_create",
                 {handle(c), pointer(&dtype), integer(1), pointer(const_cast<std::int64_t*>(shape)),
                  pointer(&made)}) == VELO_OK);
  CHECK(made->tensor.dtype.code == VELO_DTYPE_BFLOAT);
  CHECK(made->tensor.dtype.bits == 16);
  CHECK(made->tensor.dtype.lanes == 1);
  CHECK(made->tensor.shape[0] == 6);
  CHECK(invoke("velo_tensor_release", {pointer(made)}) == VELO_OK);
}

TEST_CASE("the called function's own failure comes through with its record") {
  velo_value result{};
  CHECK(invoke("velo_stream_synchronize", {handle(nullptr)}, &result) == VELO_ERR_NULL);
  CHECK(result.as.i == VELO_ERR_NULL);
  CHECK(last_record().function == "velo_stream_synchronize");
  CHECK(last_record().argument == "stream");
}

TEST_CASE("values that do not fit are refused by the parameter's name") {
  const char* name = nullptr;
  const std::int64_t beyond = std::int64_t{1} << 31;
  const auto check = [](const char* function, const std::vector<velo_value>& values,
                        velo_status code, const char* argument) {
    INFO(function << ", " << argument);
    CHECK_REFUSED(invoke(function, values), code, argument);
    CHECK(last_record().function == "velo_invoke");
  };
  const char* describe = "velo_status_describe";
  check(describe, {integer(beyond), pointer(&name), none()}, VELO_ERR_ARGUMENT, "code");
  check(describe, {integer(-beyond - 1), pointer(&name), none()}, VELO_ERR_ARGUMENT, "code");
  check(describe, {real(1.0), pointer(&name), none()}, VELO_ERR_ARGUMENT, "code");
  check(describe, {integer(1), string("x"), none()}, VELO_ERR_ARGUMENT, "name");
  check(describe, {integer(1)}, VELO_ERR_ARGUMENT, "count");
  check("velo_error_text", {none(), integer(-1), none()}, VELO_ERR_ARGUMENT, "capacity");
  check("velo_stream_synchronize", {pointer(&name)}, VELO_ERR_ARGUMENT, "stream");
  check("velo_stream_synchronize", {none()}, VELO_ERR_NULL, "stream");
  check("velo_make_coffee", {}, VELO_ERR_NOT_FOUND, "function");
  CHECK(name == nullptr);
}

TEST_CASE("NULL arguments of velo_invoke itself are refused") {
  CHECK_REFUSED(velo_invoke(nullptr, nullptr, 0, nullptr), VELO_ERR_NULL, "function");
  CHECK_REFUSED(velo_invoke("velo_op_count", nullptr, 1, nullptr), VELO_ERR_NULL, "values");
}

TEST_CASE("capabilities are answered, and unknown ones refused") {
  std::int32_t available = -1;
  REQUIRE(velo_capability_query(VELO_CAP_CLOSURES, &available) == VELO_OK);
  CHECK((available == 0 || available == 1));
  CHECK_REFUSED(velo_capability_query(77, &available), VELO_ERR_ARGUMENT, "capability");
  CHECK(velo_capability_query(VELO_CAP_CLOSURES, nullptr) == VELO_ERR_NULL);
}

TEST_CASE("signatures are read, and malformed ones refused with their column") {
  const velo::core::signature s = parse_signature("s(pilfd)", "signature");
  CHECK(s.returns_status);
  REQUIRE(s.count == 5);
  CHECK(s.parameters[0] == passing::pointer);
  CHECK(s.parameters[4] == passing::f64);
  CHECK(parse_signature("v()", "signature").count == 0);
  const std::string many = "v(" + std::string(33, 'i') + ")";
  const struct {
    const char* text;
    int column;
  } wrong[] = {{"", 1},      {"x()", 1},     {"v", 2},          {"v(p", 4},
               {"v(ps)", 4}, {"v(v)", 3},    {"v(p...)", 4},    {"v(p) ", 5},
               {"v(D)", 3},  {"v({ii})", 3}, {many.c_str(), 35}};
  for (const auto& bad : wrong) {
    INFO(bad.text);
    const auto f = failure_of([&] { parse_signature(bad.text, "signature"); });
    CHECK(f.code == VELO_ERR_PARSE);
    CHECK(std::string(f.argument) == "signature");
    CHECK(std::string(f.got).find("column " + std::to_string(bad.column)) != std::string::npos);
  }
}

TEST_CASE("calls pass every type, and take narrow results back whole") {
  CHECK(run("f(ff)", erased(&powf), {word_of(2.0f), word_of(10.0f)}).f32 == 1024.0f);
  CHECK(
      run("d(dd)", erased<double(double, double)>(&std::pow), {word_of(2.0), word_of(-1.0)}).f64 ==
      0.5);
  const auto negate = +[](std::int32_t v) { return -v; };
  CHECK(run("i(i)", erased(negate), {word_of(std::int32_t{7})}).i32 == -7);
  const auto widen = +[](std::int64_t v) { return v * 2; };
  CHECK(run("l(l)", erased(widen), {word_of(std::int64_t{1} << 40)}).i64 == std::int64_t{1} << 41);
  int target = 0;
  const auto same = +[](void* p) { return p; };
  CHECK(run("p(p)", erased(same), {word_of(&target)}).pointer == &target);
  const auto mixed = +[](std::int32_t a, float b, std::int64_t c, double d, void* e) {
    return a + static_cast<double>(b) + static_cast<double>(c) + d + (e != nullptr ? 1 : 0);
  };
  CHECK(run("d(ifldp)", erased(mixed),
            {word_of(std::int32_t{1}), word_of(2.0f), word_of(std::int64_t{3}), word_of(4.0),
             word_of(&target)})
            .f64 == 11.0);
}

TEST_CASE("equal signatures share one preparation") {
  const auto& a = velo::core::prepare(parse_signature("v(ppl)", "signature"));
  const auto& b = velo::core::prepare(parse_signature("v(ppl)", "signature"));
  const auto& c = velo::core::prepare(parse_signature("v(ppi)", "signature"));
  CHECK(&a == &b);
  CHECK(&a != &c);
}

TEST_CASE("whatever foreign code throws becomes a foreign failure") {
  const auto throws = +[](std::int32_t what) {
    if (what == 0) throw std::runtime_error("the roof is on fire");
    if (what == 1) throw 42;
    throw std::bad_alloc();
  };
  for (std::int32_t what = 0; what < 3; ++what) {
    const auto f = failure_of([&] { run("v(i)", erased(throws), {word_of(what)}); });
    CHECK(f.code == VELO_ERR_FOREIGN);
    CHECK(std::string(f.got) == "an exception from a function of the test");
    if (what == 0) CHECK(std::string(f.cause) == "the roof is on fire");
  }
}

TEST_CASE("a precompiled function receives words and gives the status back") {
  struct seen {
    std::vector<std::int64_t> words;
    int count;
  };
  const auto body = [](void* user, const word* w) noexcept {
    auto& into = *static_cast<seen*>(user);
    for (int i = 0; i < into.count; ++i) into.words.push_back(w[i].i64);
    word result{};
    result.i64 = VELO_ERR_SHAPE;
    return result;
  };
  for (const bool code : {true, false}) {
    seen eight{{}, 8};
    velo::core::signature shape = parse_signature("i(llllllll)", "signature");
    const velo::core::made_function made(shape, body, &eight, code);
    CHECK(made.precompiled() == !(code && velo::core::can_make_functions()));
    using function = std::int32_t (*)(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                      std::int64_t, std::int64_t, std::int64_t, std::int64_t);
    CHECK(reinterpret_cast<function>(made.address())(1, 2, 3, 4, 5, 6, 7, -8) == VELO_ERR_SHAPE);
    CHECK(eight.words == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, -8});
  }
}
