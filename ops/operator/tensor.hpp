// The vocabulary of tensors (core/tensor) under the operators' names.
#pragma once

#include "core/tensor/check.hpp"
#include "core/tensor/dtype.hpp"
#include "core/tensor/shape.hpp"

namespace velo::ops {

using core::bf16;
using core::bytes_of;
using core::countable;
using core::data;
using core::dtype_bf16;
using core::dtype_bit_of;
using core::dtype_bool;
using core::dtype_f16;
using core::dtype_f32;
using core::dtype_f64;
using core::dtype_i32;
using core::dtype_i4;
using core::dtype_i64;
using core::dtype_i8;
using core::dtype_name;
using core::dtype_names;
using core::dtype_u64;
using core::dtype_u8;
using core::element_bytes;
using core::f16;
using core::f32;
using core::i32;
using core::i4;
using core::i64;
using core::i8;
using core::is_compact;
using core::max_rank;
using core::numel;
using core::product;
using core::refuse_sizes;
using core::row_count;
using core::row_size;
using core::same_shape;
using core::shape_name;
using core::u8;
using core::operator==;
using core::operator!=;

}  // namespace velo::ops
