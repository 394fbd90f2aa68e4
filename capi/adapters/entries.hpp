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

// torch's kernels carry no data of ours, so every operator has functions of its own: one for each
// overload, on the CPU and on meta tensors. What they throw is torch's to catch.
enum class torch_overload : int { plain, full, out };
void enter_torch(int op, torch_overload overload, bool meta, std::uint64_t* stack);

using torch_kernel = void (*)(std::uint64_t* stack, std::uint64_t arguments, std::uint64_t results);
struct torch_kernels {
  torch_kernel of[3][2];  // by overload, then CPU and meta
};

template <int op, torch_overload overload, bool meta>
void torch_entry(std::uint64_t* stack, std::uint64_t, std::uint64_t) {
  enter_torch(op, overload, meta, stack);
}

template <int op>
constexpr torch_kernels torch_kernels_of = {
    {{torch_entry<op, torch_overload::plain, false>, torch_entry<op, torch_overload::plain, true>},
     {torch_entry<op, torch_overload::full, false>, torch_entry<op, torch_overload::full, true>},
     {torch_entry<op, torch_overload::out, false>, torch_entry<op, torch_overload::out, true>}}};
extern const torch_kernels torch_entries[];  // by operator

}  // namespace velo::adapters
