// The part of torch's stable C functions that the adapter calls, found by name in the process.
//
// Written from the published description of the ABI: tensors, lists and texts are handles, every
// argument on a kernel's stack is one 64-bit value, and a function answers 0 or an error. A value
// is a handle, an integer, a boolean, or the bits of a double; an optional one is NULL or the
// address of a value on torch's heap. Whoever takes a value from a stack owns what it refers to.
#pragma once

#include <cstdint>

#include "velo/types.h"

namespace velo::adapters::torch {

using value = std::uint64_t;
using error = std::int32_t;
using tensor = struct tensor_object*;
using library = struct library_object*;
using list = struct list_object*;
using string = struct string_object*;
using kernel = void (*)(value* stack, std::uint64_t arguments, std::uint64_t results);
using range = void (*)(std::int64_t begin, std::int64_t end, void* user);

// A version as torch counts it: major and minor in the two highest bytes.
constexpr std::uint64_t version(std::uint64_t major, std::uint64_t minor) {
  return major << 56 | minor << 48;
}
constexpr std::uint64_t oldest = version(2, 9);
constexpr std::uint64_t written_against = version(2, 15);

struct functions {
  std::uint64_t (*abi_version)();
  error (*library_init_fragment)(const char* ns, const char* file, std::uint32_t line, library*);
  error (*library_init_impl)(const char* ns, const char* key, const char* file, std::uint32_t line,
                             library*);
  error (*library_def)(library, const char* schema);
  error (*library_impl)(library, const char* name, kernel);
  error (*delete_library)(library);

  error (*get_data)(tensor, void**);
  error (*get_rank)(tensor, std::int64_t*);
  error (*get_sizes)(tensor, std::int64_t**);
  error (*get_strides)(tensor, std::int64_t**);
  error (*get_dtype)(tensor, std::int32_t*);
  error (*get_device)(tensor, std::int32_t*);
  error (*empty_strided)(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides,
                         std::int32_t dtype, std::int32_t device, std::int32_t device_index,
                         tensor*);
  error (*copy)(tensor to, tensor from, std::int32_t non_blocking);
  error (*delete_tensor)(tensor);
  bool (*records_gradients)();
  void (*record_gradients)(bool);
  std::int32_t (*device_cpu)();
  std::int32_t (*device_meta)();

  // Absent in the oldest torch that works: 2.10 brought lists, texts and threads, 2.13 the rest.
  error (*library_impl_for)(library, const char* name, kernel, std::uint64_t version);
  error (*get_const_data)(tensor, const void**);
  error (*list_size)(list, std::size_t*);
  error (*list_get)(list, std::size_t, value*);
  error (*delete_list)(list);
  error (*string_length)(string, std::size_t*);
  error (*string_data)(string, const char**);
  error (*delete_string)(string);
  error (*parallel_for)(std::int64_t begin, std::int64_t end, std::int64_t grain, range,
                        void* user);
  error (*delete_value)(value*);
  const char* (*last_error)();

  // torch's own flash attention for the CPU, past the dispatcher; the oldest torch may lack it too.
  error (*attention)(tensor query, tensor key, tensor value, double dropout, std::int32_t causal,
                     tensor* mask, double* scale, tensor* out, tensor* logsumexp);
  error (*attention_backward)(tensor dy, tensor query, tensor key, tensor value, tensor out,
                              tensor logsumexp, double dropout, std::int32_t causal, tensor* mask,
                              double* scale, tensor* dquery, tensor* dkey, tensor* dvalue);

  int (*thread_count)();  // C++: at::get_num_threads()
};

// A dtype of velo's and what torch calls it; torch's numbers are asked for, not known.
struct dtype_pair {
  velo_dtype dtype;
  std::int32_t number;
};
constexpr int dtype_count = 12;

struct binding : functions {
  std::int32_t cpu, meta;
  dtype_pair dtypes[dtype_count];
};

// Throws UNSUPPORTED when the process has no torch, or an older one, or one that lacks a function.
binding find();

}  // namespace velo::adapters::torch
