// Operators in C++: rms_norm(stream, rms_norm_args().x(x).gamma(gamma).y(y)).
//
// An args object starts with every attribute at its default and every tensor absent; each setter
// returns the object. It keeps pointers: tensors given to it must live until the call returns,
// their data until the work is done. A failure throws velo::error, or is returned as
// velo::result<void> where exceptions are off. velo/ops_<family>.h says what each operator
// computes.
//
// Generated from abi/spec: change that and build the target `generate`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "velo/api.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/stream.hpp"

VELO_CPP_BEGIN

// ---- norm

// `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`.
struct rms_norm_args : velo_rms_norm_args {
  rms_norm_args() noexcept : velo_rms_norm_args VELO_RMS_NORM_ARGS_INIT {}

  // [..., n], compact rows
  rms_norm_args& x(const velo_tensor& value) { return velo_rms_norm_args::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x
  rms_norm_args& gamma(const velo_tensor& value) {
    velo_rms_norm_args::gamma = &value;
    return *this;
  }
  // shape and dtype of x; may be x itself
  rms_norm_args& y(const velo_tensor& value) { return velo_rms_norm_args::y = &value, *this; }
  // float32, the shape of x with a 1 for each dimension that gamma has; what the gradient needs;
  // NaN where these hold no element
  rms_norm_args& rstd(const velo_tensor& value) { return velo_rms_norm_args::rstd = &value, *this; }
  rms_norm_args& rstd(std::nullptr_t) { return velo_rms_norm_args::rstd = nullptr, *this; }
  // added to the mean square; a finite number
  rms_norm_args& epsilon(double value) { return velo_rms_norm_args::epsilon = value, *this; }
};

inline outcome<> rms_norm(stream_ref stream, const rms_norm_args& args) {
  return detail::check(VELO_FN(rms_norm)(stream.get(), &args));
}

// `dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x *
// rstd)`.
struct rms_norm_backward_args : velo_rms_norm_backward_args {
  rms_norm_backward_args() noexcept
      : velo_rms_norm_backward_args VELO_RMS_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  rms_norm_backward_args& dy(const velo_tensor& value) {
    velo_rms_norm_backward_args::dy = &value;
    return *this;
  }
  // the forward input
  rms_norm_backward_args& x(const velo_tensor& value) {
    velo_rms_norm_backward_args::x = &value;
    return *this;
  }
  // the forward gain
  rms_norm_backward_args& gamma(const velo_tensor& value) {
    velo_rms_norm_backward_args::gamma = &value;
    return *this;
  }
  // from the forward pass
  rms_norm_backward_args& rstd(const velo_tensor& value) {
    velo_rms_norm_backward_args::rstd = &value;
    return *this;
  }
  // shape and dtype of x; may be dy itself
  rms_norm_backward_args& dx(const velo_tensor& value) {
    velo_rms_norm_backward_args::dx = &value;
    return *this;
  }
  // float32, shape of gamma
  rms_norm_backward_args& dgamma(const velo_tensor& value) {
    velo_rms_norm_backward_args::dgamma = &value;
    return *this;
  }
  rms_norm_backward_args& dgamma(std::nullptr_t) {
    velo_rms_norm_backward_args::dgamma = nullptr;
    return *this;
  }
  // 1 adds to dgamma instead of writing it
  rms_norm_backward_args& accumulate(bool value) {
    velo_rms_norm_backward_args::accumulate = value;
    return *this;
  }
};

inline outcome<> rms_norm_backward(stream_ref stream, const rms_norm_backward_args& args) {
  return detail::check(VELO_FN(rms_norm_backward)(stream.get(), &args));
}

// `mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma +
// beta`.
struct layer_norm_args : velo_layer_norm_args {
  layer_norm_args() noexcept : velo_layer_norm_args VELO_LAYER_NORM_ARGS_INIT {}

  // [..., n], compact rows
  layer_norm_args& x(const velo_tensor& value) { return velo_layer_norm_args::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x; NULL = 1
  layer_norm_args& gamma(const velo_tensor& value) {
    velo_layer_norm_args::gamma = &value;
    return *this;
  }
  layer_norm_args& gamma(std::nullptr_t) { return velo_layer_norm_args::gamma = nullptr, *this; }
  // shape of gamma, [n] without it; float32, or the dtype of x; NULL = 0
  layer_norm_args& beta(const velo_tensor& value) {
    velo_layer_norm_args::beta = &value;
    return *this;
  }
  layer_norm_args& beta(std::nullptr_t) { return velo_layer_norm_args::beta = nullptr, *this; }
  // shape and dtype of x; may be x itself
  layer_norm_args& y(const velo_tensor& value) { return velo_layer_norm_args::y = &value, *this; }
  // float32, the shape of x with a 1 for each normalized dimension; what the gradient needs; NaN
  // where these hold no element
  layer_norm_args& mean(const velo_tensor& value) {
    velo_layer_norm_args::mean = &value;
    return *this;
  }
  layer_norm_args& mean(std::nullptr_t) { return velo_layer_norm_args::mean = nullptr, *this; }
  // like mean
  layer_norm_args& rstd(const velo_tensor& value) {
    velo_layer_norm_args::rstd = &value;
    return *this;
  }
  layer_norm_args& rstd(std::nullptr_t) { return velo_layer_norm_args::rstd = nullptr, *this; }
  // added to the mean square; a finite number
  layer_norm_args& epsilon(double value) { return velo_layer_norm_args::epsilon = value, *this; }
};

inline outcome<> layer_norm(stream_ref stream, const layer_norm_args& args) {
  return detail::check(VELO_FN(layer_norm)(stream.get(), &args));
}

// `g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma
// = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`.
struct layer_norm_backward_args : velo_layer_norm_backward_args {
  layer_norm_backward_args() noexcept
      : velo_layer_norm_backward_args VELO_LAYER_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  layer_norm_backward_args& dy(const velo_tensor& value) {
    velo_layer_norm_backward_args::dy = &value;
    return *this;
  }
  // the forward input
  layer_norm_backward_args& x(const velo_tensor& value) {
    velo_layer_norm_backward_args::x = &value;
    return *this;
  }
  // the forward gain; NULL = 1
  layer_norm_backward_args& gamma(const velo_tensor& value) {
    velo_layer_norm_backward_args::gamma = &value;
    return *this;
  }
  layer_norm_backward_args& gamma(std::nullptr_t) {
    velo_layer_norm_backward_args::gamma = nullptr;
    return *this;
  }
  // from the forward pass
  layer_norm_backward_args& mean(const velo_tensor& value) {
    velo_layer_norm_backward_args::mean = &value;
    return *this;
  }
  // from the forward pass
  layer_norm_backward_args& rstd(const velo_tensor& value) {
    velo_layer_norm_backward_args::rstd = &value;
    return *this;
  }
  // shape and dtype of x; may be dy itself
  layer_norm_backward_args& dx(const velo_tensor& value) {
    velo_layer_norm_backward_args::dx = &value;
    return *this;
  }
  // float32, the normalized dimensions of x
  layer_norm_backward_args& dgamma(const velo_tensor& value) {
    velo_layer_norm_backward_args::dgamma = &value;
    return *this;
  }
  layer_norm_backward_args& dgamma(std::nullptr_t) {
    velo_layer_norm_backward_args::dgamma = nullptr;
    return *this;
  }
  // like dgamma
  layer_norm_backward_args& dbeta(const velo_tensor& value) {
    velo_layer_norm_backward_args::dbeta = &value;
    return *this;
  }
  layer_norm_backward_args& dbeta(std::nullptr_t) {
    velo_layer_norm_backward_args::dbeta = nullptr;
    return *this;
  }
  // 1 adds to dgamma and dbeta instead of writing them
  layer_norm_backward_args& accumulate(bool value) {
    velo_layer_norm_backward_args::accumulate = value;
    return *this;
  }
};

inline outcome<> layer_norm_backward(stream_ref stream, const layer_norm_backward_args& args) {
  return detail::check(VELO_FN(layer_norm_backward)(stream.get(), &args));
}

// ---- activation

// `silu(t) = t / (1 + exp(-t))`; `y = silu(x1) * x2`.
struct swiglu_args : velo_swiglu_args {
  swiglu_args() noexcept : velo_swiglu_args VELO_SWIGLU_ARGS_INIT {}

