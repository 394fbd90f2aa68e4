// Every MindSpore entry through a host that loads it as the framework does, against the plain C
// API.
#include "mindspore_host.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/text/utf8.hpp"
#include "leaks.hpp"
#include "tests/child_process.hpp"
#include "tests/comma_locale.hpp"
#include "tests/tensors.hpp"

using namespace hosts;
using Catch::Matchers::Contains;
using velo::testing::f32;
using velo::testing::view_of;

namespace {

constexpr const char* path = VELO_ADAPTERS;

// The library with the functions of slots.
struct slot_library : library {
  slot_library() : library(path, RTLD_LAZY | RTLD_LOCAL) {}
  decltype(velo_ms_slot_bind)* const bind =
      function<decltype(velo_ms_slot_bind)>("velo_ms_slot_bind");
  decltype(velo_ms_slot_infer)* const infer =
      function<decltype(velo_ms_slot_infer)>("velo_ms_slot_infer");
  decltype(velo_ms_slot_release)* const release =
      function<decltype(velo_ms_slot_release)>("velo_ms_slot_release");
};

// A slot that is bound to a sample's operator and attributes while this lives.
struct slot_for {
  slot_for(const slot_library& adapters, const sample& s) : adapters_(adapters) {
    REQUIRE(adapters.bind(-1, s.op.c_str(), s.attributes_json().c_str(), &number_) == VELO_OK);
    char text[32];
    std::snprintf(text, sizeof text, "velo_ms_slot_%03d", number_);
    name = text;
  }
  ~slot_for() { adapters_.release(number_); }
  slot_for(const slot_for&) = delete;
  slot_for& operator=(const slot_for&) = delete;

  std::string name;

