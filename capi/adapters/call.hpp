// One call of an operator under construction: host values go in field by field,
// velo_op_call runs it.
//
// Values are kept by kind only; what they mean together is velo's to check, so an adapter refuses
// nothing that velo would refuse itself. Tensors, lists and strings are views of the host's memory;
// views live in this object. Nothing is allocated. Cost of an entry over the call by struct: 110 ns
// (tvm-ffi, three tensors) to 135 ns (MindSpore), 70 of them the way by name.
#pragma once

#include <string_view>

#include "capi/adapters/operators.hpp"
#include "velo/introspect.h"
#include "velo/types.h"

namespace velo::adapters {

class call {
 public:
  explicit call(const op_info& op) : op_(op) {}
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  const op_info& op() const { return op_; }
  const field& at(int f) const { return op_.fields[f]; }

  void tensor(int f, const velo_tensor& view);
  void integer(int f, std::int64_t value);  // of a pack: its handle as a number
  void real(int f, double value);
  void string(int f, std::string_view value);  // copied, at most 63 characters
  void list(int f, const std::int64_t* data, std::int64_t count);
  void pointer(int f, void* handle);

  const velo_tensor* tensor_at(int f) const;  // nullptr when not given
  bool truthy(int f) const;                   // an integer other than 0 was given

  void run(velo_stream stream) const;  // throws velo's refusal

 private:
  velo_value& slot(int f);
  [[noreturn]] void wrong_kind(int f, const char* got) const;

  const op_info& op_;
  int count_ = 0;
  int index_[max_fields] = {};  // field -> 1 + position in values_
  velo_named_value values_[max_fields];
  velo_tensor tensors_[max_fields];
  velo_ints lists_[max_fields];
  int string_count_ = 0;
  char strings_[8][64];
};

}  // namespace velo::adapters