  // rank 1..8; even size along dim
  swiglu_args& x(const velo_tensor& value) { return velo_swiglu_args::x = &value, *this; }
  // shape of x with dim halved, dtype of x
  swiglu_args& y(const velo_tensor& value) { return velo_swiglu_args::y = &value, *this; }
  // the split dimension; negative counts from the end
  swiglu_args& dim(std::int64_t value) { return velo_swiglu_args::dim = value, *this; }
};

inline outcome<> swiglu(stream_ref stream, const swiglu_args& args) {
  return detail::check(VELO_FN(swiglu)(stream.get(), &args));
}

// `s = 1 / (1 + exp(-x1))`; `dx1 = dy * x2 * s * (1 + x1 * (1 - s))`; `dx2 = dy * silu(x1)`.
struct swiglu_backward_args : velo_swiglu_backward_args {
  swiglu_backward_args() noexcept : velo_swiglu_backward_args VELO_SWIGLU_BACKWARD_ARGS_INIT {}

  // shape of x with dim halved, dtype of x
  swiglu_backward_args& dy(const velo_tensor& value) {
    velo_swiglu_backward_args::dy = &value;
    return *this;
  }
  // the forward input
  swiglu_backward_args& x(const velo_tensor& value) {
    velo_swiglu_backward_args::x = &value;
    return *this;
  }
  // shape and dtype of x; may be x itself
  swiglu_backward_args& dx(const velo_tensor& value) {
    velo_swiglu_backward_args::dx = &value;
    return *this;
  }
  // as in the forward call
  swiglu_backward_args& dim(std::int64_t value) {
    velo_swiglu_backward_args::dim = value;
    return *this;
  }
};

inline outcome<> swiglu_backward(stream_ref stream, const swiglu_backward_args& args) {
  return detail::check(VELO_FN(swiglu_backward)(stream.get(), &args));
}

// ---- rope

// Which features are rotated together.
enum class rotary_mode : std::int64_t {
  half = VELO_ROTARY_MODE_HALF,                // feature i with feature i + R/2 (GPT-NeoX, Llama in
                                               // Hugging Face)
  interleaved = VELO_ROTARY_MODE_INTERLEAVED,  // feature 2i with feature 2i + 1 (GPT-J, the paper)
};

// `y = x * cos + rotate(x) * sin`.
struct rotary_position_embedding_args : velo_rotary_position_embedding_args {
  rotary_position_embedding_args() noexcept
      : velo_rotary_position_embedding_args VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT {}

