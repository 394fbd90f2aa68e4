// The functions behind all exported entries: every entry passes its operator's (or slot's) number
// to one of these.
#pragma once

#include <cstdint>
#include <utility>

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
// Makes a std::vector of sizes at `result`, or of such vectors where the slot has several outputs.
void* infer_mindspore_slot(int slot, void* result, int* ndims, std::int64_t** shapes) noexcept;

void* enter_xla(int op, void* call_frame) noexcept;  // NULL or an XLA_FFI_Error

int enter_tvm(int op, const void* args, std::int32_t count) noexcept;

// torch's kernels carry no data of ours, so every operator has functions of its own: one for each
// overload under each dispatch key. What they throw is torch's to catch.
enum class torch_overload : int { plain, full, out };
enum class torch_key : int { cpu, meta, negative };
void enter_torch(int op, torch_overload overload, torch_key key, std::uint64_t* stack);

using torch_kernel = void (*)(std::uint64_t* stack, std::uint64_t arguments, std::uint64_t results);
constexpr int torch_overload_count = 3, torch_key_count = 3;
struct torch_kernels {
  torch_kernel of[torch_overload_count * torch_key_count];  // by overload, then key
};

template <int op, torch_overload overload, torch_key key>
void torch_entry(std::uint64_t* stack, std::uint64_t, std::uint64_t) {
  enter_torch(op, overload, key, stack);
}

template <int op, int... each>
constexpr torch_kernels list_torch_kernels(std::integer_sequence<int, each...>) {
  return {{torch_entry<op, torch_overload{each / torch_key_count},
                       torch_key{each % torch_key_count}>...}};
}
template <int op>
constexpr torch_kernels torch_kernels_of = list_torch_kernels<op>(
    std::make_integer_sequence<int, torch_overload_count * torch_key_count>());
extern const torch_kernels torch_entries[];  // by operator

}  // namespace velo::adapters
