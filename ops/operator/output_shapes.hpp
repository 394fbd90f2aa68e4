// The shape and dtype that `infer` states for each output. They are compared with the caller's
// tensor at once, or kept where only the shapes were requested.
//
// The address of a member of the args struct names an output, so no name is looked up:
// outputs.like(a.y, *a.x). An output that is not stated is not produced for these inputs. The
// checks that infer functions share follow; each failure names the field as the caller spells it
// ("args.gamma").
#pragma once

#include <cstdint>

#include "ops/operator/spec.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

inline constexpr int max_fields = 48;

struct output_shape {
  bool set = false;
  int rank = 0;
  std::int64_t sizes[max_rank] = {};
  velo_dtype dtype = f32;
};

class output_shapes {
 public:
  // args: the struct that `infer` is given. kept: one a field, or nullptr to keep nothing.
  output_shapes(const op_spec& spec, const void* args, output_shape* kept)
      : spec_(spec), args_(static_cast<const char*>(args)), kept_(kept) {}

  using output = const velo_tensor* const&;  // a member of the args struct
  void set(output field, velo_dtype dtype, int rank, const std::int64_t* sizes);
  void like(output field, const velo_tensor& model) {
    set(field, model.dtype, model.ndim, model.shape);
  }
  void like(output field, const velo_tensor& model, velo_dtype dtype) {
    set(field, dtype, model.ndim, model.shape);
  }

 private:
  const op_spec& spec_;
  const char* args_;
  output_shape* kept_;
};

void require_given(const velo_tensor* t, const char* field);  // an output that others are held to
void require_shape(const velo_tensor& t, const char* field, int rank, const std::int64_t* sizes);
void require_like(const velo_tensor& t, const char* field, const velo_tensor& model,
                  const char* model_field);
void require_dtype(const velo_tensor& t, const char* field, velo_dtype dtype);
// float32 or `dtype`.
void require_f32_or(const velo_tensor& t, const char* field, velo_dtype dtype);
void require_rank(const velo_tensor& t, const char* field, int lowest, int highest = max_rank);

}  // namespace velo::ops
