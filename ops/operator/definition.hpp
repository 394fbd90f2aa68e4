// What an operator is made of: a rule for its shapes, and an ordered list of kernels.
//
// The spec says which fields an operator has; the operator adds `infer` (check the inputs against
// each other, say what each output must look like) and its candidates in order of preference, the
// double-accumulating reference last. Everything else - struct sizes, defaults, NULL, dtype,
// device, overlap, output shapes, choosing, explaining, queueing - is the same for all and lives in
// call.cpp and check.cpp. Invariant: when a kernel runs, every check has passed.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"
#include "core/execution.hpp"
#include "ops/operator/spec.hpp"
#include "ops/operator/tensor.hpp"
#include "velo/introspect.h"
#include "velo/status.h"

namespace velo::ops {

// What `infer` fills: shape and dtype of each output field. An output it leaves unset is not
// produced for these inputs.
class output_shapes {
 public:
  struct shape {
    bool set = false;
    int rank = 0;
    std::int64_t sizes[max_rank] = {};
    velo_dtype dtype = f32;
  };
  static constexpr int max_fields = 48;

  explicit output_shapes(const op_spec& spec) : spec_(spec) {}

  void set(const char* field, velo_dtype dtype, int rank, const std::int64_t* sizes);
  void like(const char* field, const velo_tensor& model) {
    set(field, model.dtype, model.ndim, model.shape);
  }
  void like(const char* field, const velo_tensor& model, velo_dtype dtype) {
    set(field, dtype, model.ndim, model.shape);
  }
  const shape& operator[](int field) const { return shapes_[field]; }

 private:
  const op_spec& spec_;
  shape shapes_[max_fields];
};

// One kernel of an operator. `args` is the operator's args struct, completed to this library's
// size.
struct candidate {
  const char* name;                         // "avx512", "reference"
  core::isa isa;                            // what it needs
  const char* (*reject)(const void* args);  // why it does not serve these arguments, nullptr when
                                            // it does; may be null
  void (*run)(const void* args, core::execution& on);
  velo_device_type device = VELO_DEVICE_CPU;
};

struct operator_def {
  void (*infer)(const void* args, output_shapes& outputs);
  const candidate* candidates;  // in order of preference; the last one accepts everything
  int candidate_count;
};

// The typed face an operator is written in; `define` erases the type once.
template <class Args, void (*Infer)(const Args&, output_shapes&), int N>
constexpr operator_def define(const candidate (&list)[N]) {
  return {[](const void* args, output_shapes& outputs) {
            Infer(*static_cast<const Args*>(args), outputs);
          },
          list, N};
}
template <class Args, void (*Run)(const Args&, core::execution&)>
constexpr candidate kernel(const char* name, core::isa isa,
                           const char* (*reject)(const void*) = nullptr) {
  return {name, isa, reject,
          [](const void* args, core::execution& on) { Run(*static_cast<const Args*>(args), on); }};
}

// Checks that infer functions share; each failure names the field.
void require_shape(const velo_tensor& t, const char* field, int rank, const std::int64_t* sizes);
void require_like(const velo_tensor& t, const char* field, const velo_tensor& model,
                  const char* model_field);
void require_dtype(const velo_tensor& t, const char* field, velo_dtype dtype);
void require_rank(const velo_tensor& t, const char* field, int lowest, int highest = max_rank);

}  // namespace velo::ops
