// Operators called, inferred, explained and described by name; every refusal names its field.
#include <cmath>
#include <cstddef>
#include <cstring>

#include <jansson.h>

#include "capi/fixture.hpp"

using namespace fixture;

namespace {

struct norm_tensors {
  tensor x{{2, 4}, 2.0f}, gamma = tensor({4}, 3.0f), y{{2, 4}, -1.0f};
  named values() const { return {{"x", of(x)}, {"gamma", of(gamma)}, {"y", of(y)}}; }
};

void expect_refused(velo_status code, const char* argument, velo_status got) {
  CHECK(got == code);
  CHECK(last().code == code);
  CHECK(last().argument == argument);
  CHECK(last().function == "velo_op_call");
}

json_t* parse(const std::string& text) {
  json_error_t error;
  json_t* parsed = json_loads(text.c_str(), 0, &error);
  INFO(error.text << " at line " << error.line);
  REQUIRE(parsed != nullptr);
  return parsed;
}

}  // namespace

TEST_CASE("an operator called by name computes what the typed call computes") {
  context c;
  norm_tensors t;
  for (std::size_t i = 0; i < t.x.data.size(); ++i) t.x.data[i] = static_cast<float>(i) - 3.0f;
  named values = t.values();
  values.push_back({"epsilon", real(0.5)});
  REQUIRE(op_call(c.stream, "rms_norm", values) == VELO_OK);
  tensor typed({2, 4});
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &t.x.view;
  args.gamma = &t.gamma.view;
  args.y = &typed.view;
  args.epsilon = 0.5;
  REQUIRE(velo_rms_norm(c.stream, &args) == VELO_OK);
  CHECK(t.y.data == typed.data);
  CHECK(std::isfinite(typed.data[0]));
}

TEST_CASE("an alias names the same operator") {
  context c;
  norm_tensors t;
  CHECK(op_call(c.stream, "npu_rms_norm", t.values()) == VELO_OK);
  CHECK(t.y.data[0] == Approx(3.0f));
}

TEST_CASE("an integer stands for a real number when a double holds it exactly") {
  context c;
  norm_tensors t;
  named values = t.values();
  values.push_back({"epsilon", integer(12)});
  REQUIRE(op_call(c.stream, "rms_norm", values) == VELO_OK);
  CHECK(t.y.data[0] == Approx(3.0 * 2.0 / 4.0));
  values.back().value = integer((std::int64_t{1} << 53) + 1);
  expect_refused(VELO_ERR_ARGUMENT, "args.epsilon", op_call(c.stream, "rms_norm", values));
}

TEST_CASE("a value left out keeps the default") {
  context c;
  norm_tensors t;
  named values = t.values();
  values.push_back({"epsilon", none()});
  values.push_back({"rstd", none()});
  CHECK(op_call(c.stream, "rms_norm", values) == VELO_OK);
}

TEST_CASE("enumerators are given by short name or number") {
  context c;
  tensor x({1, 1, 1, 4}, 1.0f), cos({1, 1, 1, 4}, 0.0f), sin({1, 1, 1, 4}, 1.0f), y({1, 1, 1, 4});
  x.data = {1, 2, 3, 4};
  named values = {{"x", of(x)},
                  {"cos", of(cos)},
                  {"sin", of(sin)},
                  {"y", of(y)},
                  {"mode", string("interleaved")}};
  REQUIRE(op_call(c.stream, "rotary_position_embedding", values) == VELO_OK);
  const std::vector<float> by_name = y.data;
  values.back().value = integer(1);
  REQUIRE(op_call(c.stream, "rotary_position_embedding", values) == VELO_OK);
  CHECK(y.data == by_name);
  values.back().value = integer(0);
  REQUIRE(op_call(c.stream, "rotary_position_embedding", values) == VELO_OK);
  CHECK(y.data != by_name);
  values.back().value = string("sideways");
  expect_refused(VELO_ERR_ARGUMENT, "args.mode",
                 op_call(c.stream, "rotary_position_embedding", values));
  CHECK(last().expected == "one of half, interleaved");
  CHECK(last().got == "\"sideways\"");
  values.back().value = real(1);
  expect_refused(VELO_ERR_ARGUMENT, "args.mode",
                 op_call(c.stream, "rotary_position_embedding", values));
}

