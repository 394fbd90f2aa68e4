// XLA's FFI convention: XLA_FFI_Error* velo_xla_<op>(XLA_FFI_CallFrame*), registered from Python by
// jax.ffi.register_ffi_target("velo_rms_norm", jax.ffi.pycapsule(library.velo_xla_rms_norm),
// platform="cpu", api_version=1).
//
// - arguments are the operator's inputs, results its outputs, compact, in field order; which
//   optional ones are there follows from their numbers, or is named by the attribute
//   fields="x,gamma->y,rstd" (placement.hpp has the rule). Their shapes come from velo_op_infer.
// - attributes come by name and typed: any integer or real, a boolean for a flag, a string for an
//   enumerator or a text, an array of int32 or int64 for a list of integers, a handle as an int64
//   (a pack of any context; updates run on its own, so no call may use it meanwhile). A list of
//   tensors needs `fields`, which says its length. An attribute that is no field of the operator is
//   refused. Those left out keep their defaults.
// - a tensor that is read and written is an argument and a result; with jax's input_output_aliases
//   they share their buffer, else the argument is copied first. Nothing else is.
// - only the execute stage does anything. A metadata request is answered with version 0.1, the
//   oldest that suffices, and no traits.
// - a failure becomes an error of the frame's factory with velo's sentence: INVALID_ARGUMENT,
//   NOT_FOUND, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED or INTERNAL.
//
// Work runs on XLA's own threads (xla_threads.hpp), or on the context given by
// velo_adapters_set_context. Thread class: any; calls take turns on the context.
#include "capi/adapters/call.hpp"
#include "capi/adapters/entries.hpp"
#include "capi/adapters/failure.hpp"
#include "capi/adapters/placement.hpp"
#include "capi/adapters/xla/abi.hpp"
#include "capi/adapters/xla/threads.hpp"

