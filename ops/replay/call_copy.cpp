// Copies of tensors, and the descriptors that refer to them.
#include "ops/replay/call_copy.hpp"

#include <cstring>

#include "core/tensor/overlap.hpp"

namespace velo::ops {

call_copy::call_copy(const op_spec& spec, const void* args, core::arena& memory, holding what) {
  std::memcpy(&block_, args, spec.struct_size);
  std::size_t tensors = 0;
  for (int i = 0; i < spec.field_count; ++i) {
    const args_block::field_value& value = block_.values[i];
    if (value.pointer == nullptr) continue;
    if (spec.fields[i].kind == field_kind::tensor) ++tensors;
    if (spec.fields[i].kind == field_kind::tensors)
      tensors += static_cast<std::size_t>(value.tensors->count);
  }
  tensors_.reserve(tensors);
  lists_.reserve(static_cast<std::size_t>(spec.field_count));
  for_each_tensor(spec, args, [&](const velo_tensor& t, int field, std::int64_t) {
    if (what == holding::all || spec.fields[field].output) add(t, memory);
  });
  for (int i = 0; i < spec.field_count; ++i) {
    args_block::field_value& value = block_.values[i];
    if (value.pointer == nullptr) continue;
    if (spec.fields[i].kind == field_kind::tensor) value.tensor = redirected(*value.tensor);
    if (spec.fields[i].kind == field_kind::tensors) value.tensors = redirected(*value.tensors);
  }
}

void call_copy::add(const velo_tensor& t, core::arena& memory) {
  const std::uintptr_t begin = core::first_byte(t);
  const std::uintptr_t bytes = core::bytes_reached(t, numel(t));
  char* copy = memory.take<char>(bytes);
  std::memcpy(copy, data<const char>(&t), bytes);
  copied_.push_back({begin, begin + bytes, copy});
}

void call_copy::redirect(velo_tensor& t) const {
  if (core::is_empty(t)) return;
  const std::uintptr_t begin = core::first_byte(t);
  const std::uintptr_t end = begin + core::bytes_reached(t, numel(t));
  for (const extent& whole : copied_) {
    if (begin < whole.begin || end > whole.end) continue;
    t.data = whole.copy + (begin - whole.begin);
    t.byte_offset = 0;
    return;
  }
}

const velo_tensor* call_copy::redirected(const velo_tensor& t) {
  tensors_.push_back(t);
  redirect(tensors_.back());
  return &tensors_.back();
}

const velo_tensors* call_copy::redirected(const velo_tensors& list) {
  const std::size_t first = tensors_.size();
  for (std::int64_t k = 0; k < list.count; ++k) redirected(list.data[k]);
  lists_.push_back(list);
  lists_.back().data = tensors_.data() + first;
  return &lists_.back();
}

}  // namespace velo::ops
