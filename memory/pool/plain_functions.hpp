// A pool behind two plain function pointers, for hosts whose allocators have no user pointer:
//
//   void* allocate(int64_t bytes, int32_t device, void* stream)
//   void deallocate(void* memory, int64_t bytes, int32_t device, void* stream)
//
// Each is made for one pool at run time, or is one of the functions compiled for the purpose. It
// must not move. It ends with its pool: a closed pool ends with its last block. Cost of a call: the
// pool's, and a pass through libffi.
#pragma once

#include "core/invoke.hpp"

namespace velo::memory {

class pool;

class plain_functions {
 public:
  explicit plain_functions(pool& of);  // throws UNSUPPORTED, MEMORY

  void* allocate() const noexcept { return allocate_.address(); }
  void* deallocate() const noexcept { return deallocate_.address(); }

 private:
  core::made_function allocate_, deallocate_;
};

}  // namespace velo::memory
