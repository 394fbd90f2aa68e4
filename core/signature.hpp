// The signatures of all exported functions at run time, for calls by name, the sweep over all
// functions, and the self-description. The generator fills the table from abi/spec
// (abi/generated/functions.inc).
//
// A function's address comes from the function table: `slot` is its byte offset in struct velo_api.
// The table is therefore constant-initialized, and calls by name take the same path as calls
// through the function table.
#pragma once

#include <cstdint>

namespace velo::core {

// How a parameter is passed, and which velo_value kind it takes.
enum class value_type : std::uint8_t {
  nothing,  // result only: void
  i32,      // INT, range-checked; also velo_status and enumerations
  u32,
  i64,
  u64,
  f64,
  string,  // STRING: const char*
  handle,  // HANDLE of the kind `type` names
  tensor,  // TENSOR: const velo_tensor*
  ints,    // INTS: const velo_ints*
  pointer  // POINTER: a struct, a buffer or an out-parameter
};

enum class direction : std::uint8_t { in, out, inout };

// any: from any thread at any time. per_handle: never two calls at once on one handle. per_stream:
// calls on one stream are serialized.
enum class thread_class : std::uint8_t { any, per_handle, per_stream, init };

struct parameter_info {
  const char* name;
  const char* type;  // as in C: "const velo_tensor*"
  value_type kind;
  direction dir;
  bool nullable;
  const char* ownership;  // borrow, copy, keep, own, take, static, buffer: see api.md
};

struct function_info {
  const char* name;  // "velo_rms_norm"
  value_type result;
  const parameter_info* parameters;
  int parameter_count;
  thread_class thread;
  bool blocking;        // may wait for other work
  std::uint32_t since;  // ABI that introduced it, major * 100 + minor
  std::uint32_t slot;   // byte offset in struct velo_api
};

}  // namespace velo::core