TEST_CASE("what cannot be a call is refused by name, and nothing is written") {
  context c;
  norm_tensors t;
  named values = t.values();
  SECTION("unknown operator") {
    expect_refused(VELO_ERR_NOT_FOUND, "op", op_call(c.stream, "rms_morn", values));
    CHECK(last().got == "\"rms_morn\"");
  }
  SECTION("no operator") {
    expect_refused(VELO_ERR_NULL, "op", op_call(c.stream, nullptr, values));
  }
  SECTION("unknown field") {
    values[1].name = "gama";
    expect_refused(VELO_ERR_NOT_FOUND, "args.gama", op_call(c.stream, "rms_norm", values));
    CHECK(last().expected == "one of x, gamma, y, rstd, epsilon");
  }
  SECTION("a field without a name") {
    values[1].name = nullptr;
    expect_refused(VELO_ERR_NULL, "values[1].name", op_call(c.stream, "rms_norm", values));
  }
  SECTION("a field given twice") {
    values.push_back({"x", of(t.x)});
    expect_refused(VELO_ERR_ARGUMENT, "args.x", op_call(c.stream, "rms_norm", values));
    CHECK(last().got == "another in values[3]");
  }
  SECTION("a number where a tensor belongs") {
    values[0].value = integer(1);
    expect_refused(VELO_ERR_ARGUMENT, "args.x", op_call(c.stream, "rms_norm", values));
    CHECK(last().expected == "a tensor");
    CHECK(last().got == "an integer");
  }
  SECTION("a string where a number belongs") {
    values.push_back({"epsilon", string("1e-5")});
    expect_refused(VELO_ERR_ARGUMENT, "args.epsilon", op_call(c.stream, "rms_norm", values));
    CHECK(last().got == "a string");
  }
  SECTION("a kind that does not exist") {
    values[0].value.kind = 99;
    expect_refused(VELO_ERR_ARGUMENT, "args.x", op_call(c.stream, "rms_norm", values));
    CHECK(last().got == "a value of unknown kind");
  }
  SECTION("a required tensor left out") {
    values.erase(values.begin() + 1);
    expect_refused(VELO_ERR_NULL, "args.gamma", op_call(c.stream, "rms_norm", values));
  }
  SECTION("a real number where an integer belongs") {
    tensor w({2, 8}), half({2, 4});
    expect_refused(VELO_ERR_ARGUMENT, "args.dim",
                   op_call(c.stream, "swiglu", {{"x", of(w)}, {"y", of(half)}, {"dim", real(1)}}));
  }
  SECTION("no values but a count") {
    expect_refused(VELO_ERR_NULL, "values", velo_op_call(c.stream, "rms_norm", nullptr, 3));
  }
  SECTION("a negative count") {
    expect_refused(VELO_ERR_ARGUMENT, "count",
                   velo_op_call(c.stream, "rms_norm", values.data(), -1));
  }
  SECTION("another handle for the stream") {
    expect_refused(VELO_ERR_HANDLE, "stream",
                   op_call(reinterpret_cast<velo_stream>(c.handle), "rms_norm", values));
  }
  CHECK(t.y.data[0] == -1.0f);
}

TEST_CASE("outputs are inferred from inputs without data") {
  context c;
  tensor x({3, 5, 4}), gamma({4});
  x.view.data = nullptr;
  gamma.view.data = nullptr;
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  const auto infer = [&](velo_shape* shapes, std::int64_t capacity, std::int64_t* count) {
    return velo_op_infer(c.handle, "rms_norm", values.data(), 2, shapes, capacity, count);
  };
  velo_shape shapes[4] = {};
  shapes[0].struct_size = sizeof(velo_shape);
  std::int64_t count = 0;
  REQUIRE(infer(shapes, 4, &count) == VELO_OK);
  REQUIRE(count == 2);
  CHECK(std::string(shapes[0].name) == "y");
  CHECK(shapes[0].ndim == 3);
  CHECK(shapes[0].sizes[1] == 5);
  CHECK(shapes[0].dtype.code == VELO_DTYPE_FLOAT);
  CHECK(std::string(shapes[1].name) == "rstd");
  CHECK(shapes[1].struct_size == sizeof(velo_shape));

  count = 0;
  CHECK(infer(shapes, 1, &count) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "capacity");
  CHECK(count == 2);
  CHECK(infer(shapes, -1, &count) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "capacity");
  CHECK(infer(nullptr, 2, &count) == VELO_ERR_NULL);
  CHECK(last().argument == "shapes");
  CHECK(infer(shapes, 4, nullptr) == VELO_ERR_NULL);
  CHECK(last().argument == "outputs");
  shapes[0].struct_size = 8;
  CHECK(infer(shapes, 4, &count) == VELO_ERR_STRUCT);
  CHECK(last().argument == "shapes.struct_size");
}

