// Compares stated shapes with given ones. The success path allocates and formats nothing.
#include "ops/operator/output_shapes.hpp"

#include <algorithm>

namespace velo::ops {
namespace {

using core::fail;
using core::text;

bool has_shape(const velo_tensor& t, int rank, const std::int64_t* sizes) {
  return t.ndim == rank && std::equal(sizes, sizes + rank, t.shape);
}

text path_of(const char* field, const char* part) {
  return text("args.%s%s", field, part);
}

[[noreturn]] void wrong_shape(const velo_tensor& t, const char* field, int rank,
                              const text& wanted) {
  fail(t.ndim == rank ? VELO_ERR_SHAPE : VELO_ERR_RANK, path_of(field, ".shape"), wanted,
       shape_name(t.ndim, t.shape));
}

}  // namespace

void output_shapes::set(output field, velo_dtype dtype, int rank, const std::int64_t* sizes) {
  // An args struct is its size, a reserved word, and one word of eight bytes a field.
  const auto index = (reinterpret_cast<const char*>(&field) - args_) / 8 - 1;
  const char* name = spec_.fields[index].name;
  if (field != nullptr) {
    require_shape(*field, name, rank, sizes);
    require_dtype(*field, name, dtype);
  } else if (!countable(rank, sizes)) {
    refuse_sizes(rank, sizes, path_of(name, ".shape"));
  }
  if (kept_ == nullptr) return;
  output_shape& shape = kept_[index];
  shape.set = true;
  shape.rank = rank;
  shape.dtype = dtype;
  std::copy(sizes, sizes + rank, shape.sizes);
}

void require_given(const velo_tensor* t, const char* field) {
  if (t == nullptr) fail(VELO_ERR_NULL, path_of(field, ""), "a tensor", "NULL");
}

void require_shape(const velo_tensor& t, const char* field, int rank, const std::int64_t* sizes) {
  if (!has_shape(t, rank, sizes)) wrong_shape(t, field, rank, shape_name(rank, sizes));
}

void require_like(const velo_tensor& t, const char* field, const velo_tensor& model,
                  const char* model_field) {
  if (!has_shape(t, model.ndim, model.shape)) {
    wrong_shape(t, field, model.ndim,
                text("%s as args.%s", shape_name(model.ndim, model.shape).buffer, model_field));
  }
  if (t.dtype != model.dtype) {
    core::refuse_dtype(t.dtype, text("%s as args.%s", dtype_name(model.dtype).buffer, model_field),
                       {"args.", field});
  }
}

void require_dtype(const velo_tensor& t, const char* field, velo_dtype dtype) {
  if (t.dtype != dtype) core::refuse_dtype(t.dtype, dtype_name(dtype), {"args.", field});
}

void require_f32_or(const velo_tensor& t, const char* field, velo_dtype dtype) {
  if (t.dtype != f32) require_dtype(t, field, dtype);
}

void require_rank(const velo_tensor& t, const char* field, int lowest, int highest) {
  if (t.ndim >= lowest && t.ndim <= highest) return;
  fail(VELO_ERR_RANK, path_of(field, ".ndim"),
       lowest == highest ? text("%d dimensions", lowest)
                         : text("%d to %d dimensions", lowest, highest),
       text("%d", t.ndim));
}

}  // namespace velo::ops
