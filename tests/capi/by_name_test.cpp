// Operators called, inferred, explained and described by name; every refusal names its field.
#include <cmath>
#include <cstddef>
#include <cstring>

#include "tests/capi/values.hpp"
#include "tests/json_tree.hpp"

using namespace velo::testing;

namespace {

struct norm_tensors {
  float_tensor x{{2, 4}, 2.0f}, gamma = float_tensor({4}, 3.0f), y{{2, 4}, -1.0f};
  named values() const { return {{"x", of(x)}, {"gamma", of(gamma)}, {"y", of(y)}}; }
};

json_tree parse(const std::string& text) {
  json_error_t error;
  json_tree parsed(json_loads(text.c_str(), 0, &error));
  INFO(error.text << " at line " << error.line);
  REQUIRE(parsed != nullptr);
  return parsed;
}

}  // namespace

TEST_CASE("an operator called by name computes what the typed call computes") {
  live_context c;
  norm_tensors t;
  for (std::size_t i = 0; i < t.x.data.size(); ++i) t.x.data[i] = static_cast<float>(i) - 3.0f;
  named values = t.values();
  values.push_back({"epsilon", real(0.5)});
  REQUIRE(op_call(c, "rms_norm", values) == VELO_OK);
  float_tensor typed({2, 4});
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &t.x.view;
  args.gamma = &t.gamma.view;
  args.y = &typed.view;
  args.epsilon = 0.5;
  REQUIRE(velo_rms_norm(c.inline_stream(), &args) == VELO_OK);
  CHECK(t.y.data == typed.data);
  CHECK(std::isfinite(typed.data[0]));
}

TEST_CASE("an alias names the same operator") {
  live_context c;
  norm_tensors t;
  CHECK(op_call(c, "npu_rms_norm", t.values()) == VELO_OK);
  CHECK(t.y.data[0] == Approx(3.0f));
}

TEST_CASE("an integer stands for a real number when a double holds it exactly") {
  live_context c;
  norm_tensors t;
  named values = t.values();
  values.push_back({"epsilon", integer(12)});
  REQUIRE(op_call(c, "rms_norm", values) == VELO_OK);
  CHECK(t.y.data[0] == Approx(3.0 * 2.0 / 4.0));
  values.back().value = integer((std::int64_t{1} << 53) + 1);
  CHECK_REFUSED(op_call(c, "rms_norm", values), VELO_ERR_ARGUMENT, "args.epsilon");
  CHECK(last_record().function == "velo_op_call");
}

TEST_CASE("a value left out keeps the default") {
  live_context c;
  norm_tensors t;
  named values = t.values();
  values.push_back({"epsilon", none()});
  values.push_back({"rstd", none()});
  CHECK(op_call(c, "rms_norm", values) == VELO_OK);
}

TEST_CASE("enumerators are given by short name or number") {
  live_context c;
  float_tensor x({1, 1, 1, 4}, 1.0f), cos({1, 1, 1, 4}, 0.0f), sin({1, 1, 1, 4}, 1.0f),
      y({1, 1, 1, 4});
  x.data = {1, 2, 3, 4};
  named values = {{"x", of(x)},
                  {"cos", of(cos)},
                  {"sin", of(sin)},
                  {"y", of(y)},
                  {"mode", string("interleaved")}};
  REQUIRE(op_call(c, "rotary_position_embedding", values) == VELO_OK);
  const std::vector<float> by_name = y.data;
  values.back().value = integer(1);
  REQUIRE(op_call(c, "rotary_position_embedding", values) == VELO_OK);
  CHECK(y.data == by_name);
  values.back().value = integer(0);
  REQUIRE(op_call(c, "rotary_position_embedding", values) == VELO_OK);
  CHECK(y.data != by_name);
  values.back().value = string("sideways");
  CHECK_REFUSED(op_call(c, "rotary_position_embedding", values), VELO_ERR_ARGUMENT, "args.mode");
  CHECK(last_record().function == "velo_op_call");
  CHECK(last_record().expected == "one of half, interleaved");
  CHECK(last_record().got == "\"sideways\"");
  values.back().value = real(1);
  CHECK_REFUSED(op_call(c, "rotary_position_embedding", values), VELO_ERR_ARGUMENT, "args.mode");
  CHECK(last_record().function == "velo_op_call");
}

