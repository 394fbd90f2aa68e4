// Every operator through a host that plays torch, against the plain C API: overloads, ownership of
// whatever is on the stack, failures of torch's own functions, threads, forks, two velos.
//
// The program exists twice: beside a torch of today, and (VELO_TORCH_2_9) beside one that has no
// more functions than 2.9.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "leaks.hpp"
#include "library.hpp"
#include "second_copy.hpp"
#include "tests/child_process.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"
#include "torch_host.hpp"

using namespace hosts;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using velo::testing::context_desc;
using velo::testing::on_threads;
using values = std::map<std::string, torch::value>;

namespace {

#ifdef VELO_TORCH_2_9
constexpr bool newest = false;
#else
constexpr bool newest = true;
#endif

using torch_register = decltype(velo_torch_register);
using torch_context = decltype(velo_torch_context);

const library& adapters() {
  static const library opened(VELO_ADAPTERS, RTLD_NOW | RTLD_LOCAL);
  return opened;
}

velo_status register_operators() {
  return adapters().function<torch_register>("velo_torch_register")();
}

void ready() {
  REQUIRE(register_operators() == VELO_OK);
}

bool has(const std::vector<named_array>& arrays, const std::string& field) {
  for (const named_array& a : arrays) {
    if (a.field == field) return true;
  }
  return false;
}

bool has_operator(const std::string& name) {
  for (const std::string& one : torch::defined()) {
    if (one == name) return true;
  }
  return false;
}

torch::value number_of(const std::string& op, const attribute& a) {
  if (a.kind == VELO_VALUE_FLOAT) return a.real;
  if (a.kind == VELO_VALUE_INTS) return a.list;
  for (const field& f : fields_of(op)) {
    if (f.name == a.name && f.kind == "bool") return a.integer != 0;
  }
  return enumerator(op, a);
}

// A call of a sample: its arguments as torch's, and what the tensors it writes should become.
struct prepared {
  sample s;
  std::vector<named_array> tensors;  // inputs and, of .out, outputs
  values given;

  prepared(const sample& from, const std::string& overload) : s(from) {
    const std::string name = s.op + overload;
    tensors.reserve(s.inputs.size() + s.outputs.size());
    for (const named_array& in : s.inputs) tensors.push_back(in);
    if (overload == ".out") {
      for (const named_array& out : s.blank_outputs()) {
        if (!has(s.inputs, out.field)) tensors.push_back(out);
      }
    }
    for (const torch::argument& a : torch::schema_of(name).arguments) {
      for (named_array& t : tensors) {
        if (t.field == a.name) given[a.name] = t.data;
      }
      for (const attribute& each : s.attributes) {
        if (each.name == a.name) given[a.name] = number_of(s.op, each);
      }
      const bool handle_in_the_middle = a.type == "int" && !a.has_default;
      if (handle_in_the_middle) given[a.name] = std::int64_t{0};
    }
  }

  bool needs_lists() const {
    for (const auto& [name, v] : given) {
      if (v.is == torch::value::kind::ints) return true;
    }
    return false;
  }

  // The fields of an overload's results: outputs, all or the required ones.
  std::vector<named_array> expected_results(const std::string& overload) const {
    std::vector<named_array> out;
    const torch::schema schema = torch::schema_of(s.op + overload);
    for (const field& f : fields_of(s.op)) {
      if (!f.written || (f.optional && overload.empty())) continue;
      bool argument = false;
      for (const torch::argument& a : schema.arguments) argument = argument || a.name == f.name;
      for (const named_array& wanted : s.outputs) {
        if (!argument && wanted.field == f.name) out.push_back(wanted);
      }
    }
    return out;
  }