 private:
  const slot_library& adapters_;
  std::int32_t number_ = -1;
};

// Lines the adapters log while this lives.
struct log_sink {
  explicit log_sink(const library& adapters)
      : set(adapters.function<decltype(velo_adapters_set_log)>("velo_adapters_set_log")) {
    set([](void* user, velo_log_level, const char*,
           const char* line) { static_cast<log_sink*>(user)->lines.emplace_back(line); },
        this);
  }
  ~log_sink() { set(nullptr, nullptr); }
  decltype(velo_adapters_set_log)* set;
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("there is a sample of every operator") {
  for (const std::string& name : operator_names()) {
    INFO(name);
    bool found = takes_lists(name);
    for (const sample& s : samples(true)) found = found || s.op == name;
    CHECK(found);
  }
  for (const sample& s : samples(true)) {
    INFO(s.op << ": " << s.text);
    CHECK(s.status == VELO_OK);
  }
}

TEST_CASE("velo_ms_<op> gives the plain call's bits, or its words") {
  const slot_library adapters;
  log_sink log(adapters);
  for (const sample& s : samples(false)) {
    INFO(s.op << " " << s.fields());
    mindspore_kernel kernel(path, "velo_ms_" + s.op);
    auto outputs = s.blank_outputs();
    log.lines.clear();
    if (s.status == VELO_OK) {
      REQUIRE_NOTHROW(kernel.launch(s.inputs, outputs));
      CHECK(same_bits(outputs, s.outputs));
      continue;
    }
    const std::string reason = s.text.substr(s.text.find(": ") + 2);
    CHECK_THROWS_WITH(kernel.launch(s.inputs, outputs), "velo_ms_" + s.op + ": " + reason);
    REQUIRE(log.lines.size() == 1);
    CHECK_THAT(log.lines[0], Contains(reason));
  }
}

TEST_CASE("slots carry attributes and name the tensors") {
  const slot_library adapters;
  for (const sample& s : samples(true)) {
    INFO(s.op << " " << s.attributes_json());
    const slot_for slot(adapters, s);
    mindspore_kernel kernel(path, slot.name);
    auto outputs = s.blank_outputs();
    REQUIRE_NOTHROW(kernel.launch(s.inputs, outputs));
    CHECK(same_bits(outputs, s.outputs));
  }
}

namespace {

// Shapes that MindSpore asks a slot for before a launch; sizes of the inputs that are `hidden` are
// not known.
std::vector<std::vector<std::int64_t>> inferred_by(const slot_library& adapters, const sample& s,
                                                   std::int64_t hidden = 0) {
  std::vector<int> ndims;
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<std::int64_t*> shapes;
  for (const named_array& in : s.inputs) {
    ndims.push_back(static_cast<int>(in.data.shape.size()));
    sizes.push_back(in.data.shape);
    std::replace(sizes.back().begin(), sizes.back().end(), hidden, std::int64_t{-1});
  }
  for (auto& shape : sizes) shapes.push_back(shape.data());
  const slot_for slot(adapters, s);
  const std::string symbol = slot.name + "InferShape";
  using one = std::vector<std::int64_t>(int*, std::int64_t**, void*);
  using several = std::vector<std::vector<std::int64_t>>(int*, std::int64_t**, void*);
  void* const extra = reinterpret_cast<void*>(16);
  if (s.outputs.size() == 1)
    return {adapters.function<one>(symbol)(ndims.data(), shapes.data(), extra)};
  return adapters.function<several>(symbol)(ndims.data(), shapes.data(), extra);
}

}  // namespace

// A list bounds sizes, which are then not always found.
bool has_list(const sample& s) {
  return std::any_of(s.attributes.begin(), s.attributes.end(),
                     [](const attribute& a) { return a.kind == VELO_VALUE_INTS; });
}

// MindSpore does not say whether bytes are int8, uint8 or pairs of int4; known sizes do.
bool has_small_integers(const sample& s) {
  return std::any_of(s.inputs.begin(), s.inputs.end(), [](const named_array& in) {
    const bool weight = in.field.rfind("weight", 0) == 0;
    return in.data.dtype.bits == 8 && (weight || in.data.dtype.code == VELO_DTYPE_INT);
  });
}

TEST_CASE("a slot infers the shapes of its outputs as MindSpore asks for them") {
  const slot_library adapters;
  std::size_t unknown = 0, asked = 0, refused = 0;
  for (const sample& s : samples(true)) {
    INFO(s.op << " " << s.attributes_json());
    const auto known = inferred_by(adapters, s);
    REQUIRE(known.size() == s.outputs.size());
    for (std::size_t o = 0; o < known.size(); ++o) CHECK(known[o] == s.outputs[o].data.shape);
    if (has_small_integers(s)) continue;
    for (const std::int64_t hidden : s.inputs[0].data.shape) {
      const auto some = inferred_by(adapters, s, hidden);
      ++asked;
      if (has_list(s) && some.front() == std::vector<std::int64_t>{0}) {
        ++refused;
        continue;
      }
      for (std::size_t o = 0; o < some.size(); ++o) {
        REQUIRE(some[o].size() == known[o].size());
        for (std::size_t i = 0; i < some[o].size(); ++i) {
          CHECK((some[o][i] == known[o][i] || some[o][i] == -1));
          unknown += some[o][i] == -1 ? 1u : 0u;
        }
      }
    }
  }
  CHECK(unknown > 50);
  CHECK(refused < asked / 20);
}

TEST_CASE("sizes that are not known are tried until the operator takes them") {
  const slot_library adapters;
  std::int64_t a[] = {-1, -1, -1}, b[] = {24, 10};
  const velo_tensor inputs[] = {view_of(nullptr, f32, a), view_of(nullptr, f32, b)};
  velo_shape c = VELO_SHAPE_INIT;
  REQUIRE(adapters.bind(125, "matmul", R"({"fields": "a,b->c"})", nullptr) == VELO_OK);
  REQUIRE(adapters.infer(125, inputs, 2, &c, 1) == VELO_OK);
  CHECK(c.ndim == 3);
  CHECK(c.sizes[0] == -1);
  CHECK(c.sizes[1] == -1);
  CHECK(c.sizes[2] == 10);
  std::int64_t half[] = {-1, -1, -1}, whole[] = {-1, -1, -1};
  const velo_tensor gated[] = {view_of(nullptr, f32, half), view_of(nullptr, f32, whole)};
  REQUIRE(adapters.bind(124, "swiglu_backward", R"({"fields": "dy,x->dx"})", nullptr) == VELO_OK);
  velo_shape dx = VELO_SHAPE_INIT;
  CHECK(adapters.infer(124, gated, 2, &dx, 1) == VELO_OK);
  CHECK(dx.ndim == 3);
  a[2] = 23;
  CHECK(adapters.infer(125, inputs, 2, &c, 1) == VELO_ERR_SHAPE);
  CHECK_THAT(last_error(adapters), Contains("args.b.shape"));
  CHECK(adapters.infer(125, inputs, 1, &c, 1) == VELO_ERR_ARGUMENT);
  CHECK(adapters.infer(125, inputs, 2, &c, 0) == VELO_ERR_ARGUMENT);
  CHECK(adapters.infer(125, nullptr, 2, &c, 1) == VELO_ERR_NULL);
  CHECK(adapters.infer(512, inputs, 2, &c, 1) == VELO_ERR_ARGUMENT);
  REQUIRE(adapters.bind(125, "matmul", nullptr, nullptr) == VELO_OK);
  CHECK(adapters.infer(125, inputs, 2, &c, 1) == VELO_ERR_ARGUMENT);
  CHECK_THAT(last_error(adapters), Contains("`fields`"));
  adapters.release(125);
  CHECK(adapters.infer(125, inputs, 2, &c, 1) == VELO_ERR_STATE);
}

TEST_CASE("a binding is found again, replaced and released") {
  const slot_library adapters;
  std::int32_t first = -1, again = -1;
  CHECK(adapters.bind(-1, "swiglu", "{\"dim\": 0}", &first) == VELO_OK);
  CHECK(adapters.bind(-1, "swiglu", "{\"dim\": 0}", &again) == VELO_OK);
  CHECK(first == again);
  CHECK(adapters.bind(127, "swiglu", "{\"dim\": -1, \"fields\": null}", nullptr) == VELO_OK);
  CHECK(adapters.bind(127, "rms_norm", nullptr, nullptr) == VELO_OK);
  CHECK(adapters.release(127) == VELO_OK);
  CHECK(adapters.release(512) == VELO_ERR_ARGUMENT);
  CHECK(adapters.bind(512, "swiglu", nullptr, nullptr) == VELO_ERR_ARGUMENT);
  log_sink log(adapters);
  std::vector<named_array> none;
  CHECK_THROWS_WITH(mindspore_kernel(path, "velo_ms_slot_127").launch({}, none),
                    Contains("slot_127"));
}

TEST_CASE("a wrong binding is refused with its place") {
  const slot_library adapters;
  const auto refused = [&](const char* op, const char* json) {
    const velo_status status = adapters.bind(126, op, json, nullptr);
    CHECK(status != VELO_OK);
    return last_error(adapters);
  };
  CHECK_THAT(refused("norm", "{}"), Contains("\"norm\""));
  CHECK_THAT(refused("rms_norm", "{\"eps\": 1}"), Contains("\"eps\""));
  CHECK_THAT(refused("rms_norm", "{\"epsilon\": }"), Contains("column 13"));
  CHECK_THAT(refused("rms_norm", "{\"epsilon\": 1} x"), Contains("column 16"));
  CHECK_THAT(refused("rms_norm", "{\"epsilon\": \"x\"}"), Contains("expected a real"));
  CHECK_THAT(refused("rms_norm", "{\"x\": 1}"), Contains("expected a tensor"));
  CHECK_THAT(refused("rms_norm", "{\"fields\": \"x,gamma\"}"), Contains("inputs->outputs"));
  CHECK_THAT(refused("rms_norm", "{\"fields\": \"x,beta->y\"}"), Contains("\"beta\""));
  CHECK_THAT(refused("rms_norm", "{\"fields\": \"x,x->y\"}"), Contains("x again"));
  CHECK_THAT(refused("rms_norm", "{\"fields\": \"x->gamma\"}"), Contains("\"gamma\""));
  CHECK_THAT(refused("apply_fused_adamw", "{\"fields\": \"grad,param,m->param,m,v\"}"),
             Contains("expected v among the inputs"));
  CHECK_THAT(refused("matmul", "{\"fields\": \"a,b,c->a\"}"), Contains("\"a\""));
}

TEST_CASE("attributes are read as JSON is written: numbers, names and bytes") {
  const slot_library adapters;
  const auto binds = [&](const char* json) {
    INFO(json);
    CHECK(adapters.bind(126, "rms_norm", json, nullptr) == VELO_OK);
  };
  const auto refused = [&](const std::string& json, const char* wanted) {
    INFO(json);
    CHECK(adapters.bind(126, "rms_norm", json.c_str(), nullptr) == VELO_ERR_PARSE);
    const std::string sentence = last_error(adapters);
    CHECK_THAT(sentence, Contains(wanted));
    for (const char* at = sentence.c_str(); *at != 0;) {
      const std::size_t bytes = velo::core::utf8_character(at);
      REQUIRE(bytes > 0);
      at += bytes;
    }
  };
  const auto numbers = [&] {
    for (const char* number : {"0", "1", "0.5", "1e-5", "1.25E+1", "12e0", "-0.0"})
      binds((std::string("{\"epsilon\": ") + number + "}").c_str());
    for (const char* number : {"+1", "01", "00", "-", "-01.5", ".5", "1.", "1e", "1e+", "0x1",
                               "1e400", "9223372036854775808", "0,5", "NaN", "inf"})
      refused(std::string("{\"epsilon\": ") + number + "}", "column");
  };
  numbers();
  {
    const velo::testing::comma_locale comma;
    numbers();
  }
  refused("{\"epsilon\": 1, \"epsilon\": 2}", "another name");
  refused("{\"epsilon\": null, \"epsilon\": 2}", "another name");
  refused("{\"fields\": \"x,gamma->y\", \"fields\": \"x,gamma->y\"}", "another name");
  for (const char* bytes : {"\xff", "\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80"})
    refused(std::string("{\"fields\": \"") + bytes + "\"}", "UTF-8 at column 13");
  refused("{\"epsilon\": \u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4}",
          "column 13");
}

TEST_CASE("a boolean is taken for a flag alone, in a slot's attributes") {
  const slot_library adapters;
  for (const std::string& op : operator_names()) {
    for (const field& f : fields_of(op)) {
      INFO(op << "." << f.name);
      for (const char* value : {"true", "false"}) {
        const std::string json = "{\"" + f.name + "\": " + value + "}";
        const velo_status status = adapters.bind(126, op.c_str(), json.c_str(), nullptr);
        CHECK(status == (f.kind == "bool" ? VELO_OK : VELO_ERR_ARGUMENT));
        if (status != VELO_OK) CHECK_THAT(last_error(adapters), Contains(", got a boolean"));
      }
    }
  }
  CHECK(adapters.bind(126, "matmul", "{\"transpose_a\": yes}", nullptr) == VELO_ERR_PARSE);
  CHECK(adapters.bind(126, "matmul", "{\"transpose_a\": tru}", nullptr) == VELO_ERR_PARSE);
}

TEST_CASE("MindSpore's errors have velo's whole sentence, and outputs stay untouched") {
  const slot_library adapters;
  log_sink log(adapters);
  sample s = sample_of("rms_norm");
  mindspore_kernel kernel(path, "velo_ms_rms_norm");
  auto outputs = s.blank_outputs();
  const auto blank = outputs;
  CHECK_THROWS_WITH(kernel.launch(s.inputs, outputs, "float8_e4m3"), Contains("\"float8_e4m3\""));
  CHECK_THROWS_WITH(kernel.launch(s.inputs, outputs, "int32"), Contains("args.x.dtype"));
  CHECK_THROWS_WITH(kernel.launch(s.inputs, outputs, nullptr, &s), Contains("stream"));
  auto short_gain = s.inputs;
  short_gain[1].data.shape = {39};
  CHECK_THROWS_WITH(kernel.launch(short_gain, outputs),
                    Contains("args.gamma.shape: expected [40], got [39]"));
  std::vector<named_array> no_output;
  CHECK_THROWS_WITH(kernel.launch(s.inputs, no_output), Contains("x,gamma->y,[rstd]"));
  CHECK(same_bits(outputs, blank));
  CHECK(log.lines.size() == 5);
}

TEST_CASE("both spellings of bfloat16 are understood") {
  for (const sample& s : samples(false)) {
    if (s.op != "add" || s.inputs[0].data.dtype.code != VELO_DTYPE_BFLOAT) continue;
    for (const char* spelling : {"bfloat16", "BFloat16", "bf16"}) {
      mindspore_kernel kernel(path, "velo_ms_add");
      auto outputs = s.blank_outputs();
      REQUIRE_NOTHROW(kernel.launch(s.inputs, outputs, spelling));
      CHECK(same_bits(outputs, s.outputs));
    }
  }
}

TEST_CASE("accumulating without the sum so far is refused") {
  const slot_library adapters;
  log_sink log(adapters);
  REQUIRE(adapters.bind(125, "rms_norm_backward", "{\"accumulate\": true}", nullptr) == VELO_OK);
  for (const sample& s : samples(false)) {
    if (s.op != "rms_norm_backward") continue;
    auto outputs = s.blank_outputs();
    CHECK_THROWS_WITH(mindspore_kernel(path, "velo_ms_slot_125").launch(s.inputs, outputs),
                      Contains("accumulate"));
  }
}

TEST_CASE("tensors without elements do nothing") {
  mindspore_kernel kernel(path, "velo_ms_add");
  const array empty = filled(f32, {0, 4}, 0);
  std::vector<named_array> outputs = {{"y", empty}};
  CHECK_NOTHROW(kernel.launch({{"a", empty}, {"b", empty}}, outputs));
}

TEST_CASE("10000 MindSpore calls, each from a freshly opened library, leak nothing") {
  const sample s = sample_of("rms_norm");
  const slot_library adapters;
  const slot_for bound(adapters, s);
  const std::string& slot = bound.name;
  auto outputs = s.blank_outputs();
  check_no_leak([&](int) { mindspore_kernel(path, slot).launch(s.inputs, outputs); });
}

TEST_CASE("a forked child is refused its parent's context") {
  const slot_library adapters;
  velo_context context = nullptr;
  REQUIRE(adapters.function<decltype(velo_adapters_context)>("velo_adapters_context")(&context) ==
          VELO_OK);
  log_sink log(adapters);
  const sample s = sample_of("add");
  const int answer = velo::testing::in_child([&] {
    auto outputs = s.blank_outputs();
    try {
      mindspore_kernel(path, "velo_ms_add").launch(s.inputs, outputs);
    } catch (const host_error& error) {
      return std::string(error.what()).find("fork") != std::string::npos ? 7 : 8;
    }
    return 9;
  });
  CHECK(answer == 7);
}

TEST_CASE("the host's own context is used while it is set") {
  const slot_library adapters;
  const auto set =
      adapters.function<decltype(velo_adapters_set_context)>("velo_adapters_set_context");
  const auto get = adapters.function<decltype(velo_adapters_context)>("velo_adapters_context");
  velo_context mine = nullptr, used = nullptr;
  REQUIRE(velo_context_create(nullptr, &mine) == VELO_OK);
  REQUIRE(set(mine) == VELO_OK);
  CHECK(get(&used) == VELO_OK);
  CHECK(used == mine);
  const sample s = sample_of("add");
  auto outputs = s.blank_outputs();
  mindspore_kernel(path, "velo_ms_add").launch(s.inputs, outputs);
  velo_context_stats stats = VELO_CONTEXT_STATS_INIT;
  CHECK(velo_context_get_stats(mine, &stats) == VELO_OK);
  CHECK(stats.operator_calls == 1);
  REQUIRE(set(nullptr) == VELO_OK);
  CHECK(get(&used) == VELO_OK);
  CHECK(used != mine);
  velo_context_destroy(mine);
}