namespace velo::adapters {
namespace {

constexpr std::int32_t oldest_major = 0, oldest_minor = 1;

// True when the frame is a request for metadata, which is then answered as far as its sizes say.
bool answer_metadata(const xla::call_frame& frame) {
  for (const xla::extension* e = frame.extensions; e != nullptr; e = e->next) {
    if (e->type != xla::extension_metadata) continue;
    xla::metadata* answer = reinterpret_cast<const xla::metadata_extension*>(e)->answer;
    constexpr std::size_t version_end = offsetof(xla::metadata, version) + sizeof(xla::api_version);
    constexpr std::size_t traits_end = offsetof(xla::metadata, traits) + sizeof answer->traits;
    if (answer->struct_size >= version_end) {
      answer->version.major = oldest_major;
      answer->version.minor = oldest_minor;
    }
    if (answer->struct_size >= traits_end) answer->traits = 0;
    return true;
  }
  return false;
}

velo_dtype dtype_of(const char* list, std::int64_t index, std::int32_t type) {
  switch (type) {
    case xla::type_f32:
      return {VELO_DTYPE_FLOAT, 32, 1};
    case xla::type_bf16:
      return {VELO_DTYPE_BFLOAT, 16, 1};
    case xla::type_f64:
      return {VELO_DTYPE_FLOAT, 64, 1};
    case xla::type_f16:
      return {VELO_DTYPE_FLOAT, 16, 1};
    case xla::type_pred:
      return {VELO_DTYPE_BOOL, 8, 1};
    default:
      break;
  }
  const int bits = 8 << ((type - xla::type_s8) % 4);
  if (type >= xla::type_s8 && type <= xla::type_s64)
    return {VELO_DTYPE_INT, static_cast<std::uint8_t>(bits), 1};
  if (type >= xla::type_u8 && type <= xla::type_u64)
    return {VELO_DTYPE_UINT, static_cast<std::uint8_t>(bits), 1};
  refuse(VELO_ERR_DTYPE, "%s[%lld]: expected a dtype velo knows, got number %d of XLA's", list,
         static_cast<long long>(index), type);
}

void read_buffers(const char* name, const xla::buffer_list& list, velo_tensor* out) {
  for (std::int64_t i = 0; i < list.size; ++i) {
    if (list.types[i] != xla::item_buffer)
      refuse(VELO_ERR_ARGUMENT, "%s[%lld]: expected a buffer, got kind %d", name,
             static_cast<long long>(i), list.types[i]);
    const auto& given = *static_cast<const xla::buffer*>(list.items[i]);
    out[i] = {given.data,
              {VELO_DEVICE_CPU, 0},
              static_cast<std::int32_t>(given.rank),
              dtype_of(name, i, given.dtype),
              given.dims,
              nullptr,
              0};
  }
}

// Integers of any width; XLA aligns scalars to their size.
bool read_integer(std::int32_t type, const void* at, std::int64_t& out) {
  switch (type) {
    case xla::type_s8:
      out = std::int64_t{*static_cast<const std::int8_t*>(at)};
      return true;
    case xla::type_s16:
      out = *static_cast<const std::int16_t*>(at);
      return true;
    case xla::type_s32:
      out = *static_cast<const std::int32_t*>(at);
      return true;
    case xla::type_s64:
    case xla::type_u64:
      out = *static_cast<const std::int64_t*>(at);
      return true;
    case xla::type_u8:
      out = *static_cast<const std::uint8_t*>(at);
      return true;
    case xla::type_u16:
      out = *static_cast<const std::uint16_t*>(at);
      return true;
    case xla::type_u32:
      out = *static_cast<const std::uint32_t*>(at);
      return true;
    default:
      return false;
  }
}

void put_scalar(call& made, int f, const xla::scalar& given) {
  if (given.dtype == xla::type_pred) return made.boolean(f, *static_cast<const bool*>(given.value));
  std::int64_t number = 0;
  if (read_integer(given.dtype, given.value, number)) return made.integer(f, number);
  if (given.dtype == xla::type_f64) return made.real(f, *static_cast<const double*>(given.value));
  if (given.dtype == xla::type_f32)
    return made.real(f, static_cast<double>(*static_cast<const float*>(given.value)));
  refuse(VELO_ERR_ARGUMENT,
         "%s: expected an integer or a float32 or float64, got dtype %d of XLA's", made.at(f).name,
         given.dtype);
}

// Lists narrower than int64 are widened into room of the call.
struct widened {
  static constexpr std::size_t room = 4096;
  std::size_t used = 0;
  std::int64_t numbers[room];
};

void put_array(call& made, int f, const xla::array& given, widened& lists) {
  if (given.dtype == xla::type_s64)
    return made.list(f, static_cast<const std::int64_t*>(given.data),
                     static_cast<std::int64_t>(given.size));
  if (given.dtype != xla::type_s32 || given.size > widened::room - lists.used)
    refuse(VELO_ERR_ARGUMENT,
           "%s: expected int64, or at most %zu int32, got %zu of dtype %d of XLA's",
           made.at(f).name, widened::room, given.size, given.dtype);
  std::int64_t* first = lists.numbers + lists.used;
  for (std::size_t i = 0; i < given.size; ++i)
    first[i] = static_cast<const std::int32_t*>(given.data)[i];
  lists.used += given.size;
  made.list(f, first, static_cast<std::int64_t>(given.size));
}

// Returns the attribute `fields`, empty when there is none.
std::string_view put_attributes(call& made, const xla::attribute_list& list, widened& lists) {
  std::string_view fields;
  for (std::int64_t i = 0; i < list.size; ++i) {
    const std::string_view name(list.names[i]->text, list.names[i]->length);
    const void* item = list.items[i];
    if (name == "fields" && list.types[i] == xla::attribute_string) {
      const auto& text = *static_cast<const xla::byte_span*>(item);
      fields = {text.text, text.length};
      continue;
    }
    const int f = find_field(made.op(), name);
    if (f < 0)
      refuse(VELO_ERR_NOT_FOUND, "%.*s: expected attributes of %s", static_cast<int>(name.size()),
             name.data(), made.op().name);
    switch (list.types[i]) {
      case xla::attribute_scalar:
        put_scalar(made, f, *static_cast<const xla::scalar*>(item));
        break;
      case xla::attribute_array:
        put_array(made, f, *static_cast<const xla::array*>(item), lists);
        break;
      case xla::attribute_string: {
        const auto& text = *static_cast<const xla::byte_span*>(item);
        made.string(f, {text.text, text.length});
        break;
      }
      default:
        refuse(VELO_ERR_ARGUMENT, "%s: expected a number, string or array, got a dictionary",
               made.at(f).name);
    }
  }
  return fields;
}

void run(const op_info& op, const xla::call_frame& frame) {
  const long long tensors = frame.args.size + frame.rets.size;
  if (tensors > max_buffers)
    refuse(VELO_ERR_ARGUMENT, "tensors: expected at most %d, got %lld", max_buffers, tensors);
  call made(op);
  widened lists;
  const std::string_view fields = put_attributes(made, frame.attrs, lists);
  const int inputs = static_cast<int>(frame.args.size);
  const int outputs = static_cast<int>(frame.rets.size);
  const placement where =
      fields.empty() ? place_counted(op, inputs, outputs) : place_named(op, fields);
  if (where.input_count != inputs || where.output_count != outputs)
    refuse(VELO_ERR_ARGUMENT, "fields: expected names of %d inputs and %d outputs, got \"%.*s\"",
           inputs, outputs, static_cast<int>(fields.size()), fields.data());
  velo_tensor buffers[max_buffers];
  read_buffers("args", frame.args, buffers);
  read_buffers("rets", frame.rets, buffers + inputs);
  put_buffers(made, where, buffers);
  const xla_stream stream(frame);
  made.run(stream.get());
}

std::int32_t error_code(velo_status code) {
  constexpr std::int32_t invalid_argument = 3, not_found = 5, resource_exhausted = 8,
                         failed_precondition = 9, unimplemented = 12, internal = 13;
  switch (code) {
    case VELO_ERR_NOT_FOUND:
      return not_found;
    case VELO_ERR_UNSUPPORTED:
      return unimplemented;
    case VELO_ERR_STATE:
    case VELO_ERR_ABI:
      return failed_precondition;
    case VELO_ERR_FULL:
    case VELO_ERR_MEMORY:
      return resource_exhausted;
    default:
      return code < VELO_ERR_MEMORY ? invalid_argument : internal;
  }
}

}  // namespace

void* enter_xla(int op, void* call_frame) noexcept {
  const auto& frame = *static_cast<const xla::call_frame*>(call_frame);
  if (answer_metadata(frame)) return nullptr;
  refusal failed;
  const auto body = [&] {
    if (frame.struct_size < sizeof frame)
      refuse(VELO_ERR_ABI, "call frame: expected at least %zu bytes, got %zu", sizeof frame,
             frame.struct_size);
    if (frame.stage == xla::stage_execute) run(operators[op], frame);
  };
  if (attempt({"velo_xla_", operators[op].name}, failed, body) == VELO_OK) return nullptr;
  xla::error_create_args args = {sizeof args, nullptr, failed.text, error_code(failed.code)};
  return frame.api->error_create(&args);
}

}  // namespace velo::adapters