TEST_CASE("a wrong call by name is refused with the field's name, and nothing is written") {
  struct call {
    norm_tensors t;
    const char* op = "rms_norm";
    named values = t.values();
  };
  const struct {
    const char* name;
    void (*change)(call&);
    velo_status code;
    const char *argument, *expected, *got;  // nullptr: anything
  } rows[] = {
      {"unknown operator", [](call& c) { c.op = "rms_morn"; }, VELO_ERR_NOT_FOUND, "op", nullptr,
       "\"rms_morn\""},
      {"no operator", [](call& c) { c.op = nullptr; }, VELO_ERR_NULL, "op", nullptr, nullptr},
      {"unknown field", [](call& c) { c.values[1].name = "gama"; }, VELO_ERR_NOT_FOUND, "args.gama",
       "one of x, gamma, y, rstd, epsilon", nullptr},
      {"a field without a name", [](call& c) { c.values[1].name = nullptr; }, VELO_ERR_NULL,
       "values[1].name", nullptr, nullptr},
      {"a field given twice",
       [](call& c) {
         c.values.push_back({"x", of(c.t.x)});
       },
       VELO_ERR_ARGUMENT, "args.x", nullptr, "another in values[3]"},
      {"a number where a tensor belongs", [](call& c) { c.values[0].value = integer(1); },
       VELO_ERR_ARGUMENT, "args.x", "a tensor", "an integer"},
      {"a string where a number belongs",
       [](call& c) {
         c.values.push_back({"epsilon", string("1e-5")});
       },
       VELO_ERR_ARGUMENT, "args.epsilon", nullptr, "a string"},
      {"a kind that does not exist", [](call& c) { c.values[0].value.kind = 99; },
       VELO_ERR_ARGUMENT, "args.x", nullptr, "a value of unknown kind"},
      {"a required tensor left out", [](call& c) { c.values.erase(c.values.begin() + 1); },
       VELO_ERR_NULL, "args.gamma", nullptr, nullptr},
  };
  live_context c;
  for (const auto& row : rows) {
    INFO(row.name);
    call wrong;
    row.change(wrong);
    CHECK_REFUSED(op_call(c, wrong.op, wrong.values), row.code, row.argument);
    const call_record record = last_record();
    CHECK(record.function == "velo_op_call");
    if (row.expected != nullptr) CHECK(record.expected == row.expected);
    if (row.got != nullptr) CHECK(record.got == row.got);
    CHECK(wrong.t.y.data[0] == -1.0f);
  }
  norm_tensors t;
  const named values = t.values();
  float_tensor w({2, 8}), half({2, 4});
  const named real_dim = {{"x", of(w)}, {"y", of(half)}, {"dim", real(1)}};
  CHECK_REFUSED(op_call(c, "swiglu", real_dim), VELO_ERR_ARGUMENT, "args.dim");
  CHECK_REFUSED(velo_op_call(c.inline_stream(), "rms_norm", nullptr, 3), VELO_ERR_NULL, "values");
  CHECK_REFUSED(velo_op_call(c.inline_stream(), "rms_norm", values.data(), -1), VELO_ERR_ARGUMENT,
                "count");
  const auto no_stream = reinterpret_cast<velo_stream>(static_cast<velo_context>(c));
  CHECK_REFUSED(op_call(no_stream, "rms_norm", values), VELO_ERR_HANDLE, "stream");
  CHECK(last_record().function == "velo_op_call");
  CHECK(t.y.data[0] == -1.0f);
}