TEST_CASE("shapes are written at the distance of the caller's struct size") {
  context c;
  tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  constexpr std::size_t stride = sizeof(velo_shape) + 64;
  std::vector<char> room(2 * stride, 'z');
  const std::uint32_t size = stride;
  std::memcpy(room.data(), &size, sizeof size);
  std::int64_t count = 0;
  REQUIRE(velo_op_infer(c.handle, "rms_norm", values.data(), 2,
                        reinterpret_cast<velo_shape*>(room.data()), 2, &count) == VELO_OK);
  CHECK(std::string(room.data() + stride + offsetof(velo_shape, name)) == "rstd");
  CHECK(room[sizeof(velo_shape)] == 'z');
}

TEST_CASE("explain lists every kernel and chooses one") {
  context c;
  tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  json_t* list = parse(text([&](char* b, std::uint64_t n, std::uint64_t* needed) {
    return velo_op_explain(c.handle, "rms_norm", values.data(), 2, b, n, needed);
  }));
  REQUIRE(json_is_array(list));
  REQUIRE(json_array_size(list) >= 1);
  int chosen = 0;
  std::size_t i = 0;
  json_t* row = nullptr;
  json_array_foreach(list, i, row) {
    CHECK(json_is_string(json_object_get(row, "name")));
    CHECK(json_is_string(json_object_get(row, "isa")));
    const bool is_chosen = json_is_true(json_object_get(row, "chosen"));
    CHECK(json_is_null(json_object_get(row, "reason")) == is_chosen);
    chosen += is_chosen ? 1 : 0;
  }
  CHECK(chosen == 1);
  json_decref(list);
}

TEST_CASE("explain says why a kernel was passed over") {
  context c(R"({"isa": "scalar"})");
  tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  const std::string all = text([&](char* b, std::uint64_t n, std::uint64_t* needed) {
    return velo_op_explain(c.handle, "rms_norm", values.data(), 2, b, n, needed);
  });
  CHECK(all.find("needs an instruction set") != std::string::npos);
}

TEST_CASE("descriptions are JSON that names every operator") {
  json_t* all = parse(text(velo_describe));
  std::int64_t count = 0;
  REQUIRE(velo_op_count(&count) == VELO_OK);
  json_t* operators = json_object_get(all, "operators");
  REQUIRE(json_array_size(operators) == static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    REQUIRE(velo_op_name(i, &name) == VELO_OK);
    json_t* listed = json_array_get(operators, static_cast<std::size_t>(i));
    CHECK(std::string(json_string_value(json_object_get(listed, "name"))) == name);
    json_t* one = parse(text([&](char* b, std::uint64_t n, std::uint64_t* needed) {
      return velo_op_describe(name, b, n, needed);
    }));
    CHECK(json_equal(one, listed) == 1);
    CHECK(json_is_array(json_object_get(one, "kernels")));
    json_decref(one);
  }
  json_decref(all);
}

TEST_CASE("a text is cut to the caller's buffer and its size is told") {
  char small[8];
  std::uint64_t needed = 0;
  REQUIRE(velo_op_describe("rms_norm", small, sizeof small, &needed) == VELO_OK);
  CHECK(std::string(small).size() == 7);
  CHECK(needed > 100);
  CHECK(velo_op_describe("rms_norm", nullptr, 8, &needed) == VELO_ERR_NULL);
  CHECK(last().argument == "buffer");
  CHECK(velo_op_describe("nonsense", small, sizeof small, nullptr) == VELO_ERR_NOT_FOUND);
  CHECK(last().argument == "op");
  CHECK(last().function == "velo_op_describe");
}

TEST_CASE("operators are enumerated within bounds") {
  std::int64_t count = 0;
  const char* name = "untouched";
  REQUIRE(velo_op_count(&count) == VELO_OK);
  CHECK(velo_op_name(count, &name) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "index");
  CHECK(velo_op_name(-1, &name) == VELO_ERR_ARGUMENT);
  CHECK(velo_op_name(0, nullptr) == VELO_ERR_NULL);
  CHECK(velo_op_count(nullptr) == VELO_ERR_NULL);
  CHECK(std::string(name) == "untouched");
}
