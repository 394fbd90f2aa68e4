// One call of an operator under construction: host values go in field by field,
// velo_op_call runs it.
//
// Values are kept by kind only; what they mean together is velo's to check, so an adapter refuses
// nothing that velo would refuse itself. Tensors and lists are views of the host's memory; views
// live in this object, those of a list of tensors with the caller. Nothing is allocated but for
// texts of 64 characters and more. Cost of an entry over the call by struct: 110 ns
// (tvm-ffi, three tensors) to 135 ns (MindSpore), 70 of them the way by name.
#pragma once

#include <forward_list>
#include <string>
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
  void tensors(int f, const velo_tensor* views, std::int64_t count);
  void integer(int f, std::int64_t value);  // of a handle: as a number
  void boolean(int f, bool value);          // of a flag alone: elsewhere it is a slip of the caller
  void real(int f, double value);
  void string(int f, std::string_view value);  // a text or an enumerator, copied
  void list(int f, const std::int64_t* data, std::int64_t count);
  void pointer(int f, void* handle);

  bool truthy(int f) const;  // an integer other than 0 was given

  void run(velo_stream stream) const;  // throws velo's refusal
  // The outputs for the inputs, whose data are not looked at, into `shapes`, of room for
  // `capacity`; how many there are. Throws it, too.
  std::int64_t infer(velo_shape* shapes, std::int64_t capacity) const;

  // Both for who looks at the refusal first.
  velo_status attempt(velo_stream stream) const;
  velo_status infer(velo_context context, velo_shape* shapes, std::int64_t capacity,
                    std::int64_t& count) const;

 private:
  velo_value& value_of(int f);
  [[noreturn]] void wrong_kind(int f, const char* got) const;

  const op_info& op_;
  int count_ = 0;
  int index_[max_fields] = {};  // field -> 1 + position in values_
  velo_named_value values_[max_fields];
  velo_tensor tensors_[max_fields];
  union {
    velo_ints ints;
    velo_tensors tensors;
  } lists_[max_fields];
  int string_count_ = 0;
  char strings_[8][64];
  std::forward_list<std::string> long_strings_;
};

}  // namespace velo::adapters
