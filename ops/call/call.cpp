// The life of a call (call.hpp): complete, check, choose, run or queue.
#include "ops/call/call.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "core/guard.hpp"
#include "core/handle.hpp"
#include "core/stream.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// A call on a queue stream: args, tensor descriptors and lists copied, tensor data not. The block's
// pointers are mended to point into the copies; the object must not move.
class queued_call final : public core::work {
 public:
  queued_call(op_id op, const candidate& chosen, const args_block& block)
      : chosen_(chosen),
        block_(block),
        tensors_(static_cast<std::size_t>(spec_of(op).field_count)),
        lists_(tensors_.size()) {
    const op_spec& spec = spec_of(op);
    function = spec.function;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      args_block::slot& slot = block_.slots[i];
      if (slot.pointer == nullptr) continue;
      if (spec.fields[i].kind == field_kind::tensor) {
        slot.tensor = tensors_[i].copy(*slot.tensor);
      } else if (spec.fields[i].kind == field_kind::ints) {
        slot.ints = lists_[i].copy(*slot.ints);
      }
    }
  }
  void run(core::execution& on) override { chosen_.run(&block_, on); }

 private:
  struct tensor_copy {
    velo_tensor tensor;
    std::int64_t shape[max_rank];
    std::int64_t strides[max_rank];
    const velo_tensor* copy(const velo_tensor& from) {
      tensor = from;
      const auto bytes = sizeof(std::int64_t) * static_cast<std::size_t>(from.ndim);
      if (from.shape != nullptr)
        tensor.shape = static_cast<std::int64_t*>(std::memcpy(shape, from.shape, bytes));
      if (from.strides != nullptr) {
        tensor.strides = static_cast<std::int64_t*>(std::memcpy(strides, from.strides, bytes));
      }
      return &tensor;
    }
  };
  struct list_copy {
    velo_ints list;
    std::vector<std::int64_t> numbers;
    const velo_ints* copy(const velo_ints& from) {
      numbers.assign(from.data, from.data + from.count);
      list = {numbers.data(), from.count};
      return &list;
    }
  };

  const candidate& chosen_;
  args_block block_;
  std::vector<tensor_copy> tensors_;
  std::vector<list_copy> lists_;
};

const char* refusal(const candidate& c, const args_block& block, const core::context& context) {
  if (c.device != context.device().type) return "serves another device";
  if (static_cast<int>(c.isa) > static_cast<int>(context.isa())) {
    return "needs an instruction set that the processor lacks or the configuration forbids";
  }
  return c.reject == nullptr ? nullptr : c.reject(&block);
}

}  // namespace

void set_defaults(const op_spec& spec, args_block& block) {
  block.struct_size = spec.struct_size;
  block.reserved = 0;
  for (int i = 0; i < spec.field_count; ++i) {
    const field& f = spec.fields[i];
    if (f.kind == field_kind::f64) {
      block.slots[i].f = f.default_real;
    } else {
      block.slots[i].i = f.default_int;  // zero, hence NULL, for tensors, packs and lists
    }
  }
}

void complete(const op_spec& spec, const void* args, args_block& block) {
  if (args == nullptr)
    fail(VELO_ERR_NULL, "args", "a pointer to the operator's args struct", "NULL");
  std::uint32_t size = 0;
  std::memcpy(&size, args, sizeof size);
  if (size < 8 || size > max_struct_size || size % 8 != 0) {
    fail(VELO_ERR_STRUCT, "args.struct_size",
         text("a multiple of 8 in [8, %u], usually sizeof(%s_args) = %u", max_struct_size,
              spec.function, spec.struct_size),
         text("%u", size));
  }
  set_defaults(spec, block);
  const auto* bytes = static_cast<const unsigned char*>(args);
  std::uint32_t known = size < spec.struct_size ? size : spec.struct_size;
  std::memcpy(block.slots, bytes + 8, known - 8);
  for (std::uint32_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      fail(VELO_ERR_UNSUPPORTED, "args.struct_size",
           text("at most %u bytes in use: this library knows no more fields", spec.struct_size),
           text("a value in byte %u, from newer headers", i));
    }
  }
}

choice choose(op_id op, const args_block& block, const core::context& context) {
  const operator_def& def = definition_of(op);
  choice made{-1, {}};
  const char* forced = context.forced_kernel(spec_of(op).name);
  const int last = def.candidate_count - 1;
  for (int i = 0; i <= last; ++i) {
    const candidate& c = def.candidates[i];
    if (forced != nullptr && forced[0] != 0 && std::strcmp(forced, c.name) != 0) {
      made.reasons[i] = "another kernel is forced by the configuration";
    } else if (context.optimization() == 0 && i != last) {
      made.reasons[i] = "optimization level 0 runs the reference";
    } else {
      made.reasons[i] = refusal(c, block, context);
    }
    if (made.reasons[i] == nullptr && made.chosen < 0) made.chosen = i;
  }
  return made;
}

void execute(op_id op, const args_block& block, velo_stream handle) {
  core::stream& stream = core::resolve<core::stream>(handle, "stream");
  const core::context& context = stream.owner();
  output_shapes outputs(spec_of(op));
  check(op, block, context, purpose::run, outputs);
  const choice made = choose(op, block, context);
  if (made.chosen < 0) {
    fail(VELO_ERR_UNSUPPORTED, "args",
         text("arguments the forced kernel of %s serves", spec_of(op).name),
         "no kernel accepts them; velo_op_explain lists the reasons");
  }
  const candidate& chosen = definition_of(op).candidates[made.chosen];
  if (stream.is_inline()) {
    stream.run_inline([&](core::execution& on) { chosen.run(&block, on); });
  } else {
    stream.enqueue(std::make_unique<queued_call>(op, chosen, block));
  }
}

velo_status call(op_id op, velo_stream stream, const void* args) noexcept {
  const op_spec& spec = spec_of(op);
  return core::guard(spec.function, [&] {
    (void)core::resolve<core::stream>(stream, "stream");
    args_block block;
    complete(spec, args, block);
    execute(op, block, stream);
  });
}

}  // namespace velo::ops
