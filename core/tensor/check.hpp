// The checks of a caller's tensor. The same mistake has the same code and the same text in an
// operator, a collective, a pack of weights and a bucket of gradients.
//
// A failure names the argument's member at fault, "args.gamma.strides". A tensor_path holds the
// parts of that name and joins them only for a failure, since that takes longer than the checks. No
// function here reads an element.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "core/tensor/dtype.hpp"
#include "core/tensor/shape.hpp"
#include "velo/types.h"

namespace velo::core {

// The argument as the caller spells it: "in", "args.gamma", or a tensor of a list,
// "args.params[3]". It is "" if the members are arguments of their own, "ndim".
struct tensor_path {
  tensor_path(const char* name) : name(name) {}
  tensor_path(const char* prefix, const char* name, std::int64_t index = -1)
      : prefix(prefix), name(name), index(index) {}
  text member(const char* part) const;  // ".dtype"

  const char* prefix = "";
  const char* name;
  std::int64_t index = -1;
};

// A value of tensor_rule::dtypes that accepts every type for which is_whole_bytes() is true.
inline constexpr std::uint32_t any_whole_bytes = ~std::uint32_t{0};

struct tensor_rule {
  velo_device device;        // of the context
  std::uint32_t dtypes = 0;  // dtype_bit; 0: all types that an operator takes
  bool strided = false;      // strides other than compact ones are accepted
  bool apart = false;        // strides must give each element its own bytes
  bool has_elements = true;  // data are read or written, so the pointer is checked
};

// Rank, dtype, device, sizes, strides, data. Throws VELO_ERR_RANK, NULL, DTYPE, DEVICE, SHAPE or
// LAYOUT.
void check_tensor(const velo_tensor& t, const tensor_path& path, const tensor_rule& rule);

// Whether check_tensor accepts the tensor, decided in a few comparisons for the usual tensor: up to
// four sizes below 2^14, no strides, one of four types. False decides nothing. check_tensor
// takes a tenth of a short call, so hot callers call this function first.
inline bool is_usual(const velo_tensor& t, const tensor_rule& rule) {
  if (t.ndim < 1 || t.ndim > 4 || t.shape == nullptr || t.strides != nullptr || t.data == nullptr)
    return false;
  const std::uint32_t bit = quick_dtype_bit(t.dtype);
  if (bit == 0 || (rule.dtypes != 0 && (bit & rule.dtypes) == 0)) return false;
  std::uint64_t sizes = 0;  // a negative one sets the highest bits
  for (int i = 0; i < t.ndim; ++i) sizes |= static_cast<std::uint64_t>(t.shape[i]);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
  return sizes >> 14 == 0 && t.device.type == rule.device.type && t.device.id == rule.device.id &&
         (address & (t.dtype.bits / 8u - 1)) == 0;
}

// Parts of check_tensor, for callers with rules of their own.
void check_rank(int ndim, const tensor_path& path);
void check_sizes(const velo_tensor& t, const tensor_path& path);  // rank and no size below 0
void check_dtype(velo_dtype given, const tensor_path& path, std::uint32_t accepted);
void check_device(velo_device given, velo_device wanted, const tensor_path& path);
void check_compact(const velo_tensor& t, const tensor_path& path);
void check_data(const velo_tensor& t, const tensor_path& path);  // of a tensor with elements

// Throws SHAPE for sizes that are not `countable`. argument: "args.x.shape".
[[noreturn]] void refuse_sizes(int rank, const std::int64_t* sizes, const char* argument);
[[noreturn]] void refuse_dtype(velo_dtype given, const char* expected, const tensor_path& path);

}  // namespace velo::core
