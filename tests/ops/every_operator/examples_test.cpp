// The known results among the examples of abi/spec against the reference and the kernels of this
// machine, in float32 and in bfloat16, within the bounds of the spec. They have to depend on every
// attribute, so that an ignored attribute is noticed.
#include <string_view>

#include "tests/ops/every_operator/where_to_edit.hpp"
#include "tests/ops/example_call.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// Calls check(name, equal) for each element of a known result.
template <class Check>
void compare(example_call& call, const Check& check) {
  const bool mixed = call.is_mixed();
  for (const hosts::known_result& wanted : call.sample().known) {
    for (std::size_t t = 0; t < call.tensors(); ++t) {
      if (wanted.field != call.spec().fields[call.field(t)].name) continue;
      const hosts::array& got = call.memory(t);
      REQUIRE(wanted.values.size() == static_cast<std::size_t>(got.count()));
      const ops::error_bound bound = ops::bound_of(call.spec(), got.dtype, mixed);
      double largest = 0;
      for (const double exact : wanted.values) largest = std::max(largest, std::abs(exact));
      for (std::size_t i = 0; i < wanted.values.size(); ++i) {
        const double exact = wanted.values[i], value = element(got, i);
        check(wanted.field + "[" + std::to_string(i) + "]: " + std::to_string(value),
              std::abs(value - exact) <= ops::allowed_error(bound, exact, largest));
      }
    }
  }
}

// Whether some known result of the operator changes when the field is left out.
bool decides(const ops::op_spec& spec, int field, const session& s) {
  for (const hosts::sample& sample : hosts::samples(true)) {
    if (sample.op != spec.name || sample.known.empty()) continue;
    example_call call(sample);
    ops::args_block defaults;
    ops::set_defaults(spec, defaults);
    call.args.values[field] = defaults.values[field];
    if (call.run(s.stream()) != VELO_OK) return true;
    bool holds = true;
    compare(call, [&](const std::string&, bool one) { holds = holds && one; });
    if (!holds) return true;
  }
  return false;
}

// Fields that decide how an operator works, not what it computes, or that have one value; and what
// decides nothing where there is one rank.
bool is_tuning(const ops::op_spec& spec, const ops::field& field) {
  const std::string_view op = spec.name, name = field.name;
  const bool hint = name == "pre_tokens" || name == "next_tokens";
  const bool cut = name == "sequence_parallel" || name == "vocab_size" || name == "token_rows";
  if (op.substr(0, 24) == "vocab_parallel_embedding") return cut;
  const bool of_ranks = name == "rows" || name == "columns";
  const bool list = name == "rows" || name == "gather_rows" || name == "scatter_rows";
  return name == "parallel_num" || name == "q_scale" || name == "precise_mode" ||
         op == "sequence_all_to_all" || name == "kept" || name == "given" ||
         name == "inner_precise" || name == "row_invariant" || name == "shard_type" ||
         (hint && op.substr(0, 15) == "flash_attention") ||
         (of_ranks && op.find("_parallel_linear") != op.npos) ||
         (list && (op.find("all_gather_matmul") != op.npos || op == "matmul_reduce_scatter"));
}

}  // namespace

TEST_CASE("every operator gives the known results of its examples, at every level") {
  int known = 0;
  for (const char* level : {R"({"level": 0})", R"({"level": 2})"}) {
    session s(1, level);
    for (const hosts::sample& sample : hosts::samples(true)) {
      example_call call(sample);
      INFO(where_to_edit(sample.op) << "\n" << level << " " << sample.attributes_json());
      VELO_RUN(call.run(s.stream()));
      compare(call, [&](const std::string& what, bool holds) {
        INFO(what);
        CHECK(holds);
        ++known;
      });
    }
  }
  CHECK(known > 4 * ops::op_count());
}

TEST_CASE("a known result depends on each attribute and each optional input of its operator") {
  session s;
  for (int i = 0; i < ops::op_count(); ++i) {
    const ops::op_spec& spec = ops::spec_of(static_cast<ops::op_id>(i));
    if (hosts::takes_lists(spec.name)) continue;
    for (int f = 0; f < spec.field_count; ++f) {
      const ops::field& field = spec.fields[f];
      const bool tensor = field.kind == ops::field_kind::tensor;
      if (field.kind == ops::field_kind::handle || (tensor && (field.output || !field.optional)))
        continue;
      INFO(where_to_edit(spec) << "\nwhether an example with a known result decides "
                               << field.name);
      CHECK(decides(spec, f, s) != is_tuning(spec, field));
    }
  }
}
