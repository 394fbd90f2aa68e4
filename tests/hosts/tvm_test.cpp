// Every tvm-ffi function through a host that calls it as tvm-ffi does, against the plain C API.
#include <catch2/catch.hpp>

#include "leaks.hpp"
#include "tests/tensors.hpp"
#include "tvm_host.hpp"

using namespace hosts;
using Catch::Matchers::Contains;
using velo::testing::f32;

namespace {

constexpr const char* path = VELO_ADAPTERS;

const array* find(const std::vector<named_array>& arrays, const std::string& field) {
  for (const named_array& a : arrays) {
    if (a.field == field) return &a.data;
  }
  return nullptr;
}

// The fields in order, None for those the sample does not have. Written tensors come from
// `outputs`.
void put_fields(tvm_arguments& args, const sample& s, const std::vector<named_array>& outputs,
                bool objects) {
  for (const field& f : fields_of(s.op)) {
    const array* tensor = find(outputs, f.name);
    if (tensor == nullptr) tensor = s.input(f.name);
    if (tensor != nullptr) {
      objects ? args.tensor_object(tensor->view()) : args.bare_tensor(tensor->view());
      continue;
    }
    const attribute* given = nullptr;
    for (const attribute& a : s.attributes) {
      if (a.name == f.name) given = &a;
    }
    given != nullptr ? args.put(*given, objects) : args.none();
  }
}

std::vector<named_array> outputs_for(const sample& s) {
  auto outputs = s.blank_outputs();
  for (named_array& out : outputs) {
    if (const array* before = s.input(out.field)) out.data = *before;
  }
  return outputs;
}

host_error failure_of(const tvm_function& f, const tvm_arguments& args) {
  try {
    f(args);
  } catch (const host_error& error) {
    return error;
  }
  return {"none", "no error"};
}

}  // namespace

TEST_CASE("__tvm_ffi_velo_<op> gives the plain call's bits") {
  for (const bool with_attributes : {false, true}) {
    for (const sample& s : samples(with_attributes)) {
      for (const bool objects : {false, true}) {
        INFO(s.op << " " << s.attributes_json() << " objects " << objects);
        const tvm_function f(path, "velo_" + s.op);
        auto outputs = outputs_for(s);
        tvm_arguments args;
        put_fields(args, s, outputs, objects);
        if (s.status == VELO_OK) {
          REQUIRE_NOTHROW(f(args));
          CHECK(same_bits(outputs, s.outputs));
        } else {
          CHECK_THROWS_WITH(f(args), "velo_" + s.op + s.text.substr(s.text.find(": ")));
        }
      }
    }
  }
}

TEST_CASE("trailing arguments may be left off") {
  const sample s = sample_of("add");
  auto outputs = s.blank_outputs();
  tvm_arguments args;
  args.bare_tensor(s.inputs[0].data.view());
  args.tensor_object(s.inputs[1].data.view());
  args.bare_tensor(outputs[0].data.view());
  tvm_function(path, "velo_add")(args);
  CHECK(same_bits(outputs, s.outputs));
}

TEST_CASE("strides are taken where the operator takes them, and refused by name where not") {
  const std::int64_t shape[] = {4, 8}, wide[] = {16, 1}, still[] = {0, 1}, none[] = {0, 8};
  array a = filled(f32, {4, 16}, 0x3f), b = filled(f32, {8, 8}, 0x3e), c = filled(f32, {4, 8}, 0),
        again = filled(f32, {4, 8}, 0);
  velo_tensor ta = a.view(), tc = c.view();
  ta.shape = shape;
  ta.strides = wide;
  const tvm_function matmul(path, "velo_matmul");
  const auto product = [&](const velo_tensor& left, const velo_tensor& out) {
    tvm_arguments args;
    args.bare_tensor(left);
    args.bare_tensor(b.view());
    args.none();
    args.none();
    args.bare_tensor(out);
    return failure_of(matmul, args);
  };
  CHECK(product(ta, tc).kind == "none");
  ta.strides = still;
  const host_error broadcast = product(ta, again.view());
  CHECK(broadcast.kind == "ValueError");
  CHECK_THAT(broadcast.what(), Contains("velo_matmul: args.a"));
  ta.shape = none;
  velo_tensor nothing = c.view();
  nothing.shape = none;
  CHECK(product(ta, nothing).kind == "none");

  const tvm_function add(path, "velo_add");
  velo_tensor strided = a.view();
  strided.shape = shape;
  strided.strides = wide;
  tvm_arguments args;
  args.bare_tensor(strided);
  args.bare_tensor(c.view());
  args.bare_tensor(again.view());
  const host_error refused = failure_of(add, args);
  CHECK(refused.kind == "ValueError");
  CHECK_THAT(refused.what(), Contains("velo_add: args.a"));
}

TEST_CASE("what tvm-ffi's users get wrong becomes their exception") {
  const sample s = sample_of("rms_norm");
  const tvm_function f(path, "velo_rms_norm");
  auto outputs = s.blank_outputs();
  const auto blank = outputs;
  const auto with = [&](velo_tensor x, velo_tensor gamma, auto&& more) {
    tvm_arguments args;
    args.bare_tensor(x);
    args.bare_tensor(gamma);
    args.bare_tensor(outputs[0].data.view());
    args.none();
    more(args);
    return failure_of(f, args);
  };
  const auto nothing = [](tvm_arguments&) {};
  velo_tensor x = s.inputs[0].data.view(), gamma = s.inputs[1].data.view();
  const std::int64_t short_row[] = {39};
  velo_tensor cut = gamma, half = x, elsewhere = x;
  cut.shape = short_row;
  half.dtype = velo::testing::f16;
  elsewhere.device.type = 2;
  CHECK(with(x, cut, nothing).kind == "ValueError");
  CHECK_THAT(with(x, cut, nothing).what(), Contains("args.gamma.shape: expected [40], got [39]"));
  CHECK(with(half, gamma, nothing).kind == "TypeError");
  CHECK(with(elsewhere, gamma, nothing).kind == "ValueError");
  CHECK_THAT(with(elsewhere, gamma, nothing).what(), Contains("args.x"));
  CHECK_THAT(with(x, gamma, [](tvm_arguments& a) { a.string("tiny"); }).what(),
             Contains("epsilon: expected a real, got a string"));
  CHECK_THAT(with(x, gamma, [](tvm_arguments& a) { a.other(72); }).what(),
             Contains("epsilon: expected a tensor, number, string, Shape or None"));
  CHECK_THAT(with(x, gamma,
                  [](tvm_arguments& a) {
                    a.none();
                    a.none();
                  })
                 .what(),
             Contains("at most 5"));
  CHECK(same_bits(outputs, blank));
}

TEST_CASE("a boolean is taken for a flag alone, from tvm-ffi") {
  for (const std::string& op : operator_names()) {
    const tvm_function f(path, "velo_" + op);
    const std::vector<field> fields = fields_of(op);
    for (std::size_t at = 0; at < fields.size(); ++at) {
      INFO(op << "." << fields[at].name);
      tvm_arguments args;
      for (std::size_t before = 0; before < at; ++before) args.none();
      args.boolean(true);
      const std::string failure = failure_of(f, args).what();
      CHECK((failure.find(", got a boolean") == std::string::npos) == (fields[at].kind == "bool"));
    }
  }
}

TEST_CASE("10000 tvm-ffi calls leak nothing") {
  const sample s = sample_of("rms_norm");
  const tvm_function f(path, "velo_rms_norm");
  auto outputs = s.blank_outputs();
  tvm_arguments args;
  put_fields(args, s, outputs, true);
  check_no_leak([&](int) { f(args); });
}
