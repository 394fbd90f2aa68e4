// The functions behind all exported entries: every entry passes its operator's (or slot's) number
// to one of these.
#pragma once

#include <cstdint>

namespace velo::adapters {

// A MindSpore AOT kernel's parameters, as the framework passes them.
struct mindspore_call {
  int count;
  void** params;
  int* ndims;
  std::int64_t** shapes;
  const char** dtypes;
  void* stream;
};
int enter_mindspore(int op, const mindspore_call& given) noexcept;
int enter_mindspore_slot(int slot, const mindspore_call& given) noexcept;

void* enter_xla(int op, void* call_frame) noexcept;  // NULL or an XLA_FFI_Error

int enter_tvm(int op, const void* args, std::int32_t count) noexcept;

}  // namespace velo::adapters
