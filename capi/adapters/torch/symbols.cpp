// Names of torch's functions, and the search for them; see torch_abi.hpp.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

#include "capi/adapters/failure.hpp"
#include "capi/adapters/torch/abi.hpp"

namespace velo::adapters::torch {
namespace {

struct symbol {
  const char* name;
  std::size_t at;
  bool needed;
};

constexpr symbol symbols[] = {
    {"aoti_torch_library_init_fragment", offsetof(functions, library_init_fragment), true},
    {"aoti_torch_library_init_impl", offsetof(functions, library_init_impl), true},
    {"aoti_torch_library_def", offsetof(functions, library_def), true},
    {"aoti_torch_library_impl", offsetof(functions, library_impl), true},
    {"aoti_torch_delete_library_object", offsetof(functions, delete_library), true},
    {"aoti_torch_get_data_ptr", offsetof(functions, get_data), true},
    {"aoti_torch_get_dim", offsetof(functions, get_rank), true},
    {"aoti_torch_get_sizes", offsetof(functions, get_sizes), true},
    {"aoti_torch_get_strides", offsetof(functions, get_strides), true},
    {"aoti_torch_get_dtype", offsetof(functions, get_dtype), true},
    {"aoti_torch_get_device_type", offsetof(functions, get_device), true},
    {"aoti_torch_empty_strided", offsetof(functions, empty_strided), true},
    {"aoti_torch_copy_", offsetof(functions, copy), true},
    {"aoti_torch_delete_tensor_object", offsetof(functions, delete_tensor), true},
    {"aoti_torch_grad_mode_is_enabled", offsetof(functions, records_gradients), true},
    {"aoti_torch_grad_mode_set_enabled", offsetof(functions, record_gradients), true},
    {"aoti_torch_device_type_cpu", offsetof(functions, device_cpu), true},
    {"aoti_torch_device_type_meta", offsetof(functions, device_meta), true},
    {"torch_library_impl", offsetof(functions, library_impl_for), false},
    {"torch_get_const_data_ptr", offsetof(functions, get_const_data), false},
    {"torch_list_size", offsetof(functions, list_size), false},
    {"torch_list_get_item", offsetof(functions, list_get), false},
    {"torch_delete_list", offsetof(functions, delete_list), false},
    {"torch_string_length", offsetof(functions, string_length), false},
    {"torch_string_c_str", offsetof(functions, string_data), false},
    {"torch_delete_string", offsetof(functions, delete_string), false},
    {"torch_parallel_for", offsetof(functions, parallel_for), false},
    {"torch_delete_stable_ivalue", offsetof(functions, delete_value), false},
    {"torch_exception_get_what_without_backtrace", offsetof(functions, last_error), false},
    {"aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu", offsetof(functions, attention),
     false},
    {"aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu_backward",
     offsetof(functions, attention_backward), false},
    {"_ZN2at15get_num_threadsEv", offsetof(functions, thread_count), true},
};

struct dtype_symbol {
  const char* name;
  velo_dtype dtype;
};

constexpr dtype_symbol dtype_symbols[dtype_count] = {
    {"aoti_torch_dtype_float32", {VELO_DTYPE_FLOAT, 32, 1}},
    {"aoti_torch_dtype_bfloat16", {VELO_DTYPE_BFLOAT, 16, 1}},
    {"aoti_torch_dtype_int64", {VELO_DTYPE_INT, 64, 1}},
    {"aoti_torch_dtype_int32", {VELO_DTYPE_INT, 32, 1}},
    {"aoti_torch_dtype_float64", {VELO_DTYPE_FLOAT, 64, 1}},
    {"aoti_torch_dtype_float16", {VELO_DTYPE_FLOAT, 16, 1}},
    {"aoti_torch_dtype_int8", {VELO_DTYPE_INT, 8, 1}},
    {"aoti_torch_dtype_int16", {VELO_DTYPE_INT, 16, 1}},
    {"aoti_torch_dtype_uint8", {VELO_DTYPE_UINT, 8, 1}},
    {"aoti_torch_dtype_uint16", {VELO_DTYPE_UINT, 16, 1}},
    {"aoti_torch_dtype_uint32", {VELO_DTYPE_UINT, 32, 1}},
    {"aoti_torch_dtype_bool", {VELO_DTYPE_BOOL, 8, 1}},
};

// The reference taken here stays, since the functions are called for as long as the process lives.
void* find_torch() {
  if (void* found = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY)) return found;
  refuse(VELO_ERR_UNSUPPORTED,
         "torch: expected torch 2.9 or later in the process (import it first), got none");
}

void* need(void* library, const char* name) {
  if (void* found = dlsym(library, name)) return found;
  refuse(VELO_ERR_UNSUPPORTED, "torch: expected torch 2.9 or later, got one without %s", name);
}

}  // namespace

binding find() {
  void* const library = find_torch();
  binding out{};
  out.abi_version = reinterpret_cast<std::uint64_t (*)()>(need(library, "aoti_torch_abi_version"));
  const std::uint64_t has = out.abi_version();
  if (has < oldest)
    refuse(VELO_ERR_UNSUPPORTED, "torch: expected torch 2.9 or later, got %u.%u",
           static_cast<unsigned>(has >> 56), static_cast<unsigned>(has >> 48 & 0xff));
  for (const symbol& s : symbols) {
    void* found = s.needed ? need(library, s.name) : dlsym(library, s.name);
    std::memcpy(reinterpret_cast<char*>(static_cast<functions*>(&out)) + s.at, &found,
                sizeof found);
  }
  out.cpu = out.device_cpu();
  out.meta = out.device_meta();
  for (int i = 0; i < dtype_count; ++i) {
    const dtype_symbol& d = dtype_symbols[i];
    out.dtypes[i] = {d.dtype, reinterpret_cast<std::int32_t (*)()>(need(library, d.name))()};
  }
  return out;
}

}  // namespace velo::adapters::torch
