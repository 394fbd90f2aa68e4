// MindSpore's AOT convention, ops.Custom("libvelo_adapters.so:velo_ms_rms_norm", .., "aot").
//
//   int velo_ms_<op>(int nparam, void** params, int* ndims, int64_t** shapes,
//                    const char** dtypes, void* stream, void* extra)
//
// - params are the operator's inputs, then its outputs, compact, in field order. Which optional
//   ones are there follows from their number, or is named (placement.hpp has the rule). Shapes
//   and dtypes of outputs come from velo_ms_slot_infer in Python, and in graphs whose sizes change
//   shapes from velo_ms_slot_NNNInferShape (mindspore_shapes.cpp).
// - velo_ms_<op> runs with every attribute at its default. Attributes are bound before, on the same
//   file by ctypes: velo_ms_slot_bind(-1, "rms_norm", '{"epsilon": 1e-5}', &slot), then
//   ops.Custom("..:velo_ms_slot_%03d" % slot). A handle is passed as its number, a text as a
//   string; an operator with a list of tensors always needs a slot, whose `fields` says its length.
// - dtype names are the framework's; bfloat16 also as "BFloat16" and "bf16". Others are refused.
// - stream is NULL on the CPU, and anything else is refused. extra is never touched.
// - the result is 0 or a velo_status; the framework raises an exception that shows only the
//   number, so the whole sentence goes to the log and stays in velo_adapters_last_error.
//
// A call copies nothing, except where a tensor that is read and written comes as two buffers.
// Thread class: any; calls take turns on the context.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "capi/adapters/attributes.hpp"
#include "capi/adapters/entries.hpp"
#include "capi/adapters/failure.hpp"
#include "capi/adapters/fork_lock.hpp"
#include "capi/adapters/host_context.hpp"
#include "capi/adapters/mindspore/slots.hpp"
#include "capi/adapters/placement.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

struct named_dtype {
  const char* name;
  velo_dtype dtype;
};
constexpr named_dtype dtypes_by_name[] = {
    {"float32", {VELO_DTYPE_FLOAT, 32, 1}},   {"bfloat16", {VELO_DTYPE_BFLOAT, 16, 1}},
    {"BFloat16", {VELO_DTYPE_BFLOAT, 16, 1}}, {"bf16", {VELO_DTYPE_BFLOAT, 16, 1}},
    {"float64", {VELO_DTYPE_FLOAT, 64, 1}},   {"float16", {VELO_DTYPE_FLOAT, 16, 1}},
    {"int32", {VELO_DTYPE_INT, 32, 1}},       {"int64", {VELO_DTYPE_INT, 64, 1}},
    {"int16", {VELO_DTYPE_INT, 16, 1}},       {"int8", {VELO_DTYPE_INT, 8, 1}},
    {"uint8", {VELO_DTYPE_UINT, 8, 1}},       {"uint16", {VELO_DTYPE_UINT, 16, 1}},
    {"uint32", {VELO_DTYPE_UINT, 32, 1}},     {"uint64", {VELO_DTYPE_UINT, 64, 1}},
    {"bool", {VELO_DTYPE_BOOL, 8, 1}},
};

velo_dtype dtype_of(int index, const char* name) {
  if (name == nullptr)
    refuse(VELO_ERR_NULL, "dtypes[%d]: expected a dtype's name, got NULL", index);
  for (const named_dtype& known : dtypes_by_name) {
    if (std::strcmp(known.name, name) == 0) return known.dtype;
  }
  refuse(VELO_ERR_DTYPE,
         "dtypes[%d]: expected float32, bfloat16 or another dtype velo knows, got \"%.60s\"", index,
         name);
}

constexpr int slot_count = 512;

// Slots change by whole bindings; a call reads one pointer. Binding and releasing take turns, since
// a search for a binding looks into those of others.
std::atomic<slot_binding*> slots[slot_count];
fork_lock changing;

