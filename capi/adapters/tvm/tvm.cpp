// tvm-ffi's packed convention: __tvm_ffi_velo_<op>(self, args, n, result), found by
// tvm_ffi.load_module("libvelo_adapters.so").velo_rms_norm in Python and by every other language
// tvm-ffi serves.
//
// - arguments are the operator's fields in order, tensors first, then attributes:
//   velo_rms_norm(x, gamma, y, rstd, epsilon). None leaves a field out (at its default); trailing
//   ones may be left off. Outputs are the caller's tensors, written in place; so are tensors that
//   are read and written.
// - a tensor is a DLTensor* or a tensor object: any strides, on the CPU; whatever an operator does
//   not take it refuses by name. Nothing is copied.
// - a list of tensors is an Array of them.
// - an attribute is an integer, a real, a boolean (of a flag alone), or a string for an enumerator
//   or a text; a list of integers is a Shape, an Array of integers, or a one-dimensional compact
//   int64 tensor; a handle is an opaque pointer or its number.
// - the result is None. Failures are raised through TVMFFIErrorSetRaisedFromCStr, looked for in the
//   process when the first one happens: TypeError for dtypes and kinds, ValueError for values and
//   shapes, RuntimeError else; without tvm-ffi in the process the entry returns -1 and logs.
//
// Thread class: any; calls take turns on the context (velo_adapters_set_context).
#include <dlfcn.h>

#include "capi/adapters/call.hpp"
#include "capi/adapters/entries.hpp"
#include "capi/adapters/failure.hpp"
#include "capi/adapters/host_context.hpp"
#include "capi/adapters/tvm/abi.hpp"