  // [.., .., .., D]
  rotary_position_embedding_args& x(const velo_tensor& value) {
    velo_rotary_position_embedding_args::x = &value;
    return *this;
  }
  // 4-D, broadcast against x: each size equals that of x or is 1; the last is the rotated width R,
  // even, at most D; float32 or the dtype of x
  rotary_position_embedding_args& cos(const velo_tensor& value) {
    velo_rotary_position_embedding_args::cos = &value;
    return *this;
  }
  // shape and dtype of cos
  rotary_position_embedding_args& sin(const velo_tensor& value) {
    velo_rotary_position_embedding_args::sin = &value;
    return *this;
  }
  // shape and dtype of x; may be x itself
  rotary_position_embedding_args& y(const velo_tensor& value) {
    velo_rotary_position_embedding_args::y = &value;
    return *this;
  }
  // which features form a pair
  rotary_position_embedding_args& mode(velo::rotary_mode value) {
    velo_rotary_position_embedding_args::mode = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> rotary_position_embedding(stream_ref stream,
                                           const rotary_position_embedding_args& args) {
  return detail::check(VELO_FN(rotary_position_embedding)(stream.get(), &args));
}

// `dx = dy * cos + rotate^T(dy * sin)`; `dcos = sum(dy * x)`; `dsin = sum(dy * rotate(x))`.
struct rotary_position_embedding_backward_args : velo_rotary_position_embedding_backward_args {
  rotary_position_embedding_backward_args() noexcept
      : velo_rotary_position_embedding_backward_args
        VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  rotary_position_embedding_backward_args& dy(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::dy = &value;
    return *this;
  }
  // the forward table
  rotary_position_embedding_backward_args& cos(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::cos = &value;
    return *this;
  }
  // the forward table
  rotary_position_embedding_backward_args& sin(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::sin = &value;
    return *this;
  }
  // the forward input, needed for dcos and dsin only
  rotary_position_embedding_backward_args& x(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::x = &value;
    return *this;
  }
  rotary_position_embedding_backward_args& x(std::nullptr_t) {
    velo_rotary_position_embedding_backward_args::x = nullptr;
    return *this;
  }
  // shape and dtype of dy; may be dy itself
  rotary_position_embedding_backward_args& dx(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::dx = &value;
    return *this;
  }
  // float32, shape of cos; together with dsin
  rotary_position_embedding_backward_args& dcos(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::dcos = &value;
    return *this;
  }
  rotary_position_embedding_backward_args& dcos(std::nullptr_t) {
    velo_rotary_position_embedding_backward_args::dcos = nullptr;
    return *this;
  }
  // float32, shape of sin; together with dcos
  rotary_position_embedding_backward_args& dsin(const velo_tensor& value) {
    velo_rotary_position_embedding_backward_args::dsin = &value;
    return *this;
  }
  rotary_position_embedding_backward_args& dsin(std::nullptr_t) {
    velo_rotary_position_embedding_backward_args::dsin = nullptr;
    return *this;
  }
  // as in the forward call
  rotary_position_embedding_backward_args& mode(velo::rotary_mode value) {
    velo_rotary_position_embedding_backward_args::mode = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> rotary_position_embedding_backward(
    stream_ref stream, const rotary_position_embedding_backward_args& args) {
  return detail::check(VELO_FN(rotary_position_embedding_backward)(stream.get(), &args));
}

// ---- matmul

// Element type of a product.
enum class product_dtype : std::int64_t {
  like_a = VELO_PRODUCT_DTYPE_LIKE_A,    // the dtype of a
  float32 = VELO_PRODUCT_DTYPE_FLOAT32,  // float32 whatever the inputs
};

// `c = op(a) @ op(b) + bias`.
struct matmul_args : velo_matmul_args {
  matmul_args() noexcept : velo_matmul_args VELO_MATMUL_ARGS_INIT {}

  // [.., m, k], or [k, m] with transpose_a; unit stride in the last dimension
  matmul_args& a(const velo_tensor& value) { return velo_matmul_args::a = &value, *this; }
  // [k, n], or [n, k] with transpose_b; dtype of a; unit stride in the last dimension; NULL when
  // packed is given
  matmul_args& b(const velo_tensor& value) { return velo_matmul_args::b = &value, *this; }
  matmul_args& b(std::nullptr_t) { return velo_matmul_args::b = nullptr, *this; }
  // the weight in place of b, of a's dtype; transpose_b must be 0
  matmul_args& packed(velo_pack value) { return velo_matmul_args::packed = value, *this; }
  // [n], float32 or the dtype of a
  matmul_args& bias(const velo_tensor& value) { return velo_matmul_args::bias = &value, *this; }
  matmul_args& bias(std::nullptr_t) { return velo_matmul_args::bias = nullptr, *this; }
  // [.., m, n]; dtype of a, or float32; unit stride in the last dimension
  matmul_args& c(const velo_tensor& value) { return velo_matmul_args::c = &value, *this; }
  // 1 when a is stored [k, m]
  matmul_args& transpose_a(bool value) { return velo_matmul_args::transpose_a = value, *this; }
  // 1 when b is stored [n, k]
  matmul_args& transpose_b(bool value) { return velo_matmul_args::transpose_b = value, *this; }
  // 1 adds to c (in float32, rounded once) instead of writing it
  matmul_args& accumulate(bool value) { return velo_matmul_args::accumulate = value, *this; }
  // dtype of c
  matmul_args& dtype(velo::product_dtype value) {
    velo_matmul_args::dtype = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> matmul(stream_ref stream, const matmul_args& args) {
  return detail::check(VELO_FN(matmul)(stream.get(), &args));
}

// `grad += grad_output^T @ total_input`.
struct matmul_add_fp32_args : velo_matmul_add_fp32_args {
  matmul_add_fp32_args() noexcept : velo_matmul_add_fp32_args VELO_MATMUL_ADD_FP32_ARGS_INIT {}

  // [.., t, k]
  matmul_add_fp32_args& total_input(const velo_tensor& value) {
    velo_matmul_add_fp32_args::total_input = &value;
    return *this;
  }
  // [.., t, n], dtype of total_input
  matmul_add_fp32_args& grad_output(const velo_tensor& value) {
    velo_matmul_add_fp32_args::grad_output = &value;
    return *this;
  }
  // float32, [n, k]
  matmul_add_fp32_args& grad(const velo_tensor& value) {
    velo_matmul_add_fp32_args::grad = &value;
    return *this;
  }
};

inline outcome<> matmul_add_fp32(stream_ref stream, const matmul_add_fp32_args& args) {
  return detail::check(VELO_FN(matmul_add_fp32)(stream.get(), &args));
}

// ---- attention

// Order of dimensions, the slowest first.
enum class attention_layout : std::int64_t {
  bsnd = VELO_ATTENTION_LAYOUT_BSND,  // [B, S, N, D]
  bnsd = VELO_ATTENTION_LAYOUT_BNSD,  // [B, N, S, D]
  sbh = VELO_ATTENTION_LAYOUT_SBH,    // [S, B, N * D]
  bsh = VELO_ATTENTION_LAYOUT_BSH,    // [B, S, N * D]
  tnd = VELO_ATTENTION_LAYOUT_TND,    // [T, N, D], sequences of different lengths one after another
};

// Which keys j a row i sees; no mode but all_mask needs a mask tensor.
enum class attention_sparse_mode : std::int64_t {
  full = VELO_ATTENTION_SPARSE_MODE_FULL,                                      // i - pre_tokens <=
                                                                               // j <= i +
                                                                               // next_tokens; by
                                                                               // default all
  all_mask = VELO_ATTENTION_SPARSE_MODE_ALL_MASK,                              // all that
                                                                               // atten_mask leaves
  left_up_causal = VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL,                  // j <= i
  right_down_causal = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL,            // j <= i + d with d
                                                                               // = Skv - Sq
  band = VELO_ATTENTION_SPARSE_MODE_BAND,                                      // i + d - pre_tokens
                                                                               // <= j <= i + d +
                                                                               // next_tokens
  prefix = VELO_ATTENTION_SPARSE_MODE_PREFIX,                                  // j <= i + d or j <
                                                                               // prefix; not for
                                                                               // tnd
  prefix_compressed = VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED,            // as prefix, in
                                                                               // every layout
  right_down_causal_band = VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND,  // tnd: band in the
                                                                               // last sequence with
                                                                               // queries,
                                                                               // right_down_causal
                                                                               // in the others
  band_left_up_causal = VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL,        // tnd: band in the
                                                                               // first sequence
                                                                               // with queries,
                                                                               // left_up_causal in
                                                                               // the others
};

// `attention_out = softmax(scale * query @ key^T) @ value`.
struct fusion_attention_args : velo_fusion_attention_args {
  fusion_attention_args() noexcept : velo_fusion_attention_args VELO_FUSION_ATTENTION_ARGS_INIT {}

  // [.., N, D] in the order of layout
  fusion_attention_args& query(const velo_tensor& value) {
    velo_fusion_attention_args::query = &value;
    return *this;
  }
  // dtype of query
  fusion_attention_args& key(const velo_tensor& value) {
    velo_fusion_attention_args::key = &value;
    return *this;
  }
  // dtype of query
  fusion_attention_args& value(const velo_tensor& value) {
    velo_fusion_attention_args::value = &value;
    return *this;
  }
  // shape and dtype of query with Dv for D
  fusion_attention_args& attention_out(const velo_tensor& value) {
    velo_fusion_attention_args::attention_out = &value;
    return *this;
  }
  // float32 [B, N, Sq], tnd [T, N]: one value a row, not repeated eight times; the largest score a
  // row sees
  fusion_attention_args& softmax_max(const velo_tensor& value) {
    velo_fusion_attention_args::softmax_max = &value;
    return *this;
  }
  fusion_attention_args& softmax_max(std::nullptr_t) {
    velo_fusion_attention_args::softmax_max = nullptr;
    return *this;
  }
  // float32 [B, N, Sq], tnd [T, N]: one value a row, not repeated eight times; sum of exp(score -
  // softmax_max) over the keys a row sees, so that softmax_max + log(softmax_sum) is the
  // log-sum-exp of the row
  fusion_attention_args& softmax_sum(const velo_tensor& value) {
    velo_fusion_attention_args::softmax_sum = &value;
    return *this;
  }
  fusion_attention_args& softmax_sum(std::nullptr_t) {
    velo_fusion_attention_args::softmax_sum = nullptr;
    return *this;
  }
  // order of dimensions of query, key, value, attention_out and their gradients
  fusion_attention_args& layout(velo::attention_layout value) {
    velo_fusion_attention_args::layout = static_cast<std::int64_t>(value);
    return *this;
  }
  // query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
  fusion_attention_args& head_num(std::int64_t value) {
    velo_fusion_attention_args::head_num = value;
    return *this;
  }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  fusion_attention_args& scale(double value) {
    velo_fusion_attention_args::scale = value;
    return *this;
  }
  // which keys a row sees
  fusion_attention_args& sparse_mode(velo::attention_sparse_mode value) {
    velo_fusion_attention_args::sparse_mode = static_cast<std::int64_t>(value);
    return *this;
  }
  // full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
  fusion_attention_args& pre_tokens(std::int64_t value) {
    velo_fusion_attention_args::pre_tokens = value;
    return *this;
  }
  // the same to the right
  fusion_attention_args& next_tokens(std::int64_t value) {
    velo_fusion_attention_args::next_tokens = value;
    return *this;
  }
  // prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
  fusion_attention_args& prefix(const velo_ints& value) {
    velo_fusion_attention_args::prefix = &value;
    return *this;
  }
  fusion_attention_args& prefix(std::nullptr_t) {
    velo_fusion_attention_args::prefix = nullptr;
    return *this;
  }
  // tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
  fusion_attention_args& actual_seq_qlen(const velo_ints& value) {
    velo_fusion_attention_args::actual_seq_qlen = &value;
    return *this;
  }
  fusion_attention_args& actual_seq_qlen(std::nullptr_t) {
    velo_fusion_attention_args::actual_seq_qlen = nullptr;
    return *this;
  }
  // tnd: ends of the key sequences, as many as actual_seq_qlen
  fusion_attention_args& actual_seq_kvlen(const velo_ints& value) {
    velo_fusion_attention_args::actual_seq_kvlen = &value;
    return *this;
  }
  fusion_attention_args& actual_seq_kvlen(std::nullptr_t) {
    velo_fusion_attention_args::actual_seq_kvlen = nullptr;
    return *this;
  }
};

inline outcome<> fusion_attention(stream_ref stream, const fusion_attention_args& args) {
  return detail::check(VELO_FN(fusion_attention)(stream.get(), &args));
}

// `delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`;
// `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`.
struct fusion_attention_backward_args : velo_fusion_attention_backward_args {
  fusion_attention_backward_args() noexcept
      : velo_fusion_attention_backward_args VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT {}

  // the forward input
  fusion_attention_backward_args& query(const velo_tensor& value) {
    velo_fusion_attention_backward_args::query = &value;
    return *this;
  }
  // the forward input
  fusion_attention_backward_args& key(const velo_tensor& value) {
    velo_fusion_attention_backward_args::key = &value;
    return *this;
  }
  // the forward input
  fusion_attention_backward_args& value(const velo_tensor& value) {
    velo_fusion_attention_backward_args::value = &value;
    return *this;
  }
  // gradient of attention_out: its shape and dtype
  fusion_attention_backward_args& dy(const velo_tensor& value) {
    velo_fusion_attention_backward_args::dy = &value;
    return *this;
  }
  // from the forward pass
  fusion_attention_backward_args& softmax_max(const velo_tensor& value) {
    velo_fusion_attention_backward_args::softmax_max = &value;
    return *this;
  }
  // from the forward pass
  fusion_attention_backward_args& softmax_sum(const velo_tensor& value) {
    velo_fusion_attention_backward_args::softmax_sum = &value;
    return *this;
  }
  // from the forward pass
  fusion_attention_backward_args& attention_out(const velo_tensor& value) {
    velo_fusion_attention_backward_args::attention_out = &value;
    return *this;
  }
  // shape and dtype of query
  fusion_attention_backward_args& dquery(const velo_tensor& value) {
    velo_fusion_attention_backward_args::dquery = &value;
    return *this;
  }
  // shape and dtype of key
  fusion_attention_backward_args& dkey(const velo_tensor& value) {
    velo_fusion_attention_backward_args::dkey = &value;
    return *this;
  }
  // shape and dtype of value
  fusion_attention_backward_args& dvalue(const velo_tensor& value) {
    velo_fusion_attention_backward_args::dvalue = &value;
    return *this;
  }
  // order of dimensions of query, key, value, attention_out and their gradients
  fusion_attention_backward_args& layout(velo::attention_layout value) {
    velo_fusion_attention_backward_args::layout = static_cast<std::int64_t>(value);
    return *this;
  }
  // query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
  fusion_attention_backward_args& head_num(std::int64_t value) {
    velo_fusion_attention_backward_args::head_num = value;
    return *this;
  }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  fusion_attention_backward_args& scale(double value) {
    velo_fusion_attention_backward_args::scale = value;
    return *this;
  }
  // which keys a row sees
  fusion_attention_backward_args& sparse_mode(velo::attention_sparse_mode value) {
    velo_fusion_attention_backward_args::sparse_mode = static_cast<std::int64_t>(value);
    return *this;
  }
  // full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
  fusion_attention_backward_args& pre_tokens(std::int64_t value) {
    velo_fusion_attention_backward_args::pre_tokens = value;
    return *this;
  }
  // the same to the right
  fusion_attention_backward_args& next_tokens(std::int64_t value) {
    velo_fusion_attention_backward_args::next_tokens = value;
    return *this;
  }
  // prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
  fusion_attention_backward_args& prefix(const velo_ints& value) {
    velo_fusion_attention_backward_args::prefix = &value;
    return *this;
  }
  fusion_attention_backward_args& prefix(std::nullptr_t) {
    velo_fusion_attention_backward_args::prefix = nullptr;
    return *this;
  }
  // tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
  fusion_attention_backward_args& actual_seq_qlen(const velo_ints& value) {
    velo_fusion_attention_backward_args::actual_seq_qlen = &value;
    return *this;
  }
  fusion_attention_backward_args& actual_seq_qlen(std::nullptr_t) {
    velo_fusion_attention_backward_args::actual_seq_qlen = nullptr;
    return *this;
  }
  // tnd: ends of the key sequences, as many as actual_seq_qlen
  fusion_attention_backward_args& actual_seq_kvlen(const velo_ints& value) {
    velo_fusion_attention_backward_args::actual_seq_kvlen = &value;
    return *this;
  }
  fusion_attention_backward_args& actual_seq_kvlen(std::nullptr_t) {
    velo_fusion_attention_backward_args::actual_seq_kvlen = nullptr;
    return *this;
  }
};

inline outcome<> fusion_attention_backward(stream_ref stream,
                                           const fusion_attention_backward_args& args) {
  return detail::check(VELO_FN(fusion_attention_backward)(stream.get(), &args));
}

// ---- embedding

// `y[t] = table[ids[t]]`.
struct embedding_args : velo_embedding_args {
  embedding_args() noexcept : velo_embedding_args VELO_EMBEDDING_ARGS_INIT {}

  // any shape; each in [0, V), else VELO_ERR_ARGUMENT before anything is written
  embedding_args& ids(const velo_tensor& value) { return velo_embedding_args::ids = &value, *this; }
  // [V, D]
  embedding_args& table(const velo_tensor& value) {
    velo_embedding_args::table = &value;
    return *this;
  }
  // shape of ids with D appended, dtype of table
  embedding_args& y(const velo_tensor& value) { return velo_embedding_args::y = &value, *this; }
};

inline outcome<> embedding(stream_ref stream, const embedding_args& args) {
  return detail::check(VELO_FN(embedding)(stream.get(), &args));
}

// `dtable[ids[t]] += dy[t]`.
struct embedding_backward_args : velo_embedding_backward_args {
  embedding_backward_args() noexcept
      : velo_embedding_backward_args VELO_EMBEDDING_BACKWARD_ARGS_INIT {}

  // as in the forward call
  embedding_backward_args& ids(const velo_tensor& value) {
    velo_embedding_backward_args::ids = &value;
    return *this;
  }
  // shape of ids with D appended
  embedding_backward_args& dy(const velo_tensor& value) {
    velo_embedding_backward_args::dy = &value;
    return *this;
  }
  // float32, [rows, D]
  embedding_backward_args& dtable(const velo_tensor& value) {
    velo_embedding_backward_args::dtable = &value;
    return *this;
  }
  // V, the rows of the table
  embedding_backward_args& rows(std::int64_t value) {
    velo_embedding_backward_args::rows = value;
    return *this;
  }
  // 1 adds to dtable instead of writing it
  embedding_backward_args& accumulate(bool value) {
    velo_embedding_backward_args::accumulate = value;
    return *this;
  }
};

inline outcome<> embedding_backward(stream_ref stream, const embedding_backward_args& args) {
  return detail::check(VELO_FN(embedding_backward)(stream.get(), &args));
}

// ---- loss

// How per-token losses become the result.
enum class reduction : std::int64_t {
  none = VELO_REDUCTION_NONE,  // one loss a token
  mean = VELO_REDUCTION_MEAN,  // mean over tokens that count
  sum = VELO_REDUCTION_SUM,    // sum over tokens that count
};

// `lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = lse[t] - logits[t, targets[t]]`.
struct cross_entropy_args : velo_cross_entropy_args {
  cross_entropy_args() noexcept : velo_cross_entropy_args VELO_CROSS_ENTROPY_ARGS_INIT {}

  // [T, V]
  cross_entropy_args& logits(const velo_tensor& value) {
    velo_cross_entropy_args::logits = &value;
    return *this;
  }
  // [T]; each in [0, V) or ignore_index, else VELO_ERR_ARGUMENT before anything is written
  cross_entropy_args& targets(const velo_tensor& value) {
    velo_cross_entropy_args::targets = &value;
    return *this;
  }
  // float32, [T] or []
  cross_entropy_args& loss(const velo_tensor& value) {
    velo_cross_entropy_args::loss = &value;
    return *this;
  }
  // float32, [T]: log-sum-exp of each row, what the gradient needs
  cross_entropy_args& lse(const velo_tensor& value) {
    velo_cross_entropy_args::lse = &value;
    return *this;
  }
  cross_entropy_args& lse(std::nullptr_t) { return velo_cross_entropy_args::lse = nullptr, *this; }
  // the target that does not count
  cross_entropy_args& ignore_index(std::int64_t value) {
    velo_cross_entropy_args::ignore_index = value;
    return *this;
  }
  // how tokens become one number
  cross_entropy_args& reduction(velo::reduction value) {
    velo_cross_entropy_args::reduction = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> cross_entropy(stream_ref stream, const cross_entropy_args& args) {
  return detail::check(VELO_FN(cross_entropy)(stream.get(), &args));
}

// `dlogits[t, v] = (exp(logits[t, v] - lse[t]) - [v = targets[t]]) * dloss[t]`.
struct cross_entropy_backward_args : velo_cross_entropy_backward_args {
  cross_entropy_backward_args() noexcept
      : velo_cross_entropy_backward_args VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT {}

  // float32, shape of loss
  cross_entropy_backward_args& dloss(const velo_tensor& value) {
    velo_cross_entropy_backward_args::dloss = &value;
    return *this;
  }
  // the forward input
  cross_entropy_backward_args& logits(const velo_tensor& value) {
    velo_cross_entropy_backward_args::logits = &value;
    return *this;
  }
  // the forward targets
  cross_entropy_backward_args& targets(const velo_tensor& value) {
    velo_cross_entropy_backward_args::targets = &value;
    return *this;
  }
  // float32, [T], from the forward pass
  cross_entropy_backward_args& lse(const velo_tensor& value) {
    velo_cross_entropy_backward_args::lse = &value;
    return *this;
  }
  // shape and dtype of logits; may be logits itself
  cross_entropy_backward_args& dlogits(const velo_tensor& value) {
    velo_cross_entropy_backward_args::dlogits = &value;
    return *this;
  }
  // as in the forward call
  cross_entropy_backward_args& ignore_index(std::int64_t value) {
    velo_cross_entropy_backward_args::ignore_index = value;
    return *this;
  }
  // as in the forward call
  cross_entropy_backward_args& reduction(velo::reduction value) {
    velo_cross_entropy_backward_args::reduction = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> cross_entropy_backward(stream_ref stream,
                                        const cross_entropy_backward_args& args) {
  return detail::check(VELO_FN(cross_entropy_backward)(stream.get(), &args));
}

// ---- optimizer

// `g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 *
// v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) +
// epsilon)`.
struct apply_fused_adamw_args : velo_apply_fused_adamw_args {
  apply_fused_adamw_args() noexcept
      : velo_apply_fused_adamw_args VELO_APPLY_FUSED_ADAMW_ARGS_INIT {}

  // shape of param
  apply_fused_adamw_args& grad(const velo_tensor& value) {
    velo_apply_fused_adamw_args::grad = &value;
    return *this;
  }
  // float32, []: factor on the gradient, such as a clip factor; NULL = 1
  apply_fused_adamw_args& scale(const velo_tensor& value) {
    velo_apply_fused_adamw_args::scale = &value;
    return *this;
  }
  apply_fused_adamw_args& scale(std::nullptr_t) {
    velo_apply_fused_adamw_args::scale = nullptr;
    return *this;
  }
  // any shape
  apply_fused_adamw_args& param(const velo_tensor& value) {
    velo_apply_fused_adamw_args::param = &value;
    return *this;
  }
  // float32, shape of param: the exact parameters when param has 16 bits
  apply_fused_adamw_args& master(const velo_tensor& value) {
    velo_apply_fused_adamw_args::master = &value;
    return *this;
  }
  apply_fused_adamw_args& master(std::nullptr_t) {
    velo_apply_fused_adamw_args::master = nullptr;
    return *this;
  }
  // first moment, shape of param
  apply_fused_adamw_args& m(const velo_tensor& value) {
    velo_apply_fused_adamw_args::m = &value;
    return *this;
  }
  // second moment, shape and dtype of m
  apply_fused_adamw_args& v(const velo_tensor& value) {
    velo_apply_fused_adamw_args::v = &value;
    return *this;
  }
  // largest second moment, shape and dtype of m; required by amsgrad
  apply_fused_adamw_args& v_max(const velo_tensor& value) {
    velo_apply_fused_adamw_args::v_max = &value;
    return *this;
  }
  apply_fused_adamw_args& v_max(std::nullptr_t) {
    velo_apply_fused_adamw_args::v_max = nullptr;
    return *this;
  }
  // number of this update, from 1
  apply_fused_adamw_args& step(std::int64_t value) {
    velo_apply_fused_adamw_args::step = value;
    return *this;
  }
  // learning rate
  apply_fused_adamw_args& lr(double value) {
    velo_apply_fused_adamw_args::lr = value;
    return *this;
  }
  // decay of the first moment
  apply_fused_adamw_args& beta1(double value) {
    velo_apply_fused_adamw_args::beta1 = value;
    return *this;
  }
  // decay of the second moment
  apply_fused_adamw_args& beta2(double value) {
    velo_apply_fused_adamw_args::beta2 = value;
    return *this;
  }
  // added to the root
  apply_fused_adamw_args& epsilon(double value) {
    velo_apply_fused_adamw_args::epsilon = value;
    return *this;
  }
  // decoupled weight decay
  apply_fused_adamw_args& weight_decay(double value) {
    velo_apply_fused_adamw_args::weight_decay = value;
    return *this;
  }
  // 1 divides by the largest second moment so far
  apply_fused_adamw_args& amsgrad(bool value) {
    velo_apply_fused_adamw_args::amsgrad = value;
    return *this;
  }
  // 1 ascends
  apply_fused_adamw_args& maximize(bool value) {
    velo_apply_fused_adamw_args::maximize = value;
    return *this;
  }
  // []: the number of this update in place of step, read when the update runs; at least 1, else
  // VELO_ERR_ARGUMENT before anything is written
  apply_fused_adamw_args& step_tensor(const velo_tensor& value) {
    velo_apply_fused_adamw_args::step_tensor = &value;
    return *this;
  }
  apply_fused_adamw_args& step_tensor(std::nullptr_t) {
    velo_apply_fused_adamw_args::step_tensor = nullptr;
    return *this;
  }
  // float32, []: the learning rate in place of lr, read when the update runs
  apply_fused_adamw_args& lr_tensor(const velo_tensor& value) {
    velo_apply_fused_adamw_args::lr_tensor = &value;
    return *this;
  }
  apply_fused_adamw_args& lr_tensor(std::nullptr_t) {
    velo_apply_fused_adamw_args::lr_tensor = nullptr;
    return *this;
  }
};

inline outcome<> apply_fused_adamw(stream_ref stream, const apply_fused_adamw_args& args) {
  return detail::check(VELO_FN(apply_fused_adamw)(stream.get(), &args));
}

// `sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm +
// 1e-6))`.
struct global_norm_args : velo_global_norm_args {
  global_norm_args() noexcept : velo_global_norm_args VELO_GLOBAL_NORM_ARGS_INIT {}

  // any shape
  global_norm_args& x(const velo_tensor& value) { return velo_global_norm_args::x = &value, *this; }
  // float64, []
  global_norm_args& sum_of_squares(const velo_tensor& value) {
    velo_global_norm_args::sum_of_squares = &value;
    return *this;
  }
  // float32, []
  global_norm_args& norm(const velo_tensor& value) {
    velo_global_norm_args::norm = &value;
    return *this;
  }
  global_norm_args& norm(std::nullptr_t) { return velo_global_norm_args::norm = nullptr, *this; }
  // float32, []: what apply_fused_adamw takes as scale
  global_norm_args& clip(const velo_tensor& value) {
    velo_global_norm_args::clip = &value;
    return *this;
  }
  global_norm_args& clip(std::nullptr_t) { return velo_global_norm_args::clip = nullptr, *this; }
  // the norm to clip to
  global_norm_args& max_norm(double value) {
    velo_global_norm_args::max_norm = value;
    return *this;
  }
  // 1 adds to sum_of_squares instead of writing it
  global_norm_args& accumulate(bool value) {
    velo_global_norm_args::accumulate = value;
    return *this;
  }
};

inline outcome<> global_norm(stream_ref stream, const global_norm_args& args) {
  return detail::check(VELO_FN(global_norm)(stream.get(), &args));
}

// ---- elementwise

// Element types a conversion can produce.
enum class element : std::int64_t {
  float32 = VELO_ELEMENT_FLOAT32,    // IEEE binary32
  bfloat16 = VELO_ELEMENT_BFLOAT16,  // the upper half of a float32
  float16 = VELO_ELEMENT_FLOAT16,    // IEEE binary16
};

// `y = a + b`.
struct add_args : velo_add_args {
  add_args() noexcept : velo_add_args VELO_ADD_ARGS_INIT {}

  // any shape
  add_args& a(const velo_tensor& value) { return velo_add_args::a = &value, *this; }
  // shape and dtype of a
  add_args& b(const velo_tensor& value) { return velo_add_args::b = &value, *this; }
  // shape and dtype of a; may be a or b itself
  add_args& y(const velo_tensor& value) { return velo_add_args::y = &value, *this; }
};

inline outcome<> add(stream_ref stream, const add_args& args) {
  return detail::check(VELO_FN(add)(stream.get(), &args));
}

// `y = round(x)`.
struct cast_args : velo_cast_args {
  cast_args() noexcept : velo_cast_args VELO_CAST_ARGS_INIT {}

  // any shape
  cast_args& x(const velo_tensor& value) { return velo_cast_args::x = &value, *this; }
  // shape of x, element type `dtype`
  cast_args& y(const velo_tensor& value) { return velo_cast_args::y = &value, *this; }
  // element type of y
  cast_args& dtype(velo::element value) {
    velo_cast_args::dtype = static_cast<std::int64_t>(value);
    return *this;
  }
};

inline outcome<> cast(stream_ref stream, const cast_args& args) {
  return detail::check(VELO_FN(cast)(stream.get(), &args));
}

// `y = x * mask / (1 - p)`.
struct dropout_args : velo_dropout_args {
  dropout_args() noexcept : velo_dropout_args VELO_DROPOUT_ARGS_INIT {}

  // any shape
  dropout_args& x(const velo_tensor& value) { return velo_dropout_args::x = &value, *this; }
  // shape and dtype of x; may be x itself
  dropout_args& y(const velo_tensor& value) { return velo_dropout_args::y = &value, *this; }
  // uint8, shape of x: 1 where an element is kept, else 0
  dropout_args& mask(const velo_tensor& value) { return velo_dropout_args::mask = &value, *this; }
  dropout_args& mask(std::nullptr_t) { return velo_dropout_args::mask = nullptr, *this; }
  // probability of dropping an element; 1 drops all
  dropout_args& p(double value) { return velo_dropout_args::p = value, *this; }
  // key of the generator, modulo 2^64
  dropout_args& seed(std::int64_t value) { return velo_dropout_args::seed = value, *this; }
  // upper half of its counter: another for each call that shares the seed
  dropout_args& offset(std::int64_t value) { return velo_dropout_args::offset = value, *this; }
};

inline outcome<> dropout(stream_ref stream, const dropout_args& args) {
  return detail::check(VELO_FN(dropout)(stream.get(), &args));
}

// `dx = dy * mask / (1 - p)`.
struct dropout_backward_args : velo_dropout_backward_args {
  dropout_backward_args() noexcept : velo_dropout_backward_args VELO_DROPOUT_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  dropout_backward_args& dy(const velo_tensor& value) {
    velo_dropout_backward_args::dy = &value;
    return *this;
  }
  // shape and dtype of x; may be dy itself
  dropout_backward_args& dx(const velo_tensor& value) {
    velo_dropout_backward_args::dx = &value;
    return *this;
  }
  // that of the forward call
  dropout_backward_args& p(double value) { return velo_dropout_backward_args::p = value, *this; }
  // that of the forward call
  dropout_backward_args& seed(std::int64_t value) {
    velo_dropout_backward_args::seed = value;
    return *this;
  }
  // that of the forward call
  dropout_backward_args& offset(std::int64_t value) {
    velo_dropout_backward_args::offset = value;
    return *this;
  }
};

inline outcome<> dropout_backward(stream_ref stream, const dropout_backward_args& args) {
  return detail::check(VELO_FN(dropout_backward)(stream.get(), &args));
}

// ---- overlap

// `y = sum_ranks(x @ op(weight))`.
struct matmul_all_reduce_args : velo_matmul_all_reduce_args {
  matmul_all_reduce_args() noexcept
      : velo_matmul_all_reduce_args VELO_MATMUL_ALL_REDUCE_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  matmul_all_reduce_args& group(velo_group value) {
    velo_matmul_all_reduce_args::group = value;
    return *this;
  }
  // [.., k], the leading dimensions folded into m rows
  matmul_all_reduce_args& x(const velo_tensor& value) {
    velo_matmul_all_reduce_args::x = &value;
    return *this;
  }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  matmul_all_reduce_args& weight(const velo_tensor& value) {
    velo_matmul_all_reduce_args::weight = &value;
    return *this;
  }
  // [.., n], dtype of x
  matmul_all_reduce_args& y(const velo_tensor& value) {
    velo_matmul_all_reduce_args::y = &value;
    return *this;
  }
  // 1 when weight is stored [n, k]
  matmul_all_reduce_args& transpose_weight(bool value) {
    velo_matmul_all_reduce_args::transpose_weight = value;
    return *this;
  }
  // slices of rows: 0 chosen, 1 none, else at least so many, where there are as many rows; the same
  // on all ranks; MindSpeed's coc-parallel-num
  matmul_all_reduce_args& parallel_num(std::int64_t value) {
    velo_matmul_all_reduce_args::parallel_num = value;
    return *this;
  }
};

inline outcome<> matmul_all_reduce(stream_ref stream, const matmul_all_reduce_args& args) {
  return detail::check(VELO_FN(matmul_all_reduce)(stream.get(), &args));
}

// `y = part_rank(sum_ranks(x @ op(weight)))`.
struct matmul_reduce_scatter_args : velo_matmul_reduce_scatter_args {
  matmul_reduce_scatter_args() noexcept
      : velo_matmul_reduce_scatter_args VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  matmul_reduce_scatter_args& group(velo_group value) {
    velo_matmul_reduce_scatter_args::group = value;
    return *this;
  }
  // [s, .., k]; s divides by the ranks
  matmul_reduce_scatter_args& x(const velo_tensor& value) {
    velo_matmul_reduce_scatter_args::x = &value;
    return *this;
  }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  matmul_reduce_scatter_args& weight(const velo_tensor& value) {
    velo_matmul_reduce_scatter_args::weight = &value;
    return *this;
  }
  // [s / ranks, .., n], dtype of x
  matmul_reduce_scatter_args& y(const velo_tensor& value) {
    velo_matmul_reduce_scatter_args::y = &value;
    return *this;
  }
  // 1 when weight is stored [n, k]
  matmul_reduce_scatter_args& transpose_weight(bool value) {
    velo_matmul_reduce_scatter_args::transpose_weight = value;
    return *this;
  }
  // slices of rows: 0 chosen, 1 none, else at least so many, where there are as many rows; the same
  // on all ranks; MindSpeed's coc-parallel-num
  matmul_reduce_scatter_args& parallel_num(std::int64_t value) {
    velo_matmul_reduce_scatter_args::parallel_num = value;
    return *this;
  }
};

inline outcome<> matmul_reduce_scatter(stream_ref stream, const matmul_reduce_scatter_args& args) {
  return detail::check(VELO_FN(matmul_reduce_scatter)(stream.get(), &args));
}

// `y = gather_ranks(x) @ op(weight)`.
struct all_gather_matmul_args : velo_all_gather_matmul_args {
  all_gather_matmul_args() noexcept
      : velo_all_gather_matmul_args VELO_ALL_GATHER_MATMUL_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  all_gather_matmul_args& group(velo_group value) {
    velo_all_gather_matmul_args::group = value;
    return *this;
  }
  // [s, .., k]
  all_gather_matmul_args& x(const velo_tensor& value) {
    velo_all_gather_matmul_args::x = &value;
    return *this;
  }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  all_gather_matmul_args& weight(const velo_tensor& value) {
    velo_all_gather_matmul_args::weight = &value;
    return *this;
  }
  // [ranks * s, .., n], dtype of x
  all_gather_matmul_args& y(const velo_tensor& value) {
    velo_all_gather_matmul_args::y = &value;
    return *this;
  }
  // x of all ranks, in their order along the first dimension: what the gradient to weight needs
  all_gather_matmul_args& gathered(const velo_tensor& value) {
    velo_all_gather_matmul_args::gathered = &value;
    return *this;
  }
  all_gather_matmul_args& gathered(std::nullptr_t) {
    velo_all_gather_matmul_args::gathered = nullptr;
    return *this;
  }
  // 1 when weight is stored [n, k]
  all_gather_matmul_args& transpose_weight(bool value) {
    velo_all_gather_matmul_args::transpose_weight = value;
    return *this;
  }
  // slices of rows: 0 chosen, 1 none, else at least so many, where there are as many rows; the same
  // on all ranks; MindSpeed's coc-parallel-num
  all_gather_matmul_args& parallel_num(std::int64_t value) {
    velo_all_gather_matmul_args::parallel_num = value;
    return *this;
  }
};

inline outcome<> all_gather_matmul(stream_ref stream, const all_gather_matmul_args& args) {
  return detail::check(VELO_FN(all_gather_matmul)(stream.get(), &args));
}

// `y = part_rank(sum_scatter(gather_ranks(x) @ op(weight)))`.
struct all_gather_matmul_reduce_scatter_args : velo_all_gather_matmul_reduce_scatter_args {
  all_gather_matmul_reduce_scatter_args() noexcept
      : velo_all_gather_matmul_reduce_scatter_args VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT {}

  // the ranks whose x is gathered, of the stream's context; NULL: this one alone
  all_gather_matmul_reduce_scatter_args& gather_group(velo_group value) {
    velo_all_gather_matmul_reduce_scatter_args::gather_group = value;
    return *this;
  }
  // the ranks whose products are summed and divided, another group; NULL: this one alone
  all_gather_matmul_reduce_scatter_args& scatter_group(velo_group value) {
    velo_all_gather_matmul_reduce_scatter_args::scatter_group = value;
    return *this;
  }
  // [s, .., k]
  all_gather_matmul_reduce_scatter_args& x(const velo_tensor& value) {
    velo_all_gather_matmul_reduce_scatter_args::x = &value;
    return *this;
  }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  all_gather_matmul_reduce_scatter_args& weight(const velo_tensor& value) {
    velo_all_gather_matmul_reduce_scatter_args::weight = &value;
    return *this;
  }
  // [gathering ranks * s / summing ranks, .., n], dtype of x
  all_gather_matmul_reduce_scatter_args& y(const velo_tensor& value) {
    velo_all_gather_matmul_reduce_scatter_args::y = &value;
    return *this;
  }
  // x of all ranks, in their order along the first dimension: what the gradient to weight needs
  all_gather_matmul_reduce_scatter_args& gathered(const velo_tensor& value) {
    velo_all_gather_matmul_reduce_scatter_args::gathered = &value;
    return *this;
  }
  all_gather_matmul_reduce_scatter_args& gathered(std::nullptr_t) {
    velo_all_gather_matmul_reduce_scatter_args::gathered = nullptr;
    return *this;
  }
  // 1 when weight is stored [n, k]
  all_gather_matmul_reduce_scatter_args& transpose_weight(bool value) {
    velo_all_gather_matmul_reduce_scatter_args::transpose_weight = value;
    return *this;
  }
  // slices of rows: 0 chosen, 1 none, else at least so many, where there are as many rows; the same
  // on all ranks; MindSpeed's coc-parallel-num
  all_gather_matmul_reduce_scatter_args& parallel_num(std::int64_t value) {
    velo_all_gather_matmul_reduce_scatter_args::parallel_num = value;
    return *this;
  }
};

inline outcome<> all_gather_matmul_reduce_scatter(
    stream_ref stream, const all_gather_matmul_reduce_scatter_args& args) {
  return detail::check(VELO_FN(all_gather_matmul_reduce_scatter)(stream.get(), &args));
}

VELO_CPP_END
