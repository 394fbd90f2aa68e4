// Adds the kernels, which only the running library knows, to the generated JSON.
#include "ops/call/inspect.hpp"

#include "core/text/json_writer.hpp"
#include "ops/call/cost.hpp"
#include "ops/call/self_description.hpp"

namespace velo::ops {
namespace {

// Placeholders for required outputs that the caller left out. Kernels may read an output's layout
// to decide whether they serve.
class completed_outputs {
 public:
  completed_outputs(const op_spec& spec, const args_block& from, const output_shape* shapes,
                    velo_device device)
      : block(from) {
    for (int i = 0; i < spec.field_count; ++i) {
      const field& f = spec.fields[i];
      if (!f.output || f.optional || !shapes[i].set || block.values[i].tensor != nullptr) continue;
      // The shape is only read.
      auto* sizes = const_cast<std::int64_t*>(shapes[i].sizes);
      placeholders_[i] =
          velo_tensor{nullptr, device, shapes[i].rank, shapes[i].dtype, sizes, nullptr, 0};
      block.values[i].tensor = &placeholders_[i];
    }
  }
  args_block block;

 private:
  velo_tensor placeholders_[max_fields];
};

void write_cost(core::json_writer& to, const op_cost& cost, double seconds) {
  to.key("cost").object();
  to.member("flops", cost.flops).member("flops_visible", cost.flops_visible);
  to.member("bytes_read", cost.bytes_read).member("bytes_written", cost.bytes_written);
  to.member("seconds", seconds).end();
}

// An operator's entry with its kernels as a last member.
std::string with_kernels(std::string entry, op_id op) {
  entry.pop_back();
  entry += ",\"kernels\":";
  core::json_writer to(entry);
  to.array();
  const kernel_list& kernels = *definition_of(op).kernels;
  for (int i = 0; i < kernels.count; ++i) {
    const kernel_entry& kernel = kernels.entries[i];
    to.object().member("name", kernel.name).member("isa", core::isa_name(kernel.isa)).end();
  }
  to.end();
  return entry + "}";
}

}  // namespace

std::string describe_library() {
  const self_description document;
  std::string all = document.before_operators();
  for (int i = 0; i < op_count(); ++i) {
    if (i > 0) all += ",\n";
    const auto op = static_cast<op_id>(i);
    all += with_kernels(document.operator_entry(op), op);
  }
  return all + "\n]}\n";
}

std::string describe_op(op_id op) {
  return with_kernels(self_description().operator_entry(op), op);
}

std::string explain(op_id op, const args_block& block, const core::context& context) {
  output_shape shapes[max_fields];
  problem_storage problem;
  check(op, &block, context, purpose::shapes_only, problem, shapes);
  const completed_outputs completed(spec_of(op), block, shapes, context.device());
  const int chosen = choose(op, &completed.block, problem, context);
  const kernel_list& kernels = *definition_of(op).kernels;
  const op_cost cost = cost_of_checked(op, &block, problem, shapes);
  std::string all;
  core::json_writer to(all);
  to.array();
  for (int i = 0; i < kernels.count; ++i) {
    const char* reason = refusal(op, i, &completed.block, problem, context);
    if (i != chosen && reason == nullptr) reason = "an earlier kernel in this list is chosen";
    to.next_line(" ").object().member("name", kernels.entries[i].name);
    to.member("isa", core::isa_name(kernels.entries[i].isa)).member("chosen", i == chosen);
    to.member("reason", reason);
    if (i == chosen) write_cost(to, cost, least_seconds(cost, context));
    to.end();
  }
  to.end();
  return all;
}

}  // namespace velo::ops
