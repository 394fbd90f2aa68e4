// Every operator with every subset of its pointers left out: called by its C entry and by name,
// and in queries of shapes and of the kernel. Each returns a status that names an argument, and a
// refused call writes nothing.
#include <cstdlib>

#include "tests/ops/example_call.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

bool is_pointer(const ops::field& f) {
  return f.kind == ops::field_kind::tensor || f.kind == ops::field_kind::tensors ||
         f.kind == ops::field_kind::ints || f.kind == ops::field_kind::handle ||
         f.kind == ops::field_kind::text;
}

// The pointers that an example gives.
std::vector<int> given_pointers(const example_call& call) {
  std::vector<int> out;
  for (int i = 0; i < call.spec().field_count; ++i)
    if (is_pointer(call.spec().fields[i]) && call.args.values[i].pointer != nullptr)
      out.push_back(i);
  return out;
}

// A refusal names a field or, in a call by name, the named value.
void require_named(velo_status status) {
  if (status == VELO_OK) return;
  const std::string argument = last_record().argument;
  if (argument.rfind("args.", 0) == 0) return;
  INFO("status " << status << " names \"" << argument << "\"");
  FAIL("no argument is named");
}

// Calls an example without some of its pointers in each way.
void require_answers(example_call& call, const session& s, const std::vector<int>& missing) {
  const ops::args_block whole = call.args;
  bool lacks_required = false;
  for (const int i : missing) {
    lacks_required = lacks_required || !call.spec().fields[i].optional;
    call.args.values[i].pointer = nullptr;
  }
  call.reset();
  const auto untouched = call.result();
  const velo_status status = call.run(s.stream());
  require_named(status);
  if (lacks_required) REQUIRE(status == VELO_ERR_NULL);
  if (status != VELO_OK) REQUIRE(call.result() == untouched);

  const auto values = call.values(true);
  const auto count = static_cast<std::int64_t>(values.size());
  const char* name = call.spec().name;
  call.reset();
  REQUIRE(velo_op_call(s.stream(), name, values.data(), count) == status);
  velo_shape shapes[ops::max_fields];
  shapes[0].struct_size = sizeof(velo_shape);
  std::int64_t outputs = 0;
  const velo_status inferred =
      velo_op_infer(s.context(), name, values.data(), count, shapes, ops::max_fields, &outputs);
  require_named(inferred);
  char text[8192];
  const velo_status explained =
      velo_op_explain(s.context(), name, values.data(), count, text, sizeof text, nullptr);
  require_named(explained);
  REQUIRE(inferred == explained);
  if (status == VELO_OK) REQUIRE(inferred == VELO_OK);
  call.args = whole;
}

int count_of(std::uint64_t subset) {
  return __builtin_popcountll(subset);
}

}  // namespace

// With VELO_LIMITS every subset is missing, else of many pointers at most three.
TEST_CASE("every operator names an argument when any of its pointers are missing") {
  const bool tries_all = std::getenv("VELO_LIMITS") != nullptr;
  session s;
  int calls = 0;
  for (const hosts::sample& sample : hosts::samples(true)) {
    example_call call(sample);
    const std::vector<int> pointers = given_pointers(call);
    for (std::uint64_t subset = 0; subset < std::uint64_t{1} << pointers.size(); ++subset) {
      if (!tries_all && pointers.size() > 6 && count_of(subset) > 3) continue;
      std::vector<int> missing;
      std::string names;
      for (std::size_t p = 0; p < pointers.size(); ++p) {
        if ((subset >> p & 1) == 0) continue;
        missing.push_back(pointers[p]);
        names += std::string(" ") + call.spec().fields[pointers[p]].name;
      }
      INFO(sample.op << " without" << names);
      require_answers(call, s, missing);
      ++calls;
    }
  }
  CHECK(calls > 1000);
}
