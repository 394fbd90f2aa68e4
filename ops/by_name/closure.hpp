// An operator as a C function pointer, for hosts that accept nothing else.
//
// The function's parameters are fields of the operator in an order that the caller chooses. A call
// fills an args struct from them and proceeds as every call does. The object must not move: the
// function holds its address. Cost of a call: the operator by struct and a pass through libffi,
// which a precompiled function saves.
#pragma once

#include "core/invoke.hpp"
#include "ops/by_name/callee.hpp"

namespace velo::ops {

class closure {
 public:
  // Throws NULL, NOT_FOUND (operator, field), ARGUMENT (a field twice), UNSUPPORTED (neither code
  // nor a precompiled function).
  closure(const core::context& context, velo_stream stream, const char* op, const char* fields);

  void* function() const { return code_.address(); }

 private:
  struct parameter_list {
    int count = 0;
    int fields[core::signature::max_parameters] = {};
    field_set given = 0;
  };
  static parameter_list read_parameters(const op_spec& spec, const char* fields);
  core::signature signature_of_parameters() const;
  static core::word enter(void* self, const core::word* words) noexcept;

  callee callee_;
  velo_stream stream_;
  parameter_list parameters_;
  core::made_function code_;
};

}  // namespace velo::ops

template <>
struct velo::core::handle_traits<velo::ops::closure> {
  using handle = velo_closure;
  static constexpr handle_kind& kind = kinds::closure;
};