TEST_CASE("outputs are inferred from inputs without data") {
  live_context c;
  float_tensor x({3, 5, 4}), gamma({4});
  x.view.data = nullptr;
  gamma.view.data = nullptr;
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  const auto infer = [&](velo_shape* shapes, std::int64_t capacity, std::int64_t* count) {
    return velo_op_infer(c, "rms_norm", values.data(), 2, shapes, capacity, count);
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
  CHECK_REFUSED(infer(shapes, 1, &count), VELO_ERR_ARGUMENT, "capacity");
  CHECK(count == 2);
  CHECK_REFUSED(infer(shapes, -1, &count), VELO_ERR_ARGUMENT, "capacity");
  CHECK_REFUSED(infer(nullptr, 2, &count), VELO_ERR_NULL, "shapes");
  CHECK_REFUSED(infer(shapes, 4, nullptr), VELO_ERR_NULL, "outputs");
  shapes[0].struct_size = 8;
  CHECK_REFUSED(infer(shapes, 4, &count), VELO_ERR_STRUCT, "shapes.struct_size");
}

TEST_CASE("shapes are written at the distance of the caller's struct size") {
  live_context c;
  float_tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  constexpr std::size_t stride = sizeof(velo_shape) + 64;
  std::vector<char> room(2 * stride, 'z');
  const std::uint32_t size = stride;
  std::memcpy(room.data(), &size, sizeof size);
  std::int64_t count = 0;
  REQUIRE(velo_op_infer(c, "rms_norm", values.data(), 2, reinterpret_cast<velo_shape*>(room.data()),
                        2, &count) == VELO_OK);
  CHECK(std::string(room.data() + stride + offsetof(velo_shape, name)) == "rstd");
  CHECK(room[sizeof(velo_shape)] == 'z');
}

TEST_CASE("explain lists every kernel and chooses one") {
  live_context c;
  float_tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  const json_tree list = parse(text(velo_op_explain, c, "rms_norm", values.data(), 2));
  REQUIRE(json_is_array(list.get()));
  REQUIRE(json_array_size(list.get()) >= 1);
  int chosen = 0;
  std::size_t i = 0;
  json_t* row = nullptr;
  json_array_foreach(list.get(), i, row) {
    CHECK(json_is_string(json_object_get(row, "name")));
    CHECK(json_is_string(json_object_get(row, "isa")));
    const bool is_chosen = json_is_true(json_object_get(row, "chosen"));
    CHECK(json_is_null(json_object_get(row, "reason")) == is_chosen);
    chosen += is_chosen ? 1 : 0;
  }
  CHECK(chosen == 1);
}

TEST_CASE("explain says why a kernel was passed over") {
  live_context c(R"({"isa": "scalar"})");
  float_tensor x({3, 4}), gamma({4});
  const named values = {{"x", of(x)}, {"gamma", of(gamma)}};
  const std::string all = text(velo_op_explain, c, "rms_norm", values.data(), 2);
  CHECK(all.find("needs an instruction set") != std::string::npos);
}

TEST_CASE("descriptions are JSON that names every operator") {
  const json_tree all = parse(text(velo_describe));
  std::int64_t count = 0;
  REQUIRE(velo_op_count(&count) == VELO_OK);
  json_t* operators = json_object_get(all.get(), "operators");
  REQUIRE(json_array_size(operators) == static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    REQUIRE(velo_op_name(i, &name) == VELO_OK);
    json_t* listed = json_array_get(operators, static_cast<std::size_t>(i));
    CHECK(text_in(listed, "name") == name);
    const json_tree one = parse(text(velo_op_describe, name));
    CHECK(json_equal(one.get(), listed) == 1);
    CHECK(json_is_array(json_object_get(one.get(), "kernels")));
  }
}

TEST_CASE("a text is cut to the caller's buffer and its size is returned") {
  char small[8];
  std::uint64_t needed = 0;
  REQUIRE(velo_op_describe("rms_norm", small, sizeof small, &needed) == VELO_OK);
  CHECK(std::string(small).size() == 7);
  CHECK(needed > 100);
  CHECK_REFUSED(velo_op_describe("rms_norm", nullptr, 8, &needed), VELO_ERR_NULL, "buffer");
  CHECK_REFUSED(velo_op_describe("nonsense", small, sizeof small, nullptr), VELO_ERR_NOT_FOUND,
                "op");
  CHECK(last_record().function == "velo_op_describe");
}

TEST_CASE("operators are enumerated within bounds") {
  std::int64_t count = 0;
  const char* name = "untouched";
  REQUIRE(velo_op_count(&count) == VELO_OK);
  CHECK_REFUSED(velo_op_name(count, &name), VELO_ERR_ARGUMENT, "index");
  CHECK(velo_op_name(-1, &name) == VELO_ERR_ARGUMENT);
  CHECK(velo_op_name(0, nullptr) == VELO_ERR_NULL);
  CHECK(velo_op_count(nullptr) == VELO_ERR_NULL);
  CHECK(std::string(name) == "untouched");
}
