// The life of a call: complete the args, check them, choose a kernel, run or queue it. The same for
// every operator.
//
// Order of checks: stream handle, struct size, fields one by one, the operator's own shapes,
// outputs against them, overlap. Nothing is written before all have passed. Cost: about 0.3 us for
// five tensors.
#pragma once

#include "core/context.hpp"
#include "ops/operator/registry.hpp"
#include "velo/types.h"

namespace velo::ops {

inline constexpr std::uint32_t max_struct_size = 4096;

// An args struct of any operator, completed with defaults: slot i holds field i.
struct args_block {
  std::uint32_t struct_size;
  std::uint32_t reserved;
  union slot {
    std::int64_t i;
    double f;
    const velo_tensor* tensor;
    const velo_ints* ints;
    velo_pack pack;
    const void* pointer;
  } slots[output_shapes::max_fields];
};

// Fields that were given a value: bit i for field i.
using field_set = std::uint64_t;
static_assert(output_shapes::max_fields <= 64);

// The C entry of every operator: velo_<op>(stream, args).
velo_status call(op_id op, velo_stream stream, const void* args) noexcept;

// Steps of it, for callers that start from names instead of a struct (by_name.cpp).
void set_defaults(const op_spec& spec, args_block& block);
void complete(const op_spec& spec, const void* args,
              args_block& block);         // copy, default, refuse unknown tails
enum class purpose { run, shapes_only };  // shapes_only: data may be NULL, outputs absent
void check(op_id op, const args_block& block, const core::context& context, purpose why,
           output_shapes& outputs);
// Parts of check that need the field table alone: for operators that are not in the registry.
void check_fields(const op_spec& spec, const args_block& block, const core::context& context,
                  purpose why);
void check_overlap(const op_spec& spec, const args_block& block);
void execute(op_id op, const args_block& block,
             velo_stream stream);  // checks, chooses and runs or queues

// Which candidate serves, and per candidate the reason why not (nullptr for the chosen one and for
// those not reached).
struct choice {
  int chosen;
  const char* reasons[16];
};
choice choose(op_id op, const args_block& block, const core::context& context);

}  // namespace velo::ops
