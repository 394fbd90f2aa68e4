// The copies that follow a queued call in its block, and their size: descriptors in field order.
#include "ops/call/queued_call.hpp"

#include <cstring>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

std::size_t bytes_of_sizes(std::int64_t count) {
  return sizeof(std::int64_t) * static_cast<std::size_t>(count);
}

std::size_t bytes_of_tensor(const velo_tensor& t) {
  return sizeof t + 2 * bytes_of_sizes(t.ndim);
}

std::size_t in_words(std::size_t bytes) {
  return core::round_up(bytes, 8);
}

std::size_t bytes_behind(const field& f, const args_block::field_value& value) {
  if (value.pointer == nullptr) return 0;
  switch (f.kind) {
    case field_kind::tensor:
      return bytes_of_tensor(*value.tensor);
    case field_kind::tensors: {
      std::size_t all = sizeof(velo_tensors);
      for (std::int64_t i = 0; i < value.tensors->count; ++i)
        all += bytes_of_tensor(value.tensors->data[i]);
      return all;
    }
    case field_kind::ints:
      return sizeof(velo_ints) + bytes_of_sizes(value.ints->count);
    case field_kind::text:
      return in_words(std::strlen(value.text) + 1);
    default:
      return 0;
  }
}

// Allocates the memory after a call piece by piece; every piece is a multiple of eight bytes.
class piecewise {
 public:
  explicit piecewise(char* memory) : at_(memory) {}

  template <class T>
  T* copy(const T* from, std::int64_t count = 1) {
    if (from == nullptr || count == 0) return nullptr;
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(count);
    T* copied = static_cast<T*>(std::memcpy(static_cast<void*>(at_), from, bytes));
    at_ += in_words(bytes);
    return copied;
  }
  const velo_tensor* copy_tensor(const velo_tensor& from) { return complete(copy(&from)); }
  const velo_tensors* copy_tensors(const velo_tensors& from) {
    velo_tensors* to = copy(&from);
    velo_tensor* views = copy(from.data, from.count);
    for (std::int64_t i = 0; i < from.count; ++i) complete(views + i);
    to->data = views;
    return to;
  }
  const velo_ints* copy_ints(const velo_ints& from) {
    velo_ints* to = copy(&from);
    to->data = copy(from.data, from.count);
    return to;
  }

 private:
  // A copied view gets sizes and strides of its own.
  const velo_tensor* complete(velo_tensor* view) {
    view->shape = copy(view->shape, view->ndim);
    view->strides = copy(view->strides, view->ndim);
    return view;
  }

  char* at_;
};
static_assert(sizeof(velo_tensor) % 8 == 0 && sizeof(velo_ints) % 8 == 0);

}  // namespace

queued_call::queued_call(op_id op, const kernel_entry& kernel, const void* args,
                         const problem_storage& problem)
    : work(definition_of(op).waits != nullptr ? core::demand::waits : core::demand::computes),
      op_(op),
      kernel_(kernel) {
  const op_spec& spec = spec_of(op);
  function = spec.function;
  std::memcpy(&block_, args, spec.struct_size);
  std::memcpy(problem_.bytes, problem.bytes, definition_of(op).problem_bytes);
  problem_.writes = problem.writes;
  piecewise copies(reinterpret_cast<char*>(this + 1));
  for (int i = 0; i < spec.field_count; ++i) {
    args_block::field_value& value = block_.values[i];
    if (value.pointer == nullptr) continue;
    switch (spec.fields[i].kind) {
      case field_kind::tensor:
        value.tensor = copies.copy_tensor(*value.tensor);
        break;
      case field_kind::tensors:
        value.tensors = copies.copy_tensors(*value.tensors);
        break;
      case field_kind::ints:
        value.ints = copies.copy_ints(*value.ints);
        break;
      case field_kind::text:
        value.text =
            copies.copy(value.text, static_cast<std::int64_t>(std::strlen(value.text)) + 1);
        break;
      default:
        break;
    }
  }
}

core::work_ptr<queued_call> queued_call::make(core::stream& on, op_id op,
                                              const kernel_entry& kernel, const void* args,
                                              const problem_storage& problem) {
  const op_spec& spec = spec_of(op);
  std::size_t behind = 0;
  for (int i = 0; i < spec.field_count; ++i)
    behind += bytes_behind(spec.fields[i], values_of(args)[i]);
  return on.make_before<queued_call>(behind, op, kernel, args, problem);
}

void queued_call::run(core::execution& on) {
  const operator_def& def = definition_of(op_);
  if (how_ != observing::nothing) return run_observed(op_, kernel_, &block_, problem_, how_, on);
  if (problem_.writes || def.waits != nullptr)
    def.run(&block_, problem_.bytes, kernel_.kernels, on);
}

void queued_call::skip() noexcept {
  const operator_def& def = definition_of(op_);
  if (def.waits != nullptr) def.waits->drop(problem_.bytes);
}

}  // namespace velo::ops