namespace velo::adapters {
namespace {

using raise_fn = void (*)(const char* kind, const char* message);

raise_fn find_raise() {
  constexpr const char* symbol = "TVMFFIErrorSetRaisedFromCStr";
  void* found = dlsym(RTLD_DEFAULT, symbol);
  if (found == nullptr) {
    if (void* library = dlopen("libtvm_ffi.so", RTLD_NOLOAD | RTLD_LAZY)) {
      found = dlsym(library, symbol);
      dlclose(library);  // the count of the host's own reference is left as it was
    }
  }
  return reinterpret_cast<raise_fn>(found);
}

const char* error_kind(velo_status code) {
  switch (code) {
    case VELO_ERR_DTYPE:
      return "TypeError";
    case VELO_ERR_NULL:
    case VELO_ERR_ARGUMENT:
    case VELO_ERR_RANK:
    case VELO_ERR_SHAPE:
    case VELO_ERR_LAYOUT:
    case VELO_ERR_OVERLAP:
    case VELO_ERR_DEVICE:
      return "ValueError";
    default:
      return "RuntimeError";
  }
}

// Lists that have to be copied out of an array of tagged values.
struct gathered {
  static constexpr std::int64_t room = 4096;
  std::int64_t used = 0;
  int tensors_used = 0;
  std::int64_t numbers[room];
  velo_tensor tensors[max_buffers];
};

const velo_tensor* tensor_in(const tvm::value& given) {
  if (given.type == tvm::type_dl_tensor) return static_cast<const velo_tensor*>(given.pointer);
  if (given.type == tvm::type_tensor) return &tvm::content_of<velo_tensor>(given.pointer);
  return nullptr;
}

void put_tensors(call& made, int f, const tvm::sequence& items, gathered& lists) {
  if (items.size > max_buffers - lists.tensors_used)
    refuse(VELO_ERR_ARGUMENT, "%s: expected at most %d tensors in Arrays, got more",
           made.at(f).name, max_buffers);
  velo_tensor* first = lists.tensors + lists.tensors_used;
  for (std::int64_t i = 0; i < items.size; ++i) {
    const velo_tensor* view = tensor_in(items.data[i]);
    if (view == nullptr)
      refuse(VELO_ERR_ARGUMENT, "%s: expected tensors, got tvm-ffi type %d in place %lld",
             made.at(f).name, items.data[i].type, static_cast<long long>(i));
    first[i] = *view;
  }
  lists.tensors_used += static_cast<int>(items.size);
  made.tensors(f, first, items.size);
}

void put_array(call& made, int f, const tvm::sequence& items, gathered& lists) {
  if (made.at(f).kind == field_kind::tensors) return put_tensors(made, f, items, lists);
  if (items.size > gathered::room - lists.used)
    refuse(VELO_ERR_ARGUMENT,
           "%s: expected at most %lld integers in an Array (a Shape may be longer)",
           made.at(f).name, static_cast<long long>(gathered::room));
  std::int64_t* first = lists.numbers + lists.used;
  for (std::int64_t i = 0; i < items.size; ++i) {
    if (items.data[i].type != tvm::type_int)
      refuse(VELO_ERR_ARGUMENT, "%s: expected integers, got tvm-ffi type %d in place %lld",
             made.at(f).name, items.data[i].type, static_cast<long long>(i));
    first[i] = items.data[i].integer;
  }
  lists.used += items.size;
  made.list(f, first, items.size);
}

void put_tensor(call& made, int f, const velo_tensor& view) {
  const bool compact_list = made.at(f).kind == field_kind::ints && view.ndim == 1 &&
                            view.device.type == VELO_DEVICE_CPU &&
                            view.dtype.code == VELO_DTYPE_INT && view.dtype.bits == 64 &&
                            (view.strides == nullptr || view.strides[0] == 1 || view.shape[0] < 2);
  if (!compact_list) return made.tensor(f, view);
  const char* data = static_cast<const char*>(view.data) + view.byte_offset;
  made.list(f, reinterpret_cast<const std::int64_t*>(data), view.shape[0]);
}

void put(call& made, int f, const tvm::value& given, gathered& lists) {
  switch (given.type) {
    case tvm::type_none:
      return;
    case tvm::type_int:
      return made.integer(f, given.integer);
    case tvm::type_bool:
      return made.boolean(f, given.integer != 0);
    case tvm::type_float:
      return made.real(f, given.real);
    case tvm::type_opaque_pointer:
      return made.pointer(f, given.pointer);
    case tvm::type_dl_tensor:
    case tvm::type_tensor:
      return put_tensor(made, f, *tensor_in(given));
    case tvm::type_raw_string:
      return made.string(f, given.string);
    case tvm::type_small_string:
      return made.string(f, {given.small, given.small_length});
    case tvm::type_string: {
      const tvm::bytes& text = tvm::content_of<tvm::bytes>(given.pointer);
      return made.string(f, {text.data, text.size});
    }
    case tvm::type_shape: {
      const tvm::shape& list = tvm::content_of<tvm::shape>(given.pointer);
      return made.list(f, list.data, static_cast<std::int64_t>(list.size));
    }
    case tvm::type_array:
      return put_array(made, f, tvm::content_of<tvm::sequence>(given.pointer), lists);
    default:
      refuse(VELO_ERR_ARGUMENT,
             "%s: expected a tensor, number, string, Shape or None, got tvm-ffi type %d",
             made.at(f).name, given.type);
  }
}

void run(const op_info& op, const tvm::value* args, int count) {
  if (count < 0 || count > op.field_count)
    refuse(VELO_ERR_ARGUMENT, "arguments: expected at most %d, the fields of %s in order, got %d",
           op.field_count, op.name, count);
  call made(op);
  gathered lists;
  for (int f = 0; f < count; ++f) put(made, f, args[f], lists);
  made.run(default_stream());
}

}  // namespace

int enter_tvm(int op, const void* args, std::int32_t count) noexcept {
  refusal failed;
  const auto body = [&] { run(operators[op], static_cast<const tvm::value*>(args), count); };
  if (attempt({"velo_", operators[op].name}, failed, body) == VELO_OK) return 0;
  if (const raise_fn raise = find_raise())
    raise(error_kind(failed.code), failed.text);
  else
    log_failure("tvm-ffi", failed);
  return -1;
}

}  // namespace velo::adapters