void run(const op_info& op, const attribute_set* attributes, const mindspore_call& given) {
  if (given.stream != nullptr)
    refuse(VELO_ERR_DEVICE, "stream: expected NULL (velo computes on the CPU), got %p",
           given.stream);
  if (given.count < 0 || given.count > max_buffers)
    refuse(VELO_ERR_ARGUMENT, "nparam: expected 0 to %d, got %d", max_buffers, given.count);
  call made(op);
  if (attributes != nullptr) attributes->put(made);
  const placement where = attributes != nullptr && !attributes->fields.empty()
                              ? place_named(op, attributes->fields)
                              : place_total(op, given.count);
  if (where.input_count + where.output_count != given.count)
    refuse(VELO_ERR_ARGUMENT, "nparam: expected the %d tensors of \"%s\", got %d",
           where.input_count + where.output_count, attributes->fields.c_str(), given.count);
  velo_tensor buffers[max_buffers];
  for (int i = 0; i < given.count; ++i) {
    buffers[i] = {given.params[i],
                  {VELO_DEVICE_CPU, 0},
                  given.ndims[i],
                  dtype_of(i, given.dtypes[i]),
                  given.shapes[i],
                  nullptr,
                  0};
  }
  put_buffers(made, where, buffers);
  made.run(default_stream());
}

int enter(const entry_name& entry, const op_info& op, const attribute_set* attributes,
          const mindspore_call& given) noexcept {
  refusal failed;
  if (attempt(entry, failed, [&] { run(op, attributes, given); }) == VELO_OK) return 0;
  log_failure("mindspore", failed);
  return failed.code;
}

void check_slot(int slot) {
  if (slot < 0 || slot >= slot_count)
    refuse(VELO_ERR_ARGUMENT, "slot: expected 0 to %d, got %d", slot_count - 1, slot);
}

int bind_any(std::unique_ptr<slot_binding>& made) {
  for (int i = 0; i < slot_count; ++i) {
    const slot_binding* there = slots[i].load();
    if (there != nullptr && there->op == made->op && there->json == made->json) return i;
  }
  for (int i = 0; i < slot_count; ++i) {
    if (slots[i].load() == nullptr) {
      slots[i] = made.release();  // the slot owns it now
      return i;
    }
  }
  refuse(VELO_ERR_STATE, "slot: expected a free one, got all %d bound", slot_count);
}

int bind(int slot, const char* op, const char* json) {
  if (op == nullptr) refuse(VELO_ERR_NULL, "op: expected an operator's name, got NULL");
  const op_info* found = find_operator(op);
  if (found == nullptr)
    refuse(VELO_ERR_NOT_FOUND, "op: expected an operator's name, got \"%.60s\"", op);
  std::unique_ptr<slot_binding> made(
      new slot_binding{found, json != nullptr ? json : "", read_attributes(*found, json)});
  if (!made->attributes.fields.empty()) place_named(*found, made->attributes.fields);
  const std::lock_guard<fork_lock> turn(changing);
  if (slot == -1) return bind_any(made);
  check_slot(slot);
  delete slots[slot].exchange(made.release());
  return slot;
}

}  // namespace

int enter_mindspore(int op, const mindspore_call& given) noexcept {
  return enter({"velo_ms_", operators[op].name}, operators[op], nullptr, given);
}

const slot_binding& bound_slot(int slot) {
  check_slot(slot);
  const slot_binding* bound = slots[slot].load();
  if (bound == nullptr)
    refuse(VELO_ERR_STATE, "slot: expected one bound by velo_ms_slot_bind, got a free one");
  return *bound;
}

int enter_mindspore_slot(int slot, const mindspore_call& given) noexcept {
  const slot_binding* bound = slots[slot].load();
  if (bound != nullptr)
    return enter({"velo_ms_slot_", bound->op->name, slot}, *bound->op, &bound->attributes, given);
  refusal failed;
  attempt({"velo_ms_slot_", "", slot}, failed, [&] { bound_slot(slot); });
  log_failure("mindspore", failed);
  return failed.code;
}

}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_ms_slot_bind(int32_t slot, const char* op, const char* attributes_json,
                              int32_t* chosen) {
  refusal failed;
  return attempt({"velo_ms_slot_bind"}, failed, [&] {
    const int bound = bind(slot, op, attributes_json);
    if (chosen != nullptr) *chosen = bound;
  });
}

velo_status velo_ms_slot_release(int32_t slot) {
  refusal failed;
  return attempt({"velo_ms_slot_release"}, failed, [&] {
    check_slot(slot);
    const std::lock_guard<fork_lock> turn(changing);
    delete slots[slot].exchange(nullptr);
  });
}