  void check_written() const {
    for (const named_array& t : tensors) {
      for (const named_array& wanted : s.outputs) {
        if (wanted.field == t.field && given.count(t.field) != 0)
          CHECK(t.data.bytes == wanted.data.bytes);
      }
    }
  }
};

// Functional overloads never add to an output.
bool accumulates(const sample& s) {
  for (const attribute& a : s.attributes) {
    if (a.name == "accumulate" && a.integer != 0) return true;
  }
  return false;
}

// Whether a sample without attributes lacks a list that the operator, and torch's schema, needs.
bool lacks_list(const sample& s) {
  for (const field& f : fields_of(s.op)) {
    bool there = f.kind != "ints" || f.optional;
    for (const attribute& a : s.attributes) there = there || a.name == f.name;
    if (!there) return true;
  }
  return false;
}

// Whether these inputs have every output, which the overload `full` returns.
bool has_all_outputs(const sample& s) {
  for (const field& f : fields_of(s.op)) {
    bool there = !f.written || f.read;
    for (const named_array& out : s.outputs) there = there || out.field == f.name;
    if (!there) return false;
  }
  return true;
}

std::string failure_of(const std::string& name, const values& given) {
  try {
    torch::call(name, given);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

void each_call(const std::function<void(prepared& call, const std::string& overload)>& body) {
  for (const bool with_attributes : {false, true}) {
    for (const sample& s : samples(with_attributes)) {
      if (lacks_list(s)) continue;
      for (const std::string overload : {"", ".full", ".out"}) {
        if (!has_operator(s.op + overload) || (overload != ".out" && accumulates(s))) continue;
        if (overload == ".full" && !has_all_outputs(s)) continue;
        INFO(s.op << overload << " " << s.attributes_json());
        prepared call(s, overload);
        if (newest || !call.needs_lists()) body(call, overload);
      }
    }
  }
}

// A call of rms_norm that succeeds, and its tensors.
struct norm {
  sample s = sample_of("rms_norm");
  array x = s.inputs[0].data, gamma = s.inputs[1].data, y = filled(x.dtype, x.shape, 0xcd);
  values given = {{"x", x}, {"gamma", gamma}, {"epsilon", number_of("rms_norm", s.attributes[0])}};
};

}  // namespace

TEST_CASE("registration that torch interrupts anywhere leaves nothing, and is done once") {
  if (torch::defined().empty()) {
    for (long n = 0;; ++n) {
      torch::fail_after(n);
      const velo_status status = register_operators();
      if (torch::calls_left() >= 0) break;
      REQUIRE(status == VELO_ERR_STATE);
      CHECK_THAT(last_error(adapters()), StartsWith("velo_torch_register: torch: expected it to"));
      REQUIRE(torch::defined().empty());
    }
    torch::fail_after(-1);
  }
  const auto before = torch::defined();
  CHECK(before.size() >= 2 * operator_names().size());
  ready();
  CHECK(torch::defined() == before);
}

TEST_CASE("schemas follow from the fields") {
  ready();
  const auto text = [](const char* name) { return torch::schema_of(name).text; };
  CHECK(text("rms_norm") == "rms_norm(Tensor x, Tensor gamma, float epsilon=1e-06) -> Tensor");
  CHECK(text("rms_norm.full") ==
        "rms_norm.full(Tensor x, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)");
  CHECK(text("rms_norm.out") ==
        "rms_norm.out(Tensor x, Tensor gamma, Tensor(a!) y, Tensor(b!)? rstd=None, float "
        "epsilon=1e-06) -> ()");
  CHECK(text("matmul") ==
        "matmul(Tensor a, Tensor? b=None, Tensor? bias=None, bool transpose_a=False, bool "
        "transpose_b=False, int dtype=0) -> Tensor");
  CHECK(text("matmul.out") ==
        "matmul.out(Tensor a, Tensor? b, int packed, Tensor? bias, Tensor(a!) c, bool "
        "transpose_a=False, bool transpose_b=False, bool accumulate=False, int dtype=0) -> ()");
  CHECK(text("matmul_add_fp32") ==
        "matmul_add_fp32(Tensor total_input, Tensor grad_output, Tensor(a!) grad) -> ()");
  CHECK_THAT(text("fusion_attention"), Contains("int[]? actual_seq_qlen=None"));
  CHECK_THAT(text("cross_entropy"), Contains("int ignore_index=-100, int reduction=1, Tensor?"));
  CHECK_FALSE(has_operator("matmul.full"));
  for (const std::string& op : operator_names()) {
    INFO(op);
    REQUIRE(has_operator(op));
    REQUIRE(has_operator(op + ".out"));
    CHECK(torch::schema_of(op + ".out").arguments.size() == fields_of(op).size());
  }
}

TEST_CASE(
    "every overload gives the plain call's bits, counts writes, gives torch everything back") {
  ready();
  each_call([](prepared& call, const std::string& overload) {
    const torch::books before = torch::count();
    const std::string name = call.s.op + overload;
    if (call.s.status == VELO_OK) {
      const long writes = torch::writes() + torch::writes_of(name, call.given);
      const auto results = torch::call(name, call.given);
      const auto wanted = call.expected_results(overload);
      REQUIRE(results.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(results[i].shape == wanted[i].data.shape);
        CHECK(results[i].bytes == wanted[i].data.bytes);
      }
      call.check_written();
      CHECK(torch::writes() == writes);
    } else if (overload == ".out") {  // functional ones make outputs that fit
      const std::string message = "velo::" + call.s.op + call.s.text.substr(call.s.text.find(": "));
      CHECK(failure_of(name, call.given) == message);
    }
    CHECK(torch::count() == before);
  });
}

TEST_CASE("on meta tensors there are shapes and nothing else") {
  ready();
  each_call([](prepared& call, const std::string& overload) {
    for (auto& [name, v] : call.given) v.meta = v.is == torch::value::kind::tensor;
    const auto untouched = call.tensors;
    const torch::books before = torch::count();
    if (call.s.status == VELO_OK) {
      const auto results = torch::call(call.s.op + overload, call.given);
      const auto wanted = call.expected_results(overload);
      REQUIRE(results.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(results[i].shape == wanted[i].data.shape);
        CHECK(results[i].bytes.empty());
      }
    }
    CHECK(same_bits(call.tensors, untouched));
    CHECK(torch::count() == before);
  });
  norm call;
  call.given["x"].meta = true;
  CHECK(failure_of("rms_norm", call.given) ==
        "velo::rms_norm: args.gamma.device: expected meta, as another tensor of the call has, got "
        "cpu");
}

TEST_CASE("inputs in a layout that an operator does not take are copied, what is written is not") {
  ready();
  norm call;
  const auto wanted = torch::call("rms_norm", call.given);
  array turned = call.x;  // the same numbers, columns first
  const auto rows = static_cast<std::size_t>(call.x.shape[0]),
             columns = static_cast<std::size_t>(call.x.shape[1]);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(&turned.bytes[4 * (c * rows + r)], &call.x.bytes[4 * (r * columns + c)], 4);
  }
  call.given["x"] = turned;
  call.given["x"].strides = {1, call.x.shape[0]};
  const long copies = torch::copies();
  const torch::books before = torch::count();
  const auto got = torch::call("rms_norm", call.given);
  CHECK((got[0].bytes == wanted[0].bytes && torch::copies() == copies + 1));
  CHECK(torch::recording());
  for (auto& [name, v] : call.given) v.meta = v.is == torch::value::kind::tensor;
  CHECK(torch::call("rms_norm", call.given)[0].shape == call.x.shape);
  norm written;
  written.given["y"] = written.y;
  written.given["y"].strides = {1, written.x.shape[0]};
  CHECK_THAT(failure_of("rms_norm.out", written.given), Contains("args.y.strides: expected"));
  CHECK(torch::copies() == copies + 1);
  CHECK(torch::count() == before);
}

TEST_CASE("mistakes of torch's users are refused with operator and argument") {
  ready();
  const torch::books before = torch::count();
  norm call;
  array cut = filled(call.gamma.dtype, {39}, 0), whole = filled(velo::testing::i32, {6, 40}, 0),
        complex = filled({5, 64, 1}, {6, 40}, 0);
  const auto with = [&](const char* name, torch::value v) {
    values given = norm().given;
    given = call.given;
    given[name] = std::move(v);
    return failure_of("rms_norm", given);
  };
  CHECK(with("gamma", cut) == "velo::rms_norm: args.gamma.shape: expected [40], got [39]");
  CHECK(with("x", whole) ==
        "velo::rms_norm: args.x.dtype: expected float32, bfloat16 or float16, got int32");
  CHECK(with("x", complex) ==
        "velo::rms_norm: args.x.dtype: expected a dtype velo knows, got number 9 of torch's");
  CHECK_THAT(with("epsilon", -1.0), StartsWith("velo::rms_norm: args.epsilon: expected"));
  call.given["y"] = call.y;
  call.given["x"].negative = true;
  CHECK_THAT(
      failure_of("rms_norm.out", call.given),
      StartsWith("velo::rms_norm: expected no negated view beside tensors that are written"));
  CHECK(last_error(adapters()) == failure_of("rms_norm.out", call.given));
  CHECK(torch::count() == before);
}

TEST_CASE("whichever function of torch's fails, the call is refused and everything given back") {
  ready();
  torch::set_threads(2);
  int failures = 0;
  const std::string reason =
      newest ? "got an error: reported by torch" : "got an error (it is on stderr)";
  each_call([&](prepared& call, const std::string& overload) {
    if (call.s.status != VELO_OK || call.s.inputs[0].data.dtype.bits != 32) return;
    for (long n = 0;; ++n) {
      const torch::books before = torch::count();
      torch::fail_after(n);
      const std::string message = failure_of(call.s.op + overload, call.given);
      const bool failed = torch::calls_left() < 0;
      torch::fail_after(-1);
      CHECK(torch::count() == before);
      CHECK((message == "none") == !failed);
      if (!failed) break;
      ++failures;
      CHECK_THAT(message, StartsWith("velo::" + call.s.op + ": ") &&
                              (Contains("torch_parallel_for failed") || Contains(reason)));
    }
  });
  CHECK(failures > 500);
  torch::set_threads(1);
}

TEST_CASE("a failing copy of an input gives everything back") {
  ready();
  for (long n = 0;; ++n) {
    norm call;
    call.given["x"].strides = {1, 6};
    const torch::books before = torch::count();
    torch::fail_after(n);
    const std::string message = failure_of("rms_norm.full", call.given);
    const bool failed = torch::calls_left() < 0;
    torch::fail_after(-1);
    CHECK(torch::count() == before);
    CHECK(torch::recording());
    CHECK((message == "none") == !failed);
    if (!failed) break;
  }
}

TEST_CASE(
    "large work runs on torch's threads, in as many pieces as torch has, with the same bits") {
  ready();
  array a = filled(velo::testing::f32, {512, 4096}, 0x3f), b = a;
  const auto run = [&](int threads) {
    torch::set_threads(threads);
    const auto made = torch::call("add", {{"a", a}, {"b", b}});
    torch::set_threads(1);
    return made[0].bytes;
  };
  const auto alone = run(1);
  const long before = torch::loops();
  CHECK(run(2) == alone);
  CHECK(run(5) == alone);
  const auto context = adapters().function<torch_context>("velo_torch_context");
  velo_context one = nullptr, three = nullptr;
  REQUIRE(context(&one) == VELO_OK);
  torch::set_threads(3);
  REQUIRE(context(&three) == VELO_OK);
  torch::set_threads(1);
  CHECK(context(nullptr) == VELO_ERR_NULL);
  CHECK((one == three) == newest);
  if (!newest) {
    CHECK(torch::loops() == before);
    return;
  }
  CHECK(torch::loops() > before);
}

TEST_CASE("the host's context goes before torch's threads") {
  ready();
  const velo_context_desc desc = context_desc(1);
  velo_context mine = nullptr, used = nullptr;
  REQUIRE(velo_context_create(&desc, &mine) == VELO_OK);
  const auto set =
      adapters().function<decltype(velo_adapters_set_context)>("velo_adapters_set_context");
  set(mine);
  CHECK(adapters().function<torch_context>("velo_torch_context")(&used) == VELO_OK);
  CHECK(used == mine);
  norm call;
  CHECK(torch::call("rms_norm", call.given).size() == 1);
  velo_context_destroy(mine);
  CHECK_THAT(failure_of("rms_norm", call.given), Contains("context"));
  set(nullptr);
  CHECK(torch::call("rms_norm", call.given).size() == 1);
}

TEST_CASE("kernels called from several threads take turns") {
  ready();
  const sample s = sample_of("matmul");
  const torch::books before = torch::count();
  std::atomic<int> wrong{0};
  on_threads(4, [&] {
    for (int i = 0; i < 50; ++i) {
      prepared call(s, "");
      const auto made = torch::call("matmul", call.given);
      if (made[0].bytes != s.outputs[0].data.bytes) ++wrong;
    }
  });
  CHECK(wrong == 0);
  CHECK(torch::count() == before);
}

TEST_CASE("a forked child is refused its parent's context, and can give its own") {
  ready();
  norm call;
  torch::call("rms_norm", call.given);
  const int failed = velo::testing::in_child([&] {
    const std::string message = failure_of("rms_norm", call.given);
    const velo_context_desc desc = context_desc(1);
    velo_context mine = nullptr;
    if (message.find("fork") == message.npos || velo_context_create(&desc, &mine) != VELO_OK)
      return 1;
    adapters().function<decltype(velo_adapters_set_context)>("velo_adapters_set_context")(mine);
    return failure_of("rms_norm", call.given) == "none" ? 0 : 2;
  });
  CHECK(failed == 0);
}

TEST_CASE("a second velo of the process is refused, the first goes on") {
  ready();
  const second_copy copy;
  const auto before = torch::defined();
  {
    const library second(copy.path(), RTLD_NOW | RTLD_LOCAL);
    const auto enter = second.function<torch_register>("velo_torch_register");
    CHECK(enter != adapters().function<torch_register>("velo_torch_register"));
    CHECK(enter() == VELO_ERR_STATE);
    CHECK_THAT(last_error(second), Contains("another copy of velo"));
    velo_context context = nullptr;
    CHECK(second.function<torch_context>("velo_torch_context")(&context) == VELO_ERR_STATE);
  }
  CHECK(torch::defined() == before);
  norm call;
  CHECK(torch::call("rms_norm", call.given)[0].bytes == call.s.outputs[0].data.bytes);
}

TEST_CASE("after dlclose kernels go on") {
  ready();
  { const library again(VELO_ADAPTERS, RTLD_NOW | RTLD_LOCAL); }
  dlclose(dlopen(VELO_ADAPTERS, RTLD_NOW | RTLD_NOLOAD));
  norm call;
  CHECK(torch::call("rms_norm", call.given)[0].bytes == call.s.outputs[0].data.bytes);
}

TEST_CASE("10000 calls from torch, failing ones among them, leak nothing") {
  ready();
  norm right, wrong;
  wrong.given["gamma"] = wrong.x;
  check_no_leak([&](int i) {
    if (i % 10 == 0)
      failure_of("rms_norm", wrong.given);
    else
      torch::call("rms_norm.full", right.given);
  });
}
