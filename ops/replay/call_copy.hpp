// A call's args on copies of the memory that it writes, so that another kernel can run on them.
//
// Every output is copied as it is before the call, with its gaps. An input that lies within an
// output, as of a call in place, lies within the copy too; other inputs stay where they are, since
// no kernel writes them, unless the copy is asked to hold every tensor. The copy of a copy is
// another call with the same inputs. Cost: the bytes of the tensors copied.
#pragma once

#include <cstdint>
#include <vector>

#include "core/host/arena.hpp"
#include "ops/operator/args_block.hpp"

namespace velo::ops {

class call_copy {
 public:
  enum class holding { outputs, all };

  // args: complete and checked; its descriptors and lists must outlive the copy. Throws
  // VELO_ERR_MEMORY.
  call_copy(const op_spec& spec, const void* args, core::arena& memory,
            holding what = holding::outputs);
  call_copy(const call_copy&) = delete;
  call_copy& operator=(const call_copy&) = delete;

  const void* args() const { return &block_; }

 private:
  struct extent {
    std::uintptr_t begin, end;
    char* copy;
  };
  void add(const velo_tensor& t, core::arena& memory);
  void redirect(velo_tensor& t) const;
  const velo_tensor* redirected(const velo_tensor& t);
  const velo_tensors* redirected(const velo_tensors& list);

  args_block block_;
  std::vector<extent> copied_;
  std::vector<velo_tensor> tensors_;  // reserved, so that their addresses stay
  std::vector<velo_tensors> lists_;
};

// A tensor of a call: that of a field, or of its list.
inline const velo_tensor& tensor_of(const void* args, int field, std::int64_t index) {
  const args_block::field_value& value = values_of(args)[field];
  return index < 0 ? *value.tensor : value.tensors->data[index];
}

// Calls body(tensor, field, index in its list or -1) for every tensor of a call that has elements.
template <class Body>
void for_each_tensor(const op_spec& spec, const void* args, Body&& body) {
  for (int i = 0; i < spec.field_count; ++i) {
    const args_block::field_value& value = values_of(args)[i];
    const field_kind kind = spec.fields[i].kind;
    if (value.pointer == nullptr) continue;
    if (kind == field_kind::tensor && !core::is_empty(*value.tensor))
      body(*value.tensor, i, std::int64_t{-1});
    if (kind != field_kind::tensors) continue;
    for (std::int64_t k = 0; k < value.tensors->count; ++k)
      if (!core::is_empty(value.tensors->data[k])) body(value.tensors->data[k], i, k);
  }
}

}  // namespace velo::ops
