// Every XLA FFI handler through a host that calls it as XLA does, against the plain C API.
#include <catch2/catch.hpp>

#include "leaks.hpp"
#include "tests/threads.hpp"
#include "xla_host.hpp"

using namespace hosts;
using Catch::Matchers::Contains;
using velo::testing::on_threads;

namespace {

constexpr const char* path = VELO_ADAPTERS;

}  // namespace

TEST_CASE(
    "a metadata request is answered with the oldest version, as far as the host's struct goes") {
  for (const std::string& op : operator_names()) {
    INFO(op);
    const xla_handler handler(path, "velo_xla_" + op);
    const xla_metadata_answer whole = handler.metadata(48);
    CHECK(whole.major == 0);
    CHECK(whole.minor == 1);
    CHECK(whole.traits == 0);
    const xla_metadata_answer old = handler.metadata(32);
    CHECK(old.minor == 1);
    CHECK(old.traits == 77);
  }
}

TEST_CASE("velo_xla_<op> gives the plain call's bits on XLA's threads") {
  xla_pool pool(2);
  for (const bool with_attributes : {false, true}) {
    for (const sample& s : samples(with_attributes)) {
      INFO(s.op << " " << s.attributes_json());
      const xla_handler handler(path, "velo_xla_" + s.op);
      auto outputs = s.blank_outputs();
      const std::string fields = s.counted ? "" : s.fields();
      if (s.status == VELO_OK) {
        REQUIRE_NOTHROW(handler.execute(s.inputs, outputs, s.attributes, fields, &pool));
        CHECK(same_bits(outputs, s.outputs));
        continue;
      }
      CHECK_THROWS_WITH(handler.execute(s.inputs, outputs, s.attributes, fields, &pool),
                        "velo_xla_" + s.op + s.text.substr(s.text.find(": ")));
    }
  }
  CHECK(xla_handler::live_errors == 0);
}

TEST_CASE("a donated buffer is updated in place") {
  xla_pool pool(1);
  for (const char* op : {"apply_fused_adamw", "matmul_add_fp32"}) {
    const sample s = sample_of(op);
    auto outputs = s.blank_outputs();
    for (named_array& out : outputs) {
      if (const array* before = s.input(out.field)) out.data = *before;
    }
    xla_handler(path, "velo_xla_" + s.op)
        .execute(s.inputs, outputs, s.attributes, s.fields(), &pool, 0, true);
    CHECK(same_bits(outputs, s.outputs));
  }
}

TEST_CASE("work large enough to share reaches XLA's pool, busy, refusing or absent") {
  sample s = sample_of("add");
  for (named_array& in : s.inputs) in.data = filled(in.data.dtype, {512, 4096}, 0x3f);
  s.outputs[0].data = s.inputs[0].data;
  const xla_handler handler(path, "velo_xla_add");
  const auto run = [&](xla_pool* pool) {
    auto outputs = s.blank_outputs();
    handler.execute(s.inputs, outputs, {}, "", pool);
    return outputs;
  };
  const auto alone = run(nullptr);
  xla_pool pool(2), without_threads(0), refusing(1);
  refusing.available = false;
  CHECK(same_bits(run(&pool), alone));
  CHECK(pool.scheduled > 0);
  CHECK(same_bits(run(&without_threads), alone));
  CHECK(same_bits(run(&refusing), alone));
  CHECK(xla_handler::live_errors == 0);
}

TEST_CASE("handlers called from several threads take turns") {
  xla_pool pool(2);
  const sample s = sample_of("matmul");
  const xla_handler handler(path, "velo_xla_matmul");
  std::atomic<int> wrong{0};
  on_threads(4, [&] {
    for (int i = 0; i < 50; ++i) {
      auto outputs = s.blank_outputs();
      handler.execute(s.inputs, outputs, s.attributes, "", &pool);
      if (!same_bits(outputs, s.outputs)) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("what XLA gets wrong becomes its error, with velo's sentence") {
  xla_pool pool(1);
  sample s = sample_of("rms_norm");
  const xla_handler handler(path, "velo_xla_rms_norm");
  auto outputs = s.blank_outputs();
  const auto blank = outputs;
  const auto fails = [&](const std::vector<named_array>& inputs,
                         const std::vector<attribute>& attributes, const std::string& fields,
                         int dtype = 0) -> host_error {
    try {
      handler.execute(inputs, outputs, attributes, fields, &pool, dtype);
    } catch (const host_error& error) {
      return error;
    }
    return {"none", "no error"};
  };
  const std::string invalid = "3", not_found = "5";
  auto cut = s.inputs;
  cut[1].data.shape = {39};
  CHECK(fails(cut, {}, "").kind == invalid);
  CHECK_THAT(fails(cut, {}, "").what(),
             Contains("velo_xla_rms_norm: args.gamma.shape: expected [40], got [39]"));
  CHECK_THAT(fails(s.inputs, {}, "", 4).what(), Contains("args.x.dtype"));
  CHECK_THAT(fails(s.inputs, {}, "", 19).what(), Contains("args[0]: expected a dtype velo knows"));
  const attribute unknown{"eps", VELO_VALUE_FLOAT, 0, 1, "", {}};
  CHECK(fails(s.inputs, {unknown}, "").kind == not_found);
  const attribute text{"epsilon", VELO_VALUE_STRING, 0, 0, "small", {}};
  CHECK_THAT(fails(s.inputs, {text}, "").what(), Contains("epsilon: expected a real"));
  const attribute list{"epsilon", VELO_VALUE_INTS, 0, 0, "", {1, 2}};
  CHECK_THAT(fails(s.inputs, {list}, "").what(), Contains("epsilon: expected a real"));
  CHECK_THAT(fails(s.inputs, {}, "x,gamma->y").what(), Contains("2 inputs and 2 outputs"));
  CHECK_THAT(fails({s.inputs[0]}, {}, "").what(), Contains("1 inputs and 2 outputs"));
  CHECK(same_bits(outputs, blank));
  CHECK(xla_handler::live_errors == 0);
}

TEST_CASE("a boolean is taken for a flag alone, from XLA") {
  for (const std::string& op : operator_names()) {
    if (takes_lists(op)) continue;
    const sample s = sample_of(op);
    const xla_handler handler(path, "velo_xla_" + op);
    for (const field& f : fields_of(op)) {
      if (holds_tensors(f)) continue;
      INFO(op << "." << f.name);
      std::string failure;
      auto outputs = s.blank_outputs();
      try {
        handler.execute(s.inputs, outputs, {{f.name, VELO_VALUE_NONE, 1, 0, "", {}}}, s.fields(),
                        nullptr);
      } catch (const host_error& error) {
        failure = error.what();
      }
      const std::string refusal = ", got a boolean";
      CHECK((failure.find(refusal) == std::string::npos) == (f.kind == "bool"));
    }
  }
  CHECK(xla_handler::live_errors == 0);
}

TEST_CASE("10000 XLA calls, failing ones among them, leak nothing") {
  const sample s = sample_of("rms_norm");
  const xla_handler handler(path, "velo_xla_rms_norm");
  auto outputs = s.blank_outputs();
  check_no_leak([&](int i) {
    try {
      handler.execute(s.inputs, outputs, s.attributes, i % 10 == 0 ? "x->y" : "", nullptr);
    } catch (const host_error&) {
    }
  });
  CHECK(xla_handler::live_errors == 0);
}
