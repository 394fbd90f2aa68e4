// The life of a call: complete the args, check them, choose a kernel, run or queue it. It is the
// same for every operator.
//
// Order of checks: stream handle, struct size, fields one by one, the operator's own shapes and its
// outputs against them, overlap. Nothing is written before all have passed. A struct of this
// library's size is read in place; a shorter one is completed in a copy. Handles are resolved once,
// shapes are inferred once. Cost: an add of 64 elements takes 100 ns in all, inline (Zen 4,
// bench_call).
#pragma once

#include "core/context.hpp"
#include "ops/operator/args_block.hpp"
#include "ops/operator/registry.hpp"
#include "velo/introspect.h"
#include "velo/types.h"

namespace velo::core {
class stream;
}

namespace velo::ops {

// Fields that were given a value: bit i for field i.
using field_set = std::uint64_t;
static_assert(max_fields <= 64);

// The C entry of every operator: velo_<op>(stream, args).
velo_status call(op_id op, velo_stream stream, const void* args) noexcept;

// The steps of a call, for callers that start from names instead of a struct (by_name.cpp). `args`
// is a complete struct: an args_block, or the caller's own if it has the size of this library's.
void set_defaults(const op_spec& spec, args_block& block);
// Refuses unknown tails. Returns `args` itself, or `block`: a copy with defaults for missing
// fields.
const void* complete(const op_spec& spec, const void* args, args_block& block);

enum class purpose { run, shapes_only };  // shapes_only: data may be NULL, outputs absent
// kept: the outputs' shapes, one a field, or nullptr.
void check(op_id op, const void* args, const core::context& context, purpose why,
           problem_storage& problem, output_shape* kept);
// The checks that need the field table alone, for operators that are not in the registry.
void check_fields(const op_spec& spec, const void* args, const core::context& context, purpose why);
// Whether some output has elements.
bool check_overlap(const op_spec& spec, const void* args);

void execute(op_id op, const void* args, core::stream& stream);  // checks, chooses, runs or queues

// The records of a run besides its outputs: its time in the counters, an event of a profile, or the
// verdict of check mode, which stands alone.
enum class observing : std::uint8_t { nothing = 0, counts = 1, profiles = 2, checks = 4 };
constexpr bool has(observing all, observing one) {
  return (static_cast<int>(all) & static_cast<int>(one)) != 0;
}
// begin: ticks at the start of the call; 0: now.
void run_observed(op_id op, const kernel_entry& kernel, const void* args,
                  const problem_storage& problem, observing how, core::execution& on,
                  std::uint64_t begin = 0);

// The reason why kernel `index` of the operator does not serve, or nullptr when it does.
const char* refusal(op_id op, int index, const void* args, const problem_storage& problem,
                    const core::context& context);
// The first kernel that serves; -1 when none does.
int choose(op_id op, const void* args, const problem_storage& problem,
           const core::context& context);

}  // namespace velo::ops
