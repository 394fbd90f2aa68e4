// Operators in C++: rms_norm(stream, rms_norm_args().x(x).gamma(gamma).y(y)).
//
// An args object starts with every attribute at its default and every tensor absent; each setter
// returns the object. It keeps pointers: tensors given to it must live until the call returns,
// their data until the work is done. A failure throws velo::error, or is returned as
// velo::result<void> where exceptions are off. velo/ops_<family>.h says what each operator
// computes.
//
// A list of tensors is velo_tensors{pointer, count} over velo_tensor: std::vector<velo_tensor>
// list(views.begin(), views.end()); the views must live until the call returns, too.
//
// Generated from abi/spec: change that and build the target `generate`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "velo/api.h"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/stream.hpp"
#include "velo/tensor.hpp"

VELO_CPP_BEGIN

// ---- norm

// `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`.
struct rms_norm_args : velo_rms_norm_args {
  using self = rms_norm_args;
  using base = velo_rms_norm_args;
  rms_norm_args() noexcept : velo_rms_norm_args VELO_RMS_NORM_ARGS_INIT {}

  // [..., n], compact rows
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32, the shape of x with a 1 for each dimension that gamma has; what the gradient needs;
  // NaN where these hold no element
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // added to the mean square; a finite number
  self& epsilon(double value) { return base::epsilon = value, *this; }
};

inline outcome<> rms_norm(stream_ref stream, const rms_norm_args& args) {
  return detail::check(VELO_FN(rms_norm)(stream.get(), &args));
}

// `dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x *
// rstd)`.
struct rms_norm_backward_args : velo_rms_norm_backward_args {
  using self = rms_norm_backward_args;
  using base = velo_rms_norm_backward_args;
  rms_norm_backward_args() noexcept
      : velo_rms_norm_backward_args VELO_RMS_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the forward gain
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // float32, shape of gamma
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // 1 adds to dgamma instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> rms_norm_backward(stream_ref stream, const rms_norm_backward_args& args) {
  return detail::check(VELO_FN(rms_norm_backward)(stream.get(), &args));
}

// `mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma +
// beta`.
struct layer_norm_args : velo_layer_norm_args {
  using self = layer_norm_args;
  using base = velo_layer_norm_args;
  layer_norm_args() noexcept : velo_layer_norm_args VELO_LAYER_NORM_ARGS_INIT {}

  // [..., n], compact rows
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x; NULL = 1
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  self& gamma(std::nullptr_t) { return base::gamma = nullptr, *this; }
  // shape of gamma, [n] without it; float32, or the dtype of x; NULL = 0
  self& beta(const velo_tensor& value) { return base::beta = &value, *this; }
  self& beta(std::nullptr_t) { return base::beta = nullptr, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32, the shape of x with a 1 for each normalized dimension; what the gradient needs; NaN
  // where these hold no element
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  self& mean(std::nullptr_t) { return base::mean = nullptr, *this; }
  // like mean
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // added to the mean square; a finite number
  self& epsilon(double value) { return base::epsilon = value, *this; }
};

inline outcome<> layer_norm(stream_ref stream, const layer_norm_args& args) {
  return detail::check(VELO_FN(layer_norm)(stream.get(), &args));
}

// `g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma
// = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`.
struct layer_norm_backward_args : velo_layer_norm_backward_args {
  using self = layer_norm_backward_args;
  using base = velo_layer_norm_backward_args;
  layer_norm_backward_args() noexcept
      : velo_layer_norm_backward_args VELO_LAYER_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the forward gain; NULL = 1
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  self& gamma(std::nullptr_t) { return base::gamma = nullptr, *this; }
  // from the forward pass
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // float32, the normalized dimensions of x
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // like dgamma
  self& dbeta(const velo_tensor& value) { return base::dbeta = &value, *this; }
  self& dbeta(std::nullptr_t) { return base::dbeta = nullptr, *this; }
  // 1 adds to dgamma and dbeta instead of writing them
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> layer_norm_backward(stream_ref stream, const layer_norm_backward_args& args) {
  return detail::check(VELO_FN(layer_norm_backward)(stream.get(), &args));
}

// `z = dropout(x * rowscale * layerscale) + residual`; `y = z / sqrt(mean(z^2) + epsilon) * gamma`.
struct dropout_add_rms_norm_args : velo_dropout_add_rms_norm_args {
  using self = dropout_add_rms_norm_args;
  using base = velo_dropout_add_rms_norm_args;
  dropout_add_rms_norm_args() noexcept
      : velo_dropout_add_rms_norm_args VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT {}

  // [..., n]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x; float32, or the dtype of x; NULL = 0
  self& residual(const velo_tensor& value) { return base::residual = &value, *this; }
  self& residual(std::nullptr_t) { return base::residual = nullptr, *this; }
  // [n]; float32, or the dtype of x if the residual has that, too
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // shape of x without n, dtype of x; NULL = 1
  self& rowscale(const velo_tensor& value) { return base::rowscale = &value, *this; }
  self& rowscale(std::nullptr_t) { return base::rowscale = nullptr, *this; }
  // [n], dtype of x; NULL = 1
  self& layerscale(const velo_tensor& value) { return base::layerscale = &value, *this; }
  self& layerscale(std::nullptr_t) { return base::layerscale = nullptr, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // z, shape of x, dtype of the residual; may be the residual itself
  self& pre_norm(const velo_tensor& value) { return base::pre_norm = &value, *this; }
  self& pre_norm(std::nullptr_t) { return base::pre_norm = nullptr, *this; }
  // uint8, shape of x: 1 where an element is kept, else 0
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  self& mask(std::nullptr_t) { return base::mask = nullptr, *this; }
  // float32, shape of x with 1 for n; what the gradient needs
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // probability of dropping an element, as `dropout` has it; 1 drops all
  self& p(double value) { return base::p = value, *this; }
  // key of the generator, as `dropout` has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // upper half of its counter, as `dropout` has it
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // added to the mean square; a finite number
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // 1 makes pre_norm float32; without a residual only
  self& residual_in_fp32(bool value) { return base::residual_in_fp32 = value, *this; }
  // a value for each dimension of x: where x begins in the whole, whose indices decide
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // the sizes of the whole; by default those of x
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout_add_rms_norm(stream_ref stream, const dropout_add_rms_norm_args& args) {
  return detail::check(VELO_FN(dropout_add_rms_norm)(stream.get(), &args));
}

// `dz = dpre_norm + rms_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`;
// `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale
// = sum[columns](dz * m * layerscale * x)`.
struct dropout_add_rms_norm_backward_args : velo_dropout_add_rms_norm_backward_args {
  using self = dropout_add_rms_norm_backward_args;
  using base = velo_dropout_add_rms_norm_backward_args;
  dropout_add_rms_norm_backward_args() noexcept
      : velo_dropout_add_rms_norm_backward_args VELO_DROPOUT_ADD_RMS_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // gradient of pre_norm, like it; NULL = 0
  self& dpre_norm(const velo_tensor& value) { return base::dpre_norm = &value, *this; }
  self& dpre_norm(std::nullptr_t) { return base::dpre_norm = nullptr, *this; }
  // the forward input; what drowscale and dlayerscale need
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // from the forward pass; float32, or the dtype of x
  self& pre_norm(const velo_tensor& value) { return base::pre_norm = &value, *this; }
  // the forward gain
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // that of the forward call
  self& rowscale(const velo_tensor& value) { return base::rowscale = &value, *this; }
  self& rowscale(std::nullptr_t) { return base::rowscale = nullptr, *this; }
  // that of the forward call
  self& layerscale(const velo_tensor& value) { return base::layerscale = &value, *this; }
  self& layerscale(std::nullptr_t) { return base::layerscale = nullptr, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // shape and dtype of pre_norm; may be dpre_norm itself
  self& dresidual(const velo_tensor& value) { return base::dresidual = &value, *this; }
  self& dresidual(std::nullptr_t) { return base::dresidual = nullptr, *this; }
  // float32, [n]
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // float32, shape of rowscale
  self& drowscale(const velo_tensor& value) { return base::drowscale = &value, *this; }
  self& drowscale(std::nullptr_t) { return base::drowscale = nullptr, *this; }
  // float32, [n]
  self& dlayerscale(const velo_tensor& value) { return base::dlayerscale = &value, *this; }
  self& dlayerscale(std::nullptr_t) { return base::dlayerscale = nullptr, *this; }
  // that of the forward call
  self& p(double value) { return base::p = value, *this; }
  // that of the forward call
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // that of the forward call
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 1 adds to the gradients of gains and scales instead of writing them
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // that of the forward call
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // those of the forward call
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout_add_rms_norm_backward(stream_ref stream,
                                               const dropout_add_rms_norm_backward_args& args) {
  return detail::check(VELO_FN(dropout_add_rms_norm_backward)(stream.get(), &args));
}

// `z = dropout(x * rowscale * layerscale) + residual`; `mu = mean(z)`; `y = (z - mu) / sqrt(mean((z
// - mu)^2) + epsilon) * gamma + beta`.
struct dropout_add_layer_norm_args : velo_dropout_add_layer_norm_args {
  using self = dropout_add_layer_norm_args;
  using base = velo_dropout_add_layer_norm_args;
  dropout_add_layer_norm_args() noexcept
      : velo_dropout_add_layer_norm_args VELO_DROPOUT_ADD_LAYER_NORM_ARGS_INIT {}

  // [..., n]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x; float32, or the dtype of x; NULL = 0
  self& residual(const velo_tensor& value) { return base::residual = &value, *this; }
  self& residual(std::nullptr_t) { return base::residual = nullptr, *this; }
  // [n]; float32, or the dtype of x if the residual has that, too
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // shape and dtype of gamma; NULL = 0
  self& beta(const velo_tensor& value) { return base::beta = &value, *this; }
  self& beta(std::nullptr_t) { return base::beta = nullptr, *this; }
  // shape of x without n, dtype of x; NULL = 1
  self& rowscale(const velo_tensor& value) { return base::rowscale = &value, *this; }
  self& rowscale(std::nullptr_t) { return base::rowscale = nullptr, *this; }
  // [n], dtype of x; NULL = 1
  self& layerscale(const velo_tensor& value) { return base::layerscale = &value, *this; }
  self& layerscale(std::nullptr_t) { return base::layerscale = nullptr, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // z, shape of x, dtype of the residual; may be the residual itself
  self& pre_norm(const velo_tensor& value) { return base::pre_norm = &value, *this; }
  self& pre_norm(std::nullptr_t) { return base::pre_norm = nullptr, *this; }
  // uint8, shape of x: 1 where an element is kept, else 0
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  self& mask(std::nullptr_t) { return base::mask = nullptr, *this; }
  // float32, shape of x with 1 for n; what the gradient needs
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  self& mean(std::nullptr_t) { return base::mean = nullptr, *this; }
  // float32, shape of x with 1 for n; what the gradient needs
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // probability of dropping an element, as `dropout` has it; 1 drops all
  self& p(double value) { return base::p = value, *this; }
  // key of the generator, as `dropout` has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // upper half of its counter, as `dropout` has it
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // added to the mean square; a finite number
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // 1 makes pre_norm float32; without a residual only
  self& residual_in_fp32(bool value) { return base::residual_in_fp32 = value, *this; }
  // a value for each dimension of x: where x begins in the whole, whose indices decide
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // the sizes of the whole; by default those of x
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout_add_layer_norm(stream_ref stream,
                                        const dropout_add_layer_norm_args& args) {
  return detail::check(VELO_FN(dropout_add_layer_norm)(stream.get(), &args));
}

// `dz = dpre_norm + layer_norm_backward(dy)`; `s = rowscale * layerscale`; `m = mask / (1 - p)`;
// `dresidual = dz`; `dx = dz * m * s`; `dlayerscale = sum[rows](dz * m * rowscale * x)`; `drowscale
// = sum[columns](dz * m * layerscale * x)`.
struct dropout_add_layer_norm_backward_args : velo_dropout_add_layer_norm_backward_args {
  using self = dropout_add_layer_norm_backward_args;
  using base = velo_dropout_add_layer_norm_backward_args;
  dropout_add_layer_norm_backward_args() noexcept
      : velo_dropout_add_layer_norm_backward_args VELO_DROPOUT_ADD_LAYER_NORM_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // gradient of pre_norm, like it; NULL = 0
  self& dpre_norm(const velo_tensor& value) { return base::dpre_norm = &value, *this; }
  self& dpre_norm(std::nullptr_t) { return base::dpre_norm = nullptr, *this; }
  // the forward input; what drowscale and dlayerscale need
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // from the forward pass; float32, or the dtype of x
  self& pre_norm(const velo_tensor& value) { return base::pre_norm = &value, *this; }
  // the forward gain
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // that of the forward call
  self& rowscale(const velo_tensor& value) { return base::rowscale = &value, *this; }
  self& rowscale(std::nullptr_t) { return base::rowscale = nullptr, *this; }
  // that of the forward call
  self& layerscale(const velo_tensor& value) { return base::layerscale = &value, *this; }
  self& layerscale(std::nullptr_t) { return base::layerscale = nullptr, *this; }
  // from the forward pass
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // shape and dtype of pre_norm; may be dpre_norm itself
  self& dresidual(const velo_tensor& value) { return base::dresidual = &value, *this; }
  self& dresidual(std::nullptr_t) { return base::dresidual = nullptr, *this; }
  // float32, [n]
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // float32, [n]
  self& dbeta(const velo_tensor& value) { return base::dbeta = &value, *this; }
  self& dbeta(std::nullptr_t) { return base::dbeta = nullptr, *this; }
  // float32, shape of rowscale
  self& drowscale(const velo_tensor& value) { return base::drowscale = &value, *this; }
  self& drowscale(std::nullptr_t) { return base::drowscale = nullptr, *this; }
  // float32, [n]
  self& dlayerscale(const velo_tensor& value) { return base::dlayerscale = &value, *this; }
  self& dlayerscale(std::nullptr_t) { return base::dlayerscale = nullptr, *this; }
  // that of the forward call
  self& p(double value) { return base::p = value, *this; }
  // that of the forward call
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // that of the forward call
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 1 adds to the gradients of gains and scales instead of writing them
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // that of the forward call
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // those of the forward call
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout_add_layer_norm_backward(stream_ref stream,
                                                 const dropout_add_layer_norm_backward_args& args) {
  return detail::check(VELO_FN(dropout_add_layer_norm_backward)(stream.get(), &args));
}

// ---- activation

// Forms of gelu.
enum class approximation : std::int64_t {
  none = VELO_APPROXIMATION_NONE,  // by the error function
  tanh = VELO_APPROXIMATION_TANH,  // by tanh, as GPT-2 and Megatron-LM compute it
};

// `silu(t) = t / (1 + exp(-t))`; `y = silu(x1) * x2`.
struct swiglu_args : velo_swiglu_args {
  using self = swiglu_args;
  using base = velo_swiglu_args;
  swiglu_args() noexcept : velo_swiglu_args VELO_SWIGLU_ARGS_INIT {}

  // rank 1..8; even size along dim
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x with dim halved, dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the split dimension; negative counts from the end
  self& dim(std::int64_t value) { return base::dim = value, *this; }
};

inline outcome<> swiglu(stream_ref stream, const swiglu_args& args) {
  return detail::check(VELO_FN(swiglu)(stream.get(), &args));
}

// `s = 1 / (1 + exp(-x1))`; `dx1 = dy * x2 * s * (1 + x1 * (1 - s))`; `dx2 = dy * silu(x1)`.
struct swiglu_backward_args : velo_swiglu_backward_args {
  using self = swiglu_backward_args;
  using base = velo_swiglu_backward_args;
  swiglu_backward_args() noexcept : velo_swiglu_backward_args VELO_SWIGLU_BACKWARD_ARGS_INIT {}

  // shape of x with dim halved, dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // as in the forward call
  self& dim(std::int64_t value) { return base::dim = value, *this; }
};

inline outcome<> swiglu_backward(stream_ref stream, const swiglu_backward_args& args) {
  return detail::check(VELO_FN(swiglu_backward)(stream.get(), &args));
}

// `y = gelu(x1) * x2`.
struct geglu_args : velo_geglu_args {
  using self = geglu_args;
  using base = velo_geglu_args;
  geglu_args() noexcept : velo_geglu_args VELO_GEGLU_ARGS_INIT {}

  // rank 1..8; even size along dim
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x with dim halved, dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the split dimension; negative counts from the end
  self& dim(std::int64_t value) { return base::dim = value, *this; }
  // the form of gelu
  self& approximate(velo::approximation value) {
    return base::approximate = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> geglu(stream_ref stream, const geglu_args& args) {
  return detail::check(VELO_FN(geglu)(stream.get(), &args));
}

// `dx1 = dy * x2 * slope(x1)`; `dx2 = dy * gelu(x1)`.
struct geglu_backward_args : velo_geglu_backward_args {
  using self = geglu_backward_args;
  using base = velo_geglu_backward_args;
  geglu_backward_args() noexcept : velo_geglu_backward_args VELO_GEGLU_BACKWARD_ARGS_INIT {}

  // shape of x with dim halved, dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // as in the forward call
  self& dim(std::int64_t value) { return base::dim = value, *this; }
  // as in the forward call
  self& approximate(velo::approximation value) {
    return base::approximate = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> geglu_backward(stream_ref stream, const geglu_backward_args& args) {
  return detail::check(VELO_FN(geglu_backward)(stream.get(), &args));
}

// `y = max(x1, 0) * x2`.
struct reglu_args : velo_reglu_args {
  using self = reglu_args;
  using base = velo_reglu_args;
  reglu_args() noexcept : velo_reglu_args VELO_REGLU_ARGS_INIT {}

  // rank 1..8; even size along dim
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x with dim halved, dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the split dimension; negative counts from the end
  self& dim(std::int64_t value) { return base::dim = value, *this; }
};

inline outcome<> reglu(stream_ref stream, const reglu_args& args) {
  return detail::check(VELO_FN(reglu)(stream.get(), &args));
}

// `dx1 = dy * x2 * step(x1)`; `dx2 = dy * max(x1, 0)`.
struct reglu_backward_args : velo_reglu_backward_args {
  using self = reglu_backward_args;
  using base = velo_reglu_backward_args;
  reglu_backward_args() noexcept : velo_reglu_backward_args VELO_REGLU_BACKWARD_ARGS_INIT {}

  // shape of x with dim halved, dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // as in the forward call
  self& dim(std::int64_t value) { return base::dim = value, *this; }
};

inline outcome<> reglu_backward(stream_ref stream, const reglu_backward_args& args) {
  return detail::check(VELO_FN(reglu_backward)(stream.get(), &args));
}

// `y = x * Phi(x)`.
struct gelu_args : velo_gelu_args {
  using self = gelu_args;
  using base = velo_gelu_args;
  gelu_args() noexcept : velo_gelu_args VELO_GELU_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the form of gelu
  self& approximate(velo::approximation value) {
    return base::approximate = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> gelu(stream_ref stream, const gelu_args& args) {
  return detail::check(VELO_FN(gelu)(stream.get(), &args));
}

// `dx = dy * (Phi(x) + x * phi(x))`.
struct gelu_backward_args : velo_gelu_backward_args {
  using self = gelu_backward_args;
  using base = velo_gelu_backward_args;
  gelu_backward_args() noexcept : velo_gelu_backward_args VELO_GELU_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be dy or x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // as in the forward call
  self& approximate(velo::approximation value) {
    return base::approximate = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> gelu_backward(stream_ref stream, const gelu_backward_args& args) {
  return detail::check(VELO_FN(gelu_backward)(stream.get(), &args));
}

// `y = x / (1 + exp(-1.702 * x))`.
struct fast_gelu_args : velo_fast_gelu_args {
  using self = fast_gelu_args;
  using base = velo_fast_gelu_args;
  fast_gelu_args() noexcept : velo_fast_gelu_args VELO_FAST_GELU_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> fast_gelu(stream_ref stream, const fast_gelu_args& args) {
  return detail::check(VELO_FN(fast_gelu)(stream.get(), &args));
}

// `s = 1 / (1 + exp(-1.702 * x))`; `dx = dy * (s + 1.702 * x * s * (1 - s))`.
struct fast_gelu_backward_args : velo_fast_gelu_backward_args {
  using self = fast_gelu_backward_args;
  using base = velo_fast_gelu_backward_args;
  fast_gelu_backward_args() noexcept
      : velo_fast_gelu_backward_args VELO_FAST_GELU_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be dy or x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
};

inline outcome<> fast_gelu_backward(stream_ref stream, const fast_gelu_backward_args& args) {
  return detail::check(VELO_FN(fast_gelu_backward)(stream.get(), &args));
}

// `y = x / (1 + exp(-x))`.
struct silu_args : velo_silu_args {
  using self = silu_args;
  using base = velo_silu_args;
  silu_args() noexcept : velo_silu_args VELO_SILU_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> silu(stream_ref stream, const silu_args& args) {
  return detail::check(VELO_FN(silu)(stream.get(), &args));
}

// `s = 1 / (1 + exp(-x))`; `dx = dy * (s + x * s * (1 - s))`.
struct silu_backward_args : velo_silu_backward_args {
  using self = silu_backward_args;
  using base = velo_silu_backward_args;
  silu_backward_args() noexcept : velo_silu_backward_args VELO_SILU_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be dy or x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
};

inline outcome<> silu_backward(stream_ref stream, const silu_backward_args& args) {
  return detail::check(VELO_FN(silu_backward)(stream.get(), &args));
}

// `y = max(x, 0)`.
struct relu_args : velo_relu_args {
  using self = relu_args;
  using base = velo_relu_args;
  relu_args() noexcept : velo_relu_args VELO_RELU_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> relu(stream_ref stream, const relu_args& args) {
  return detail::check(VELO_FN(relu)(stream.get(), &args));
}

// `dx = dy * step(x)`.
struct relu_backward_args : velo_relu_backward_args {
  using self = relu_backward_args;
  using base = velo_relu_backward_args;
  relu_backward_args() noexcept : velo_relu_backward_args VELO_RELU_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be dy or x itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
};

inline outcome<> relu_backward(stream_ref stream, const relu_backward_args& args) {
  return detail::check(VELO_FN(relu_backward)(stream.get(), &args));
}

// ---- rope

// How a rotary embedding reaches positions beyond the trained ones.
enum class rope_scaling : std::int64_t {
  none = VELO_ROPE_SCALING_NONE,        // it does not
  linear = VELO_ROPE_SCALING_LINEAR,    // positions / factor
  dynamic = VELO_ROPE_SCALING_DYNAMIC,  // a base that grows with the length (dynamic NTK)
  yarn = VELO_ROPE_SCALING_YARN,        // low frequencies / factor, by turns in the trained length
  llama3 = VELO_ROPE_SCALING_LLAMA3,    // low frequencies / factor, by wavelength
};

// Which features are rotated together.
enum class rotary_mode : std::int64_t {
  half = VELO_ROTARY_MODE_HALF,                // feature i with feature i + R/2 (GPT-NeoX, Llama in
                                               // Hugging Face)
  interleaved = VELO_ROTARY_MODE_INTERLEAVED,  // feature 2i with feature 2i + 1 (GPT-J, the paper)
};

// `y = x * cos + rotate(x) * sin`.
struct rotary_position_embedding_args : velo_rotary_position_embedding_args {
  using self = rotary_position_embedding_args;
  using base = velo_rotary_position_embedding_args;
  rotary_position_embedding_args() noexcept
      : velo_rotary_position_embedding_args VELO_ROTARY_POSITION_EMBEDDING_ARGS_INIT {}

  // [.., .., .., D]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // 4-D, broadcast against x (with positions [P, R]): each size equals that of x or is 1; the last
  // is the rotated width R, even, at most D; float32 or the dtype of x
  self& cos(const velo_tensor& value) { return base::cos = &value, *this; }
  // shape and dtype of cos
  self& sin(const velo_tensor& value) { return base::sin = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // which features form a pair
  self& mode(velo::rotary_mode value) {
    return base::mode = static_cast<std::int64_t>(value), *this;
  }
  // 3-D, broadcast against the rows of x: cos and sin are then [P, R], and a row of x takes the row
  // of the tables that it names, in [0, P), else VELO_ERR_ARGUMENT before anything is written
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  self& positions(std::nullptr_t) { return base::positions = nullptr, *this; }
};

inline outcome<> rotary_position_embedding(stream_ref stream,
                                           const rotary_position_embedding_args& args) {
  return detail::check(VELO_FN(rotary_position_embedding)(stream.get(), &args));
}

// `dx = dy * cos + rotate^T(dy * sin)`; `dcos = sum(dy * x)`; `dsin = sum(dy * rotate(x))`.
struct rotary_position_embedding_backward_args : velo_rotary_position_embedding_backward_args {
  using self = rotary_position_embedding_backward_args;
  using base = velo_rotary_position_embedding_backward_args;
  rotary_position_embedding_backward_args() noexcept
      : velo_rotary_position_embedding_backward_args
        VELO_ROTARY_POSITION_EMBEDDING_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward table
  self& cos(const velo_tensor& value) { return base::cos = &value, *this; }
  // the forward table
  self& sin(const velo_tensor& value) { return base::sin = &value, *this; }
  // the forward input, needed for dcos and dsin only
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // shape and dtype of dy; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // float32, shape of cos; together with dsin
  self& dcos(const velo_tensor& value) { return base::dcos = &value, *this; }
  self& dcos(std::nullptr_t) { return base::dcos = nullptr, *this; }
  // float32, shape of sin; together with dcos
  self& dsin(const velo_tensor& value) { return base::dsin = &value, *this; }
  self& dsin(std::nullptr_t) { return base::dsin = nullptr, *this; }
  // as in the forward call
  self& mode(velo::rotary_mode value) {
    return base::mode = static_cast<std::int64_t>(value), *this;
  }
  // as in the forward call; dcos and dsin are then [P, R], 0 in rows that no position names
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  self& positions(std::nullptr_t) { return base::positions = nullptr, *this; }
};

inline outcome<> rotary_position_embedding_backward(
    stream_ref stream, const rotary_position_embedding_backward_args& args) {
  return detail::check(VELO_FN(rotary_position_embedding_backward)(stream.get(), &args));
}

// `cos[p, i] = m * cos(positions[p] * f[i])`; `sin[p, i] = m * sin(positions[p] * f[i])`; `f[i] =
// theta^(-2 * i / D)`.
struct rope_frequencies_args : velo_rope_frequencies_args {
  using self = rope_frequencies_args;
  using base = velo_rope_frequencies_args;
  rope_frequencies_args() noexcept : velo_rope_frequencies_args VELO_ROPE_FREQUENCIES_ARGS_INIT {}

  // any shape; each in [0, 2^24)
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  // float32, shape of positions with D appended
  self& cos(const velo_tensor& value) { return base::cos = &value, *this; }
  // float32, shape of cos
  self& sin(const velo_tensor& value) { return base::sin = &value, *this; }
  // float32, [D / 2]: f
  self& frequencies(const velo_tensor& value) { return base::frequencies = &value, *this; }
  self& frequencies(std::nullptr_t) { return base::frequencies = nullptr, *this; }
  // D, even: features that turn
  self& dim(std::int64_t value) { return base::dim = value, *this; }
  // the slowest pair turns by theta^(2 / D - 1)
  self& theta(double value) { return base::theta = value, *this; }
  // how positions beyond the trained ones are reached
  self& scaling(velo::rope_scaling value) {
    return base::scaling = static_cast<std::int64_t>(value), *this;
  }
  // context length over original_length
  self& factor(double value) { return base::factor = value, *this; }
  // M: positions that the model was trained on
  self& original_length(std::int64_t value) { return base::original_length = value, *this; }
  // yarn
  self& beta_fast(double value) { return base::beta_fast = value, *this; }
  // yarn
  self& beta_slow(double value) { return base::beta_slow = value, *this; }
  // yarn
  self& mscale(double value) { return base::mscale = value, *this; }
  // yarn; not 0: the caller multiplies its softmax scale by c(mscale_all_dim)^2
  self& mscale_all_dim(double value) { return base::mscale_all_dim = value, *this; }
  // yarn: m, unless it is 0
  self& attention_factor(double value) { return base::attention_factor = value, *this; }
  // yarn: 1 rounds the ends of the ramp to whole features
  self& truncate(bool value) { return base::truncate = value, *this; }
  // llama3
  self& low_freq_factor(double value) { return base::low_freq_factor = value, *this; }
  // llama3: more than low_freq_factor
  self& high_freq_factor(double value) { return base::high_freq_factor = value, *this; }
  // which features form a pair
  self& mode(velo::rotary_mode value) {
    return base::mode = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> rope_frequencies(stream_ref stream, const rope_frequencies_args& args) {
  return detail::check(VELO_FN(rope_frequencies)(stream.get(), &args));
}

// ---- matmul

// Activation within a feed-forward network; gated ones come last.
enum class ffn_activation : std::int64_t {
  fastgelu = VELO_FFN_ACTIVATION_FASTGELU,  // x * sigmoid(1.702 * x)
  gelu = VELO_FFN_ACTIVATION_GELU,          // by the error function
  relu = VELO_FFN_ACTIVATION_RELU,          // max(x, 0)
  silu = VELO_FFN_ACTIVATION_SILU,          // x * sigmoid(x)
  geglu = VELO_FFN_ACTIVATION_GEGLU,        // gelu of the gate times its factor
  swiglu = VELO_FFN_ACTIVATION_SWIGLU,      // silu of the gate times its factor
  reglu = VELO_FFN_ACTIVATION_REGLU,        // relu of the gate times its factor
};

// Element type of a quantized product.
enum class quant_output : std::int64_t {
  float16 = VELO_QUANT_OUTPUT_FLOAT16,    // float16
  bfloat16 = VELO_QUANT_OUTPUT_BFLOAT16,  // bfloat16
  float32 = VELO_QUANT_OUTPUT_FLOAT32,    // float32
  int8 = VELO_QUANT_OUTPUT_INT8,          // int8
};

// Activation behind a quantized product, by MindSpeed's numbers.
enum class quant_activation : std::int64_t {
  none = VELO_QUANT_ACTIVATION_NONE,            // none
  relu = VELO_QUANT_ACTIVATION_RELU,            // relu
  gelu_tanh = VELO_QUANT_ACTIVATION_GELU_TANH,  // gelu by tanh
  gelu = VELO_QUANT_ACTIVATION_GELU,            // gelu by the error function
  fast_gelu = VELO_QUANT_ACTIVATION_FAST_GELU,  // x * sigmoid(1.702 * x)
  silu = VELO_QUANT_ACTIVATION_SILU,            // x * sigmoid(x)
};

// What a list of groups holds.
enum class group_list_kind : std::int64_t {
  cumulative = VELO_GROUP_LIST_KIND_CUMULATIVE,  // ends: never decreasing, the last the size of the
                                                 // axis
  counts = VELO_GROUP_LIST_KIND_COUNTS,          // sizes, whose sum is that of the axis
};

// The axis that groups cut, by MindSpeed's numbers.
enum class group_type : std::int64_t {
  rows = VELO_GROUP_TYPE_ROWS,    // the rows of x
  depth = VELO_GROUP_TYPE_DEPTH,  // the axis that is summed over
};

// Element type of a product.
enum class product_dtype : std::int64_t {
  like_a = VELO_PRODUCT_DTYPE_LIKE_A,    // the dtype of a
  float32 = VELO_PRODUCT_DTYPE_FLOAT32,  // float32 whatever the inputs
};

// `c = op(a) @ op(b) + bias`.
struct matmul_args : velo_matmul_args {
  using self = matmul_args;
  using base = velo_matmul_args;
  matmul_args() noexcept : velo_matmul_args VELO_MATMUL_ARGS_INIT {}

  // [.., m, k], or [k, m] with transpose_a; unit stride in the last dimension
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  // [k, n], or [n, k] with transpose_b; dtype of a; unit stride in the last dimension; NULL when
  // packed is given
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  self& b(std::nullptr_t) { return base::b = nullptr, *this; }
  // the weight in place of b, of a's dtype; transpose_b must be 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // float32 or the dtype of a; broadcast to c: each dimension, counted from the last, is c's, 1 or
  // missing
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [.., m, n]; dtype of a, or float32; unit stride in the last dimension
  self& c(const velo_tensor& value) { return base::c = &value, *this; }
  // 1 when a is stored [k, m]
  self& transpose_a(bool value) { return base::transpose_a = value, *this; }
  // 1 when b is stored [n, k]
  self& transpose_b(bool value) { return base::transpose_b = value, *this; }
  // 1 adds to c (in float32, rounded once) instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of c
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> matmul(stream_ref stream, const matmul_args& args) {
  return detail::check(VELO_FN(matmul)(stream.get(), &args));
}

// `da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[broadcast](dc)`.
struct matmul_backward_args : velo_matmul_backward_args {
  using self = matmul_backward_args;
  using base = velo_matmul_backward_args;
  matmul_backward_args() noexcept : velo_matmul_backward_args VELO_MATMUL_BACKWARD_ARGS_INIT {}

  // [.., m, n], strided as a of matmul
  self& dc(const velo_tensor& value) { return base::dc = &value, *this; }
  // [.., m, k], dtype of dc; db needs it
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  self& a(std::nullptr_t) { return base::a = nullptr, *this; }
  // [k, n], dtype of dc; da needs it
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  self& b(std::nullptr_t) { return base::b = nullptr, *this; }
  // for the shape of dbias
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // shape of a, dtype of dc
  self& da(const velo_tensor& value) { return base::da = &value, *this; }
  self& da(std::nullptr_t) { return base::da = nullptr, *this; }
  // shape of b
  self& db(const velo_tensor& value) { return base::db = &value, *this; }
  self& db(std::nullptr_t) { return base::db = nullptr, *this; }
  // float32, shape of bias, or [n] without it
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // 1 when a is stored [k, m]
  self& transpose_a(bool value) { return base::transpose_a = value, *this; }
  // 1 when b is stored [n, k]
  self& transpose_b(bool value) { return base::transpose_b = value, *this; }
  // 1 adds to db and dbias (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of db
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> matmul_backward(stream_ref stream, const matmul_backward_args& args) {
  return detail::check(VELO_FN(matmul_backward)(stream.get(), &args));
}

// `c = op(a) @ op(b) + bias + add`.
struct matmul_add_args : velo_matmul_add_args {
  using self = matmul_add_args;
  using base = velo_matmul_add_args;
  matmul_add_args() noexcept : velo_matmul_add_args VELO_MATMUL_ADD_ARGS_INIT {}

  // as of matmul
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  // as of matmul
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  self& b(std::nullptr_t) { return base::b = nullptr, *this; }
  // as of matmul
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // one row, [n] or [1, n], float32 or the dtype of a; add takes the others
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // dtype of a; broadcast to c: each dimension, counted from the last, is c's, 1 or missing
  self& add(const velo_tensor& value) { return base::add = &value, *this; }
  // [.., m, n], dtype of a; unit stride in the last dimension
  self& c(const velo_tensor& value) { return base::c = &value, *this; }
  // 1 when a is stored [k, m]
  self& transpose_a(bool value) { return base::transpose_a = value, *this; }
  // 1 when b is stored [n, k]
  self& transpose_b(bool value) { return base::transpose_b = value, *this; }
};

inline outcome<> matmul_add(stream_ref stream, const matmul_add_args& args) {
  return detail::check(VELO_FN(matmul_add)(stream.get(), &args));
}

// `da = dc @ op(b)^T`; `db = op(a)^T @ dc`; `dbias = sum[rows](dc)`; `dadd = sum[broadcast](dc)`.
struct matmul_add_backward_args : velo_matmul_add_backward_args {
  using self = matmul_add_backward_args;
  using base = velo_matmul_add_backward_args;
  matmul_add_backward_args() noexcept
      : velo_matmul_add_backward_args VELO_MATMUL_ADD_BACKWARD_ARGS_INIT {}

  // [.., m, n], strided as a of matmul
  self& dc(const velo_tensor& value) { return base::dc = &value, *this; }
  // [.., m, k], dtype of dc; db needs it
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  self& a(std::nullptr_t) { return base::a = nullptr, *this; }
  // [k, n], dtype of dc; da needs it
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  self& b(std::nullptr_t) { return base::b = nullptr, *this; }
  // for its shape; dadd needs it
  self& add(const velo_tensor& value) { return base::add = &value, *this; }
  self& add(std::nullptr_t) { return base::add = nullptr, *this; }
  // shape of a, dtype of dc
  self& da(const velo_tensor& value) { return base::da = &value, *this; }
  self& da(std::nullptr_t) { return base::da = nullptr, *this; }
  // shape of b, dtype of dc
  self& db(const velo_tensor& value) { return base::db = &value, *this; }
  self& db(std::nullptr_t) { return base::db = nullptr, *this; }
  // float32, [n]
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // shape of add, dtype of dc
  self& dadd(const velo_tensor& value) { return base::dadd = &value, *this; }
  self& dadd(std::nullptr_t) { return base::dadd = nullptr, *this; }
  // 1 when a is stored [k, m]
  self& transpose_a(bool value) { return base::transpose_a = value, *this; }
  // 1 when b is stored [n, k]
  self& transpose_b(bool value) { return base::transpose_b = value, *this; }
};

inline outcome<> matmul_add_backward(stream_ref stream, const matmul_add_backward_args& args) {
  return detail::check(VELO_FN(matmul_add_backward)(stream.get(), &args));
}

// `silu(t) = t / (1 + exp(-t))`; `h = x @ op(weight) + bias`; `y = silu(h1) * h2`.
struct matmul_swiglu_args : velo_matmul_swiglu_args {
  using self = matmul_swiglu_args;
  using base = velo_matmul_swiglu_args;
  matmul_swiglu_args() noexcept : velo_matmul_swiglu_args VELO_MATMUL_SWIGLU_ARGS_INIT {}

  // [.., k]; unit stride in the last dimension
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, 2 n], or [2 n, k] with transpose_weight; dtype of x; unit stride in the last dimension;
  // NULL when packed is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // the weight [k, 2 n] in its place, of x's dtype; n must be a multiple of 96, transpose_weight 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [2 n], float32 or the dtype of x
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [.., n], dtype of x; unit stride in the last dimension
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // [.., 2 n], dtype of x: what the gradient needs
  self& h(const velo_tensor& value) { return base::h = &value, *this; }
  self& h(std::nullptr_t) { return base::h = nullptr, *this; }
  // 1 when the weight is stored [2 n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
};

inline outcome<> matmul_swiglu(stream_ref stream, const matmul_swiglu_args& args) {
  return detail::check(VELO_FN(matmul_swiglu)(stream.get(), &args));
}

// `s = 1 / (1 + exp(-h1))`; `dh1 = dy * h2 * s * (1 + h1 * (1 - s))`; `dh2 = dy * h1 * s`; `dx = dh
// @ op(weight)^T`; `dweight = op(x)^T @ dh`; `dbias = sum[rows](dh)`.
struct matmul_swiglu_backward_args : velo_matmul_swiglu_backward_args {
  using self = matmul_swiglu_backward_args;
  using base = velo_matmul_swiglu_backward_args;
  matmul_swiglu_backward_args() noexcept
      : velo_matmul_swiglu_backward_args VELO_MATMUL_SWIGLU_BACKWARD_ARGS_INIT {}

  // [.., n]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // [.., 2 n], dtype of dy: from the forward call
  self& h(const velo_tensor& value) { return base::h = &value, *this; }
  self& h(std::nullptr_t) { return base::h = nullptr, *this; }
  // [.., k], dtype of dy; dweight needs it
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // as in the forward call, where that took a pack the weight itself; dx needs it
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // the forward call's; read where h is computed again
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // shape of x, dtype of dy
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  self& dx(std::nullptr_t) { return base::dx = nullptr, *this; }
  // shape of the weight
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  self& dweight(std::nullptr_t) { return base::dweight = nullptr, *this; }
  // float32, [2 n]
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // 1 when the weight is stored [2 n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 adds to dweight and dbias (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of dweight
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> matmul_swiglu_backward(stream_ref stream,
                                        const matmul_swiglu_backward_args& args) {
  return detail::check(VELO_FN(matmul_swiglu_backward)(stream.get(), &args));
}

// `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = (x * rstd * gamma) @ op(weight) + bias`.
struct rms_norm_matmul_args : velo_rms_norm_matmul_args {
  using self = rms_norm_matmul_args;
  using base = velo_rms_norm_matmul_args;
  rms_norm_matmul_args() noexcept : velo_rms_norm_matmul_args VELO_RMS_NORM_MATMUL_ARGS_INIT {}

  // [.., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k], float32 or the dtype of x
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x; unit stride in the last dimension; NULL
  // when packed is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // the weight in its place, of x's dtype; transpose_weight must be 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [n], float32 or the dtype of x
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [.., n], dtype of x; unit stride in the last dimension
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32, [.., 1]: what the gradient needs
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // 1 when the weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // added to the mean square; a finite number
  self& epsilon(double value) { return base::epsilon = value, *this; }
};

inline outcome<> rms_norm_matmul(stream_ref stream, const rms_norm_matmul_args& args) {
  return detail::check(VELO_FN(rms_norm_matmul)(stream.get(), &args));
}

// `h = dy @ op(weight)^T`; `g = h * gamma`; `dx = rstd * (g - x * rstd^2 * mean(g * x))`; `dgamma =
// sum[rows](h * x * rstd)`; `dweight = (x * rstd * gamma)^T @ dy`; `dbias = sum[rows](dy)`.
struct rms_norm_matmul_backward_args : velo_rms_norm_matmul_backward_args {
  using self = rms_norm_matmul_backward_args;
  using base = velo_rms_norm_matmul_backward_args;
  rms_norm_matmul_backward_args() noexcept
      : velo_rms_norm_matmul_backward_args VELO_RMS_NORM_MATMUL_BACKWARD_ARGS_INIT {}

  // [.., n], dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // [.., k], the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the forward gain
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // from the forward call
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // as in the forward call; dx and dgamma need it
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // shape and dtype of x
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  self& dx(std::nullptr_t) { return base::dx = nullptr, *this; }
  // float32, [k]
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // shape of the weight
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  self& dweight(std::nullptr_t) { return base::dweight = nullptr, *this; }
  // float32, [n]
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // 1 when the weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 adds to dgamma, dweight and dbias (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of dweight
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> rms_norm_matmul_backward(stream_ref stream,
                                          const rms_norm_matmul_backward_args& args) {
  return detail::check(VELO_FN(rms_norm_matmul_backward)(stream.get(), &args));
}

// `grad += grad_output^T @ total_input`.
struct matmul_add_fp32_args : velo_matmul_add_fp32_args {
  using self = matmul_add_fp32_args;
  using base = velo_matmul_add_fp32_args;
  matmul_add_fp32_args() noexcept : velo_matmul_add_fp32_args VELO_MATMUL_ADD_FP32_ARGS_INIT {}

  // [.., t, k]
  self& total_input(const velo_tensor& value) { return base::total_input = &value, *this; }
  // [.., t, n], dtype of total_input
  self& grad_output(const velo_tensor& value) { return base::grad_output = &value, *this; }
  // float32, [n, k]
  self& grad(const velo_tensor& value) { return base::grad = &value, *this; }
};

inline outcome<> matmul_add_fp32(stream_ref stream, const matmul_add_fp32_args& args) {
  return detail::check(VELO_FN(matmul_add_fp32)(stream.get(), &args));
}

// `y[e] = x[e] @ op(weight[e]) + bias[e]`.
struct grouped_matmul_args : velo_grouped_matmul_args {
  using self = grouped_matmul_args;
  using base = velo_grouped_matmul_args;
  grouped_matmul_args() noexcept : velo_grouped_matmul_args VELO_GROUPED_MATMUL_ARGS_INIT {}

  // [m, k], or [k, m] with transpose_x
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [groups, k, n], of depth [k, n], dtype of x; NULL when packed is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // [groups, n], float32 or dtype of x; NULL for depth
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [m, n], of depth [groups, m, n]
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // a number for each group, which may be empty; or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [groups], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
  // which axis the list cuts
  self& group_type(velo::group_type value) {
    return base::group_type = static_cast<std::int64_t>(value), *this;
  }
  // 1 when x is stored [k, m], for depth only
  self& transpose_x(bool value) { return base::transpose_x = value, *this; }
  // 1 when weight is stored [groups, n, k] or [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 adds to y (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of y
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
  // a pack in place of weight, its count that of the groups, of x's dtype; transpose_weight must be
  // 0; NULL for depth
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> grouped_matmul(stream_ref stream, const grouped_matmul_args& args) {
  return detail::check(VELO_FN(grouped_matmul)(stream.get(), &args));
}

// `dx[e] = dy[e] @ op(weight[e])^T`; `dweight[e] = x[e]^T @ dy[e]`; `dbias[e] = sum[rows](dy[e])`.
struct grouped_matmul_backward_args : velo_grouped_matmul_backward_args {
  using self = grouped_matmul_backward_args;
  using base = velo_grouped_matmul_backward_args;
  grouped_matmul_backward_args() noexcept
      : velo_grouped_matmul_backward_args VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT {}

  // [m, n]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // [m, k], dtype of dy; dweight needs it
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // [groups, k, n], dtype of dy; dx needs it
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // [m, k], dtype of dy
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  self& dx(std::nullptr_t) { return base::dx = nullptr, *this; }
  // [groups, k, n]
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  self& dweight(std::nullptr_t) { return base::dweight = nullptr, *this; }
  // float32, [groups, n]
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // a number for each group, which may be empty; or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [groups], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
  // 1 when weight is stored [groups, n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 adds to dweight and dbias
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // dtype of dweight
  self& dtype(velo::product_dtype value) {
    return base::dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> grouped_matmul_backward(stream_ref stream,
                                         const grouped_matmul_backward_args& args) {
  return detail::check(VELO_FN(grouped_matmul_backward)(stream.get(), &args));
}

// `grad[e] += x[e]^T @ dy[e]`.
struct grouped_matmul_add_fp32_args : velo_grouped_matmul_add_fp32_args {
  using self = grouped_matmul_add_fp32_args;
  using base = velo_grouped_matmul_add_fp32_args;
  grouped_matmul_add_fp32_args() noexcept
      : velo_grouped_matmul_add_fp32_args VELO_GROUPED_MATMUL_ADD_FP32_ARGS_INIT {}

  // [m, k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [m, n], dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // float32, [groups, k, n] or [groups k, n]
  self& grad(const velo_tensor& value) { return base::grad = &value, *this; }
  // a number for each group, which may be empty; or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [groups], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> grouped_matmul_add_fp32(stream_ref stream,
                                         const grouped_matmul_add_fp32_args& args) {
  return detail::check(VELO_FN(grouped_matmul_add_fp32)(stream.get(), &args));
}

// `y = x @ ((weight + offset) * scale) + bias`.
struct weight_quant_matmul_args : velo_weight_quant_matmul_args {
  using self = weight_quant_matmul_args;
  using base = velo_weight_quant_matmul_args;
  weight_quant_matmul_args() noexcept
      : velo_weight_quant_matmul_args VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT {}

  // [.., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // int8 [k, n]; int4 as uint8 [k, n / 2] or int4 [k, n]; NULL when packed is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // [n], or [groups, n] for each k / groups, a multiple of 32; float32 or dtype of x
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  // shape and dtype of scale; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // [n], float32 or dtype of x
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [.., n], dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // 1 when weight is stored [n, k], int4 in pairs along k
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 gives a row the same bits among any number of rows; it has them anyway where x is float32 or
  // float16 and weight packed or not transposed, else more than 16 rows take longer
  self& row_invariant(bool value) { return base::row_invariant = value, *this; }
  // a pack with weight_only in place of weight; transpose_weight must be 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> weight_quant_matmul(stream_ref stream, const weight_quant_matmul_args& args) {
  return detail::check(VELO_FN(weight_quant_matmul)(stream.get(), &args));
}

// `dx = dy @ ((weight + offset) * scale)^T`.
struct weight_quant_matmul_backward_args : velo_weight_quant_matmul_backward_args {
  using self = weight_quant_matmul_backward_args;
  using base = velo_weight_quant_matmul_backward_args;
  weight_quant_matmul_backward_args() noexcept
      : velo_weight_quant_matmul_backward_args VELO_WEIGHT_QUANT_MATMUL_BACKWARD_ARGS_INIT {}

  // [.., n]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // int8 [k, n]; int4 as uint8 [k, n / 2] or int4 [k, n]
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [n] or [groups, n]; float32 or dtype of dy
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  // shape and dtype of scale; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // [.., k], dtype of dy
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
};

inline outcome<> weight_quant_matmul_backward(stream_ref stream,
                                              const weight_quant_matmul_backward_args& args) {
  return detail::check(VELO_FN(weight_quant_matmul_backward)(stream.get(), &args));
}

// `y[e] = x[e] @ ((weight[e] + offset[e]) * scale[e]) + bias[e]`.
struct weight_quant_grouped_matmul_args : velo_weight_quant_grouped_matmul_args {
  using self = weight_quant_grouped_matmul_args;
  using base = velo_weight_quant_grouped_matmul_args;
  weight_quant_grouped_matmul_args() noexcept
      : velo_weight_quant_grouped_matmul_args VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT {}

  // [m, k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // int8 [groups, k, n]; int4 as uint8 [groups, k, n / 2] or int4 [groups, k, n]; NULL when packed
  // is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // [groups, n], or [groups, g, n] for each k / g, a multiple of 32; float32 or dtype of x
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  // shape and dtype of scale; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // [groups, n], float32 or dtype of x
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [m, n], dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // a number for each group, which may be empty; or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [groups], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
  // 1 when weight is stored [groups, n, k], int4 in pairs along k
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // 1 gives a row the same bits among any number of rows; it has them anyway where x is float32 or
  // float16 and weight packed or not transposed, else more than 16 rows take longer
  self& row_invariant(bool value) { return base::row_invariant = value, *this; }
  // a pack with weight_only in place of weight, its count that of the groups; transpose_weight must
  // be 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> weight_quant_grouped_matmul(stream_ref stream,
                                             const weight_quant_grouped_matmul_args& args) {
  return detail::check(VELO_FN(weight_quant_grouped_matmul)(stream.get(), &args));
}

// `y[e] = act((x[e] @ weight[e] + bias[e]) * scale[e] * per_token_scale[e])`.
struct quant_grouped_matmul_args : velo_quant_grouped_matmul_args {
  using self = quant_grouped_matmul_args;
  using base = velo_quant_grouped_matmul_args;
  quant_grouped_matmul_args() noexcept
      : velo_quant_grouped_matmul_args VELO_QUANT_GROUPED_MATMUL_ARGS_INIT {}

  // [m, k], k at most 131071
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [groups, k, n]; NULL when packed is given
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  self& weight(std::nullptr_t) { return base::weight = nullptr, *this; }
  // [groups, n]: float32; bfloat16 for such a y; int64 for int8, a float32 in the low half
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  // [m]; NULL = 1, and for int8
  self& per_token_scale(const velo_tensor& value) { return base::per_token_scale = &value, *this; }
  self& per_token_scale(std::nullptr_t) { return base::per_token_scale = nullptr, *this; }
  // [groups, n], added to the sums; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [m, n]
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // a number for each group, which may be empty; or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [groups], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
  // dtype of y; int8 rounds to even, NaN to 0, without an activation
  self& output_dtype(velo::quant_output value) {
    return base::output_dtype = static_cast<std::int64_t>(value), *this;
  }
  // the activation
  self& act_type(velo::quant_activation value) {
    return base::act_type = static_cast<std::int64_t>(value), *this;
  }
  // 1 when weight is stored [groups, n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // a pack of int8 in place of weight, its count that of the groups; transpose_weight must be 0
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> quant_grouped_matmul(stream_ref stream, const quant_grouped_matmul_args& args) {
  return detail::check(VELO_FN(quant_grouped_matmul)(stream.get(), &args));
}

// `y = act(x @ weight1 + bias1) @ weight2 + bias2`.
struct ffn_args : velo_ffn_args {
  using self = ffn_args;
  using base = velo_ffn_args;
  ffn_args() noexcept : velo_ffn_args VELO_FFN_ARGS_INIT {}

  // [.., k1]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [experts, k1, n1], or [k1, n1]; dtype of x, int8, or int4 as uint8 [.., n1 / 2] or int4
  self& weight1(const velo_tensor& value) { return base::weight1 = &value, *this; }
  // [experts, k2, n2], or [k2, n2], as weight1; k2 is n1, half of it where gated
  self& weight2(const velo_tensor& value) { return base::weight2 = &value, *this; }
  // [experts, n1], or [n1]; float32 or dtype of x, int32 for int8
  self& bias1(const velo_tensor& value) { return base::bias1 = &value, *this; }
  self& bias1(std::nullptr_t) { return base::bias1 = nullptr, *this; }
  // [experts, n2], or [n2], as bias1
  self& bias2(const velo_tensor& value) { return base::bias2 = &value, *this; }
  self& bias2(std::nullptr_t) { return base::bias2 = nullptr, *this; }
  // of x int8: [1], [experts], or [experts, n1], [n1]
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  self& scale(std::nullptr_t) { return base::scale = nullptr, *this; }
  // of x int8: [1] or [experts]; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // of x int8: [experts, n1], or [n1]; float32, bfloat16 for such a y, int64 with a float32 in the
  // low half
  self& deq_scale1(const velo_tensor& value) { return base::deq_scale1 = &value, *this; }
  self& deq_scale1(std::nullptr_t) { return base::deq_scale1 = nullptr, *this; }
  // of x int8: [experts, n2], or [n2], dtype of deq_scale1
  self& deq_scale2(const velo_tensor& value) { return base::deq_scale2 = &value, *this; }
  self& deq_scale2(std::nullptr_t) { return base::deq_scale2 = nullptr, *this; }
  // of quantized weights: [experts, n1] or [experts, groups, n1], without experts if there are none
  self& antiquant_scale1(const velo_tensor& value) {
    return base::antiquant_scale1 = &value, *this;
  }
  self& antiquant_scale1(std::nullptr_t) { return base::antiquant_scale1 = nullptr, *this; }
  // as antiquant_scale1, of weight2
  self& antiquant_scale2(const velo_tensor& value) {
    return base::antiquant_scale2 = &value, *this;
  }
  self& antiquant_scale2(std::nullptr_t) { return base::antiquant_scale2 = nullptr, *this; }
  // as antiquant_scale1; NULL = 0
  self& antiquant_offset1(const velo_tensor& value) {
    return base::antiquant_offset1 = &value, *this;
  }
  self& antiquant_offset1(std::nullptr_t) { return base::antiquant_offset1 = nullptr, *this; }
  // as antiquant_scale2; NULL = 0
  self& antiquant_offset2(const velo_tensor& value) {
    return base::antiquant_offset2 = &value, *this;
  }
  self& antiquant_offset2(std::nullptr_t) { return base::antiquant_offset2 = nullptr, *this; }
  // [.., n2], dtype of x; of int8 output_dtype
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // rows of each expert, which may have none (expert_tokens_index, of kind counts expert_tokens);
  // or
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // [experts], in its place, checked when the call runs
  self& group_list_tensor(const velo_tensor& value) {
    return base::group_list_tensor = &value, *this;
  }
  self& group_list_tensor(std::nullptr_t) { return base::group_list_tensor = nullptr, *this; }
  // what the list says
  self& group_list_kind(velo::group_list_kind value) {
    return base::group_list_kind = static_cast<std::int64_t>(value), *this;
  }
  // act; gated ones without quantized weights
  self& activation(velo::ffn_activation value) {
    return base::activation = static_cast<std::int64_t>(value), *this;
  }
  // MindSpeed's choice of precision, which changes nothing here; 0 for bfloat16
  self& inner_precise(std::int64_t value) { return base::inner_precise = value, *this; }
  // dtype of y for x of int8; not int8
  self& output_dtype(velo::quant_output value) {
    return base::output_dtype = static_cast<std::int64_t>(value), *this;
  }
  // as in weight_quant_matmul, for weights of int8 or int4 alone; the other forms always have it
  self& row_invariant(bool value) { return base::row_invariant = value, *this; }
};

inline outcome<> ffn(stream_ref stream, const ffn_args& args) {
  return detail::check(VELO_FN(ffn)(stream.get(), &args));
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

// Shape and order of a value a row.
enum class attention_statistics : std::int64_t {
  compact = VELO_ATTENTION_STATISTICS_COMPACT,      // [B, N, Sq], tnd [T, N]
  eightfold = VELO_ATTENTION_STATISTICS_EIGHTFOLD,  // [B, N, Sq, 8], each value 8 times; tnd [T, N,
                                                    // 8], in memory [N, Sq, 8] of one sequence
                                                    // after the other
};

// How pse enters the score A = query key of row i and key j.
enum class attention_pse_type : std::int64_t {
  added_after_scale = VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE,    // scale * A + pse
  added_before_scale = VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE,  // scale * (A + pse)
  alibi = VELO_ATTENTION_PSE_TYPE_ALIBI,                            // scale * A - pse * abs(i +
                                                                    // q_start_idx - j -
                                                                    // kv_start_idx)
  alibi_sqrt = VELO_ATTENTION_PSE_TYPE_ALIBI_SQRT,                  // the root of that distance
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
  using self = fusion_attention_args;
  using base = velo_fusion_attention_args;
  fusion_attention_args() noexcept : velo_fusion_attention_args VELO_FUSION_ATTENTION_ARGS_INIT {}

  // [.., N, D] in the order of layout
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // dtype of query
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // dtype of query
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // shape and dtype of query with Dv for D
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // float32, the largest score a row sees; its shape is that of statistics
  self& softmax_max(const velo_tensor& value) { return base::softmax_max = &value, *this; }
  self& softmax_max(std::nullptr_t) { return base::softmax_max = nullptr, *this; }
  // the same of the sum of exp(score - softmax_max) over the keys a row sees, so that softmax_max +
  // log(softmax_sum) is the log-sum-exp of the row
  self& softmax_sum(const velo_tensor& value) { return base::softmax_sum = &value, *this; }
  self& softmax_sum(std::nullptr_t) { return base::softmax_sum = nullptr, *this; }
  // order of dimensions of query, key, value, attention_out and their gradients
  self& layout(velo::attention_layout value) {
    return base::layout = static_cast<std::int64_t>(value), *this;
  }
  // query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  self& scale(double value) { return base::scale = value, *this; }
  // which keys a row sees
  self& sparse_mode(velo::attention_sparse_mode value) {
    return base::sparse_mode = static_cast<std::int64_t>(value), *this;
  }
  // full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
  // the same to the right
  self& next_tokens(std::int64_t value) { return base::next_tokens = value, *this; }
  // prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
  self& prefix(const velo_ints& value) { return base::prefix = &value, *this; }
  self& prefix(std::nullptr_t) { return base::prefix = nullptr, *this; }
  // shape and order of softmax_max and softmax_sum
  self& statistics(velo::attention_statistics value) {
    return base::statistics = static_cast<std::int64_t>(value), *this;
  }
  // 1 hides; [Sq, Skv] or [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv]; read in modes 0, 1
  // and 5, a constant of MindSpeed's shape in the others
  self& atten_mask(const velo_tensor& value) { return base::atten_mask = &value, *this; }
  self& atten_mask(std::nullptr_t) { return base::atten_mask = nullptr, *this; }
  // dtype of query, [B or 1, N or 1, Sq or 1, Skv], or the last 1024 rows where Sq = Skv > 1024 and
  // for tnd; alibi: float32 slopes [N] or [B, N]
  self& pse(const velo_tensor& value) { return base::pse = &value, *this; }
  self& pse(std::nullptr_t) { return base::pse = nullptr, *this; }
  // how pse enters a score
  self& pse_type(velo::attention_pse_type value) {
    return base::pse_type = static_cast<std::int64_t>(value), *this;
  }
  // alibi: position of the first query
  self& q_start_idx(std::int64_t value) { return base::q_start_idx = value, *this; }
  // alibi: position of the first key
  self& kv_start_idx(std::int64_t value) { return base::kv_start_idx = value, *this; }
  // share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // of dropout, as the operator dropout has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 4 values: where the call's [B, N, Sq, Skv] begins in the whole, whose indices decide; tnd: [1,
  // N, T, longest Skv]
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // 4 values, the sizes of the whole; by default the call's own
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
  // tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
  self& actual_seq_qlen(const velo_ints& value) { return base::actual_seq_qlen = &value, *this; }
  self& actual_seq_qlen(std::nullptr_t) { return base::actual_seq_qlen = nullptr, *this; }
  // tnd: ends of the key sequences, as many as actual_seq_qlen
  self& actual_seq_kvlen(const velo_ints& value) { return base::actual_seq_kvlen = &value, *this; }
  self& actual_seq_kvlen(std::nullptr_t) { return base::actual_seq_kvlen = nullptr, *this; }
};

inline outcome<> fusion_attention(stream_ref stream, const fusion_attention_args& args) {
  return detail::check(VELO_FN(fusion_attention)(stream.get(), &args));
}

// `delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`;
// `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`.
struct fusion_attention_backward_args : velo_fusion_attention_backward_args {
  using self = fusion_attention_backward_args;
  using base = velo_fusion_attention_backward_args;
  fusion_attention_backward_args() noexcept
      : velo_fusion_attention_backward_args VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT {}

  // the forward input
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // the forward input
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // the forward input
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // gradient of attention_out: its shape and dtype
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // from the forward pass
  self& softmax_max(const velo_tensor& value) { return base::softmax_max = &value, *this; }
  // from the forward pass
  self& softmax_sum(const velo_tensor& value) { return base::softmax_sum = &value, *this; }
  // from the forward pass
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // shape and dtype of query
  self& dquery(const velo_tensor& value) { return base::dquery = &value, *this; }
  // shape of key; its dtype or float32
  self& dkey(const velo_tensor& value) { return base::dkey = &value, *this; }
  // shape of value; dtype of dkey
  self& dvalue(const velo_tensor& value) { return base::dvalue = &value, *this; }
  // shape and dtype of pse, whose pse_type is 0 or 1 and which has all its rows; costs two more
  // products a score
  self& dpse(const velo_tensor& value) { return base::dpse = &value, *this; }
  self& dpse(std::nullptr_t) { return base::dpse = nullptr, *this; }
  // 1 adds to dkey and dvalue instead of writing them
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // order of dimensions of query, key, value, attention_out and their gradients
  self& layout(velo::attention_layout value) {
    return base::layout = static_cast<std::int64_t>(value), *this;
  }
  // query heads; needed by sbh and bsh, elsewhere 0 or what the shape says
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  self& scale(double value) { return base::scale = value, *this; }
  // which keys a row sees
  self& sparse_mode(velo::attention_sparse_mode value) {
    return base::sparse_mode = static_cast<std::int64_t>(value), *this;
  }
  // full, band and modes 7 and 8: keys left of the diagonal that a row sees; 2147483647: all
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
  // the same to the right
  self& next_tokens(std::int64_t value) { return base::next_tokens = value, *this; }
  // prefix modes, which need it: a length for each sequence, max(Skv - Sq, 0) to Skv
  self& prefix(const velo_ints& value) { return base::prefix = &value, *this; }
  self& prefix(std::nullptr_t) { return base::prefix = nullptr, *this; }
  // shape and order of softmax_max and softmax_sum
  self& statistics(velo::attention_statistics value) {
    return base::statistics = static_cast<std::int64_t>(value), *this;
  }
  // 1 hides; [Sq, Skv] or [B or 1, N or 1, Sq, Skv], tnd the longest [Sq, Skv]; read in modes 0, 1
  // and 5, a constant of MindSpeed's shape in the others
  self& atten_mask(const velo_tensor& value) { return base::atten_mask = &value, *this; }
  self& atten_mask(std::nullptr_t) { return base::atten_mask = nullptr, *this; }
  // dtype of query, [B or 1, N or 1, Sq or 1, Skv], or the last 1024 rows where Sq = Skv > 1024 and
  // for tnd; alibi: float32 slopes [N] or [B, N]
  self& pse(const velo_tensor& value) { return base::pse = &value, *this; }
  self& pse(std::nullptr_t) { return base::pse = nullptr, *this; }
  // how pse enters a score
  self& pse_type(velo::attention_pse_type value) {
    return base::pse_type = static_cast<std::int64_t>(value), *this;
  }
  // alibi: position of the first query
  self& q_start_idx(std::int64_t value) { return base::q_start_idx = value, *this; }
  // alibi: position of the first key
  self& kv_start_idx(std::int64_t value) { return base::kv_start_idx = value, *this; }
  // share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // of dropout, as the operator dropout has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 4 values: where the call's [B, N, Sq, Skv] begins in the whole, whose indices decide; tnd: [1,
  // N, T, longest Skv]
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // 4 values, the sizes of the whole; by default the call's own
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
  // tnd: ends of the query sequences, cumulative, the last equal to T; ignored by other layouts
  self& actual_seq_qlen(const velo_ints& value) { return base::actual_seq_qlen = &value, *this; }
  self& actual_seq_qlen(std::nullptr_t) { return base::actual_seq_qlen = nullptr, *this; }
  // tnd: ends of the key sequences, as many as actual_seq_qlen
  self& actual_seq_kvlen(const velo_ints& value) { return base::actual_seq_kvlen = &value, *this; }
  self& actual_seq_kvlen(std::nullptr_t) { return base::actual_seq_kvlen = nullptr, *this; }
};

inline outcome<> fusion_attention_backward(stream_ref stream,
                                           const fusion_attention_backward_args& args) {
  return detail::check(VELO_FN(fusion_attention_backward)(stream.get(), &args));
}

// `max = max(prev_max, cur_max)`; `p = prev_sum * exp(prev_max - max)`; `c = cur_sum * exp(cur_max
// - max)`; `sum = p + c`; `out = prev_out * p / sum + cur_out * c / sum`.
struct ring_attention_update_args : velo_ring_attention_update_args {
  using self = ring_attention_update_args;
  using base = velo_ring_attention_update_args;
  ring_attention_update_args() noexcept
      : velo_ring_attention_update_args VELO_RING_ATTENTION_UPDATE_ARGS_INIT {}

  // [.., N, D] in the order of layout
  self& prev_out(const velo_tensor& value) { return base::prev_out = &value, *this; }
  // float32 [B, N, S] or [B, N, S, 8], tnd [T, N] or [T, N, 8], as fusion_attention's statistics
  self& prev_max(const velo_tensor& value) { return base::prev_max = &value, *this; }
  // shape of prev_max; from 0
  self& prev_sum(const velo_tensor& value) { return base::prev_sum = &value, *this; }
  // shape and dtype of prev_out
  self& cur_out(const velo_tensor& value) { return base::cur_out = &value, *this; }
  // shape of prev_max
  self& cur_max(const velo_tensor& value) { return base::cur_max = &value, *this; }
  // shape of prev_max; from 0
  self& cur_sum(const velo_tensor& value) { return base::cur_sum = &value, *this; }
  // shape and dtype of prev_out; may be it
  self& out(const velo_tensor& value) { return base::out = &value, *this; }
  // shape of prev_max; may be it
  self& max(const velo_tensor& value) { return base::max = &value, *this; }
  // shape of prev_max; may be prev_sum
  self& sum(const velo_tensor& value) { return base::sum = &value, *this; }
  // order of dimensions of prev_out
  self& layout(velo::attention_layout value) {
    return base::layout = static_cast<std::int64_t>(value), *this;
  }
  // tnd with statistics [T, N, 8]: ends of the sequences, cumulative, with or without a leading
  // zero
  self& actual_seq_qlen(const velo_ints& value) { return base::actual_seq_qlen = &value, *this; }
  self& actual_seq_qlen(std::nullptr_t) { return base::actual_seq_qlen = nullptr, *this; }
};

inline outcome<> ring_attention_update(stream_ref stream, const ring_attention_update_args& args) {
  return detail::check(VELO_FN(ring_attention_update)(stream.get(), &args));
}

// `attention_out = softmax(scale_value * query @ key^T + alibi_mask) @ value`.
struct flash_attention_args : velo_flash_attention_args {
  using self = flash_attention_args;
  using base = velo_flash_attention_args;
  flash_attention_args() noexcept : velo_flash_attention_args VELO_FLASH_ATTENTION_ARGS_INIT {}

  // [B, N, S, D] in the order of io_layout
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // shape and dtype of query
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // shape and dtype of query
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // [S, S], 1 hides
  self& atten_mask(const velo_tensor& value) { return base::atten_mask = &value, *this; }
  self& atten_mask(std::nullptr_t) { return base::atten_mask = nullptr, *this; }
  // dtype of query, [B or 1, N or 1, S or 1, S]: added to scores
  self& alibi_mask(const velo_tensor& value) { return base::alibi_mask = &value, *this; }
  self& alibi_mask(std::nullptr_t) { return base::alibi_mask = nullptr, *this; }
  // shape and dtype of query
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // float32 [B, N, S]: log of the sum of exp(score)
  self& softmax_log_max_sum(const velo_tensor& value) {
    return base::softmax_log_max_sum = &value, *this;
  }
  self& softmax_log_max_sum(std::nullptr_t) { return base::softmax_log_max_sum = nullptr, *this; }
  // heads; needed by bsh and sbh, elsewhere 0 or what the shape says
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // bnsd, bsh or sbh
  self& io_layout(velo::attention_layout value) {
    return base::io_layout = static_cast<std::int64_t>(value), *this;
  }
  // factor of the products
  self& scale_value(double value) { return base::scale_value = value, *this; }
  // 1
  self& q_scale(double value) { return base::q_scale = value, *this; }
  // as fusion_attention has it
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // a hint: keys that the first column shows; atten_mask alone decides
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
  // a hint: keys that the first row shows; atten_mask alone decides
  self& next_tokens(std::int64_t value) { return base::next_tokens = value, *this; }
  // 0
  self& precise_mode(std::int64_t value) { return base::precise_mode = value, *this; }
  // of dropout
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
};

inline outcome<> flash_attention(stream_ref stream, const flash_attention_args& args) {
  return detail::check(VELO_FN(flash_attention)(stream.get(), &args));
}

// `P = exp(score - softmax_log_max_sum)`; `dS = P * (dy @ value^T - sum[D](dy * attention_out))`;
// `dquery = scale_value * dS @ key`; `dkey = scale_value * dS^T @ query`; `dvalue = P^T @ dy`.
struct flash_attention_backward_args : velo_flash_attention_backward_args {
  using self = flash_attention_backward_args;
  using base = velo_flash_attention_backward_args;
  flash_attention_backward_args() noexcept
      : velo_flash_attention_backward_args VELO_FLASH_ATTENTION_BACKWARD_ARGS_INIT {}

  // [B, N, S, D] in the order of io_layout
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // shape and dtype of query
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // shape and dtype of query
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // gradient of attention_out
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // from the forward pass
  self& softmax_log_max_sum(const velo_tensor& value) {
    return base::softmax_log_max_sum = &value, *this;
  }
  // from the forward pass
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // [S, S], 1 hides
  self& atten_mask(const velo_tensor& value) { return base::atten_mask = &value, *this; }
  self& atten_mask(std::nullptr_t) { return base::atten_mask = nullptr, *this; }
  // dtype of query, [B or 1, N or 1, S or 1, S]: added to scores
  self& alibi_mask(const velo_tensor& value) { return base::alibi_mask = &value, *this; }
  self& alibi_mask(std::nullptr_t) { return base::alibi_mask = nullptr, *this; }
  // shape and dtype of query
  self& dquery(const velo_tensor& value) { return base::dquery = &value, *this; }
  // shape and dtype of query
  self& dkey(const velo_tensor& value) { return base::dkey = &value, *this; }
  // shape and dtype of query
  self& dvalue(const velo_tensor& value) { return base::dvalue = &value, *this; }
  // heads; needed by bsh and sbh, elsewhere 0 or what the shape says
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // bnsd, bsh or sbh
  self& io_layout(velo::attention_layout value) {
    return base::io_layout = static_cast<std::int64_t>(value), *this;
  }
  // factor of the products
  self& scale_value(double value) { return base::scale_value = value, *this; }
  // 1
  self& q_scale(double value) { return base::q_scale = value, *this; }
  // as fusion_attention has it
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // a hint: keys that the first column shows; atten_mask alone decides
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
  // a hint: keys that the first row shows; atten_mask alone decides
  self& next_tokens(std::int64_t value) { return base::next_tokens = value, *this; }
  // 0
  self& precise_mode(std::int64_t value) { return base::precise_mode = value, *this; }
  // of dropout
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
};

inline outcome<> flash_attention_backward(stream_ref stream,
                                          const flash_attention_backward_args& args) {
  return detail::check(VELO_FN(flash_attention_backward)(stream.get(), &args));
}

// `attention_out = softmax(scale * query @ key^T) @ value`.
struct cached_attention_args : velo_cached_attention_args {
  using self = cached_attention_args;
  using base = velo_cached_attention_args;
  cached_attention_args() noexcept : velo_cached_attention_args VELO_CACHED_ATTENTION_ARGS_INIT {}

  // [B, Sq, N, D]; D up to 576
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // Nkv heads, N % Nkv = 0; dtype of query or int8
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // shape of key with Dv for D, up to 512; dtype of key
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // int8: factors, shape of key without D
  self& key_scale(const velo_tensor& value) { return base::key_scale = &value, *this; }
  self& key_scale(std::nullptr_t) { return base::key_scale = nullptr, *this; }
  // int8: factors, shape of value without Dv
  self& value_scale(const velo_tensor& value) { return base::value_scale = &value, *this; }
  self& value_scale(std::nullptr_t) { return base::value_scale = nullptr, *this; }
  // [B, P]: pages of each sequence in order; read as far as its length goes, and checked when the
  // call runs
  self& block_table(const velo_tensor& value) { return base::block_table = &value, *this; }
  self& block_table(std::nullptr_t) { return base::block_table = nullptr, *this; }
  // [B]: keys of each sequence, those of the new rows among them, checked when the call runs;
  // needed beside block_table, else by default Skv
  self& cache_seqlens(const velo_tensor& value) { return base::cache_seqlens = &value, *this; }
  self& cache_seqlens(std::nullptr_t) { return base::cache_seqlens = nullptr, *this; }
  // [B, Sq, N, Dv], dtype of query
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  self& scale(double value) { return base::scale = value, *this; }
  // keys before its own that a row sees; 2147483647: all
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
};

inline outcome<> cached_attention(stream_ref stream, const cached_attention_args& args) {
  return detail::check(VELO_FN(cached_attention)(stream.get(), &args));
}

// `mask[i, j] = step(positions[i] - pre_tokens - j) + step(j - positions[i] - next_tokens)`.
struct generate_mask_args : velo_generate_mask_args {
  using self = generate_mask_args;
  using base = velo_generate_mask_args;
  generate_mask_args() noexcept : velo_generate_mask_args VELO_GENERATE_MASK_ARGS_INIT {}

  // any shape; a row of the mask each, from 0
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  // uint8, shape of positions with keys appended
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  // full: the window; or a mode with a constant, all but all_mask and prefix
  self& sparse_mode(velo::attention_sparse_mode value) {
    return base::sparse_mode = static_cast<std::int64_t>(value), *this;
  }
  // columns; of a constant the first, up to 2048
  self& keys(std::int64_t value) { return base::keys = value, *this; }
  // columns left of its position that a row shows; 2147483647: all
  self& pre_tokens(std::int64_t value) { return base::pre_tokens = value, *this; }
  // the same to the right
  self& next_tokens(std::int64_t value) { return base::next_tokens = value, *this; }
};

inline outcome<> generate_mask(stream_ref stream, const generate_mask_args& args) {
  return detail::check(VELO_FN(generate_mask)(stream.get(), &args));
}

// `slopes[i] = 2^(-8 * (heads[i] + 1) / p)`.
struct alibi_slopes_args : velo_alibi_slopes_args {
  using self = alibi_slopes_args;
  using base = velo_alibi_slopes_args;
  alibi_slopes_args() noexcept : velo_alibi_slopes_args VELO_ALIBI_SLOPES_ARGS_INIT {}

  // any shape; heads, from 0
  self& heads(const velo_tensor& value) { return base::heads = &value, *this; }
  // float32, shape of heads
  self& slopes(const velo_tensor& value) { return base::slopes = &value, *this; }
  // heads of all ranks
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
};

inline outcome<> alibi_slopes(stream_ref stream, const alibi_slopes_args& args) {
  return detail::check(VELO_FN(alibi_slopes)(stream.get(), &args));
}

// ---- embedding

// `y[t] = table[ids[t]]`.
struct embedding_args : velo_embedding_args {
  using self = embedding_args;
  using base = velo_embedding_args;
  embedding_args() noexcept : velo_embedding_args VELO_EMBEDDING_ARGS_INIT {}

  // any shape; each in [0, V), else VELO_ERR_ARGUMENT before anything is written
  self& ids(const velo_tensor& value) { return base::ids = &value, *this; }
  // [V, D]
  self& table(const velo_tensor& value) { return base::table = &value, *this; }
  // shape of ids with D appended, dtype of table
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> embedding(stream_ref stream, const embedding_args& args) {
  return detail::check(VELO_FN(embedding)(stream.get(), &args));
}

// `dtable[ids[t]] += dy[t]`.
struct embedding_backward_args : velo_embedding_backward_args {
  using self = embedding_backward_args;
  using base = velo_embedding_backward_args;
  embedding_backward_args() noexcept
      : velo_embedding_backward_args VELO_EMBEDDING_BACKWARD_ARGS_INIT {}

  // as in the forward call
  self& ids(const velo_tensor& value) { return base::ids = &value, *this; }
  // shape of ids with D appended
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // float32, [rows, D]
  self& dtable(const velo_tensor& value) { return base::dtable = &value, *this; }
  // V, the rows of the table
  self& rows(std::int64_t value) { return base::rows = value, *this; }
  // 1 adds to dtable instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
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

// `lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * w[targets[t]] * (lse[t] -
// logits[t, targets[t]]) + e / V * sum[v](w[v] * (lse[t] - logits[t, v]))`.
struct cross_entropy_args : velo_cross_entropy_args {
  using self = cross_entropy_args;
  using base = velo_cross_entropy_args;
  cross_entropy_args() noexcept : velo_cross_entropy_args VELO_CROSS_ENTROPY_ARGS_INIT {}

  // [T, V]
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // [T]; each in [0, V) or ignore_index, else VELO_ERR_ARGUMENT before anything is written
  self& targets(const velo_tensor& value) { return base::targets = &value, *this; }
  // float32, [T] or []
  self& loss(const velo_tensor& value) { return base::loss = &value, *this; }
  // float32, [T]: log-sum-exp of each row, what the gradient needs
  self& lse(const velo_tensor& value) { return base::lse = &value, *this; }
  self& lse(std::nullptr_t) { return base::lse = nullptr, *this; }
  // the target that does not count
  self& ignore_index(std::int64_t value) { return base::ignore_index = value, *this; }
  // how tokens become one number
  self& reduction(velo::reduction value) {
    return base::reduction = static_cast<std::int64_t>(value), *this;
  }
  // float32, [V]: w; NULL: each is 1
  self& class_weights(const velo_tensor& value) { return base::class_weights = &value, *this; }
  self& class_weights(std::nullptr_t) { return base::class_weights = nullptr, *this; }
  // e
  self& label_smoothing(double value) { return base::label_smoothing = value, *this; }
};

inline outcome<> cross_entropy(stream_ref stream, const cross_entropy_args& args) {
  return detail::check(VELO_FN(cross_entropy)(stream.get(), &args));
}

// `b[t, v] = (1 - e) * w[v] * [v = targets[t]] + e / V * w[v]`; `dlogits[t, v] = (exp(logits[t, v]
// - lse[t]) * sum[u](b[t, u]) - b[t, v]) * dloss[t]`.
struct cross_entropy_backward_args : velo_cross_entropy_backward_args {
  using self = cross_entropy_backward_args;
  using base = velo_cross_entropy_backward_args;
  cross_entropy_backward_args() noexcept
      : velo_cross_entropy_backward_args VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT {}

  // float32, shape of loss
  self& dloss(const velo_tensor& value) { return base::dloss = &value, *this; }
  // the forward input
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // the forward targets
  self& targets(const velo_tensor& value) { return base::targets = &value, *this; }
  // float32, [T], from the forward pass
  self& lse(const velo_tensor& value) { return base::lse = &value, *this; }
  // shape and dtype of logits; may be logits itself
  self& dlogits(const velo_tensor& value) { return base::dlogits = &value, *this; }
  // as in the forward call
  self& ignore_index(std::int64_t value) { return base::ignore_index = value, *this; }
  // as in the forward call
  self& reduction(velo::reduction value) {
    return base::reduction = static_cast<std::int64_t>(value), *this;
  }
  // as in the forward call
  self& class_weights(const velo_tensor& value) { return base::class_weights = &value, *this; }
  self& class_weights(std::nullptr_t) { return base::class_weights = nullptr, *this; }
  // as in the forward call
  self& label_smoothing(double value) { return base::label_smoothing = value, *this; }
};

inline outcome<> cross_entropy_backward(stream_ref stream,
                                        const cross_entropy_backward_args& args) {
  return detail::check(VELO_FN(cross_entropy_backward)(stream.get(), &args));
}

// ---- optimizer

// The rounding of a parameter halfway between two of bfloat16.
enum class bf16_rounding : std::int64_t {
  half_up = VELO_BF16_ROUNDING_HALF_UP,      // to the larger magnitude
  half_even = VELO_BF16_ROUNDING_HALF_EVEN,  // to the even one
};

// `g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 *
// v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) +
// epsilon)`.
struct apply_fused_adamw_args : velo_apply_fused_adamw_args {
  using self = apply_fused_adamw_args;
  using base = velo_apply_fused_adamw_args;
  apply_fused_adamw_args() noexcept
      : velo_apply_fused_adamw_args VELO_APPLY_FUSED_ADAMW_ARGS_INIT {}

  // shape of param
  self& grad(const velo_tensor& value) { return base::grad = &value, *this; }
  // float32, []: factor on the gradient, such as a clip factor; NULL = 1
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  self& scale(std::nullptr_t) { return base::scale = nullptr, *this; }
  // any shape
  self& param(const velo_tensor& value) { return base::param = &value, *this; }
  // float32, shape of param: the exact parameters when param has 16 bits
  self& master(const velo_tensor& value) { return base::master = &value, *this; }
  self& master(std::nullptr_t) { return base::master = nullptr, *this; }
  // first moment, shape of param
  self& m(const velo_tensor& value) { return base::m = &value, *this; }
  // second moment, shape and dtype of m
  self& v(const velo_tensor& value) { return base::v = &value, *this; }
  // largest second moment, shape of param; required by amsgrad
  self& v_max(const velo_tensor& value) { return base::v_max = &value, *this; }
  self& v_max(std::nullptr_t) { return base::v_max = nullptr, *this; }
  // number of this update, from 1
  self& step(std::int64_t value) { return base::step = value, *this; }
  // learning rate
  self& lr(double value) { return base::lr = value, *this; }
  // decay of the first moment
  self& beta1(double value) { return base::beta1 = value, *this; }
  // decay of the second moment
  self& beta2(double value) { return base::beta2 = value, *this; }
  // added to the root
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // decoupled weight decay
  self& weight_decay(double value) { return base::weight_decay = value, *this; }
  // 1 divides by the largest second moment so far
  self& amsgrad(bool value) { return base::amsgrad = value, *this; }
  // 1 ascends
  self& maximize(bool value) { return base::maximize = value, *this; }
  // []: the number of this update in place of step, read when the update runs; at least 1, else
  // VELO_ERR_ARGUMENT before anything is written
  self& step_tensor(const velo_tensor& value) { return base::step_tensor = &value, *this; }
  self& step_tensor(std::nullptr_t) { return base::step_tensor = nullptr, *this; }
  // float32, []: the learning rate in place of lr, read when the update runs
  self& lr_tensor(const velo_tensor& value) { return base::lr_tensor = &value, *this; }
  self& lr_tensor(std::nullptr_t) { return base::lr_tensor = nullptr, *this; }
};

inline outcome<> apply_fused_adamw(stream_ref stream, const apply_fused_adamw_args& args) {
  return detail::check(VELO_FN(apply_fused_adamw)(stream.get(), &args));
}

// `m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1
// - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema =
// ema_decay * ema + (1 - ema_decay) * p`.
struct apply_fused_ema_adamw_args : velo_apply_fused_ema_adamw_args {
  using self = apply_fused_ema_adamw_args;
  using base = velo_apply_fused_ema_adamw_args;
  apply_fused_ema_adamw_args() noexcept
      : velo_apply_fused_ema_adamw_args VELO_APPLY_FUSED_EMA_ADAMW_ARGS_INIT {}

  // shape of param
  self& grad(const velo_tensor& value) { return base::grad = &value, *this; }
  // any shape
  self& param(const velo_tensor& value) { return base::param = &value, *this; }
  // first moment, shape of param
  self& m(const velo_tensor& value) { return base::m = &value, *this; }
  // second moment, shape of param
  self& v(const velo_tensor& value) { return base::v = &value, *this; }
  // running average of param, its shape
  self& ema(const velo_tensor& value) { return base::ema = &value, *this; }
  // number of this update, from 1
  self& step(std::int64_t value) { return base::step = value, *this; }
  // learning rate
  self& lr(double value) { return base::lr = value, *this; }
  // decay of the average
  self& ema_decay(double value) { return base::ema_decay = value, *this; }
  // decay of the first moment
  self& beta1(double value) { return base::beta1 = value, *this; }
  // decay of the second moment
  self& beta2(double value) { return base::beta2 = value, *this; }
  // added to the root
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // 1: decoupled weight decay (AdamW); 0: it is added to the gradient (Adam)
  self& mode(std::int64_t value) { return base::mode = value, *this; }
  // 0 leaves the moments as they are
  self& bias_correction(bool value) { return base::bias_correction = value, *this; }
  // weight decay
  self& weight_decay(double value) { return base::weight_decay = value, *this; }
  // []: the number of this update in place of step, as in apply_fused_adamw
  self& step_tensor(const velo_tensor& value) { return base::step_tensor = &value, *this; }
  self& step_tensor(std::nullptr_t) { return base::step_tensor = nullptr, *this; }
};

inline outcome<> apply_fused_ema_adamw(stream_ref stream, const apply_fused_ema_adamw_args& args) {
  return detail::check(VELO_FN(apply_fused_ema_adamw)(stream.get(), &args));
}

// `g = grad * scale`; `p *= 1 - lr * weight_decay`; `m = beta1 * m + (1 - beta1) * g`; `v = beta2 *
// v + (1 - beta2) * g^2`; `p -= lr * (m / (1 - beta1^step)) / (sqrt(h) / sqrt(1 - beta2^step) +
// epsilon)`.
struct multi_tensor_adamw_args : velo_multi_tensor_adamw_args {
  using self = multi_tensor_adamw_args;
  using base = velo_multi_tensor_adamw_args;
  multi_tensor_adamw_args() noexcept
      : velo_multi_tensor_adamw_args VELO_MULTI_TENSOR_ADAMW_ARGS_INIT {}

  // shapes of param
  self& grad(const velo_tensors& value) { return base::grad = &value, *this; }
  self& grad(std::initializer_list<tensor_view>) = delete;
  // float32, []: factor on all gradients; NULL = 1
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  self& scale(std::nullptr_t) { return base::scale = nullptr, *this; }
  // any shapes
  self& param(const velo_tensors& value) { return base::param = &value, *this; }
  self& param(std::initializer_list<tensor_view>) = delete;
  // float32, shapes of param: the exact parameters when param has 16 bits
  self& master(const velo_tensors& value) { return base::master = &value, *this; }
  self& master(std::initializer_list<tensor_view>) = delete;
  self& master(std::nullptr_t) { return base::master = nullptr, *this; }
  // first moments, shapes of param
  self& m(const velo_tensors& value) { return base::m = &value, *this; }
  self& m(std::initializer_list<tensor_view>) = delete;
  // second moments, shapes and dtypes of m
  self& v(const velo_tensors& value) { return base::v = &value, *this; }
  self& v(std::initializer_list<tensor_view>) = delete;
  // largest second moments, shapes of param; required by amsgrad
  self& v_max(const velo_tensors& value) { return base::v_max = &value, *this; }
  self& v_max(std::initializer_list<tensor_view>) = delete;
  self& v_max(std::nullptr_t) { return base::v_max = nullptr, *this; }
  // number of this update, from 1
  self& step(std::int64_t value) { return base::step = value, *this; }
  // learning rate
  self& lr(double value) { return base::lr = value, *this; }
  // decay of the first moment
  self& beta1(double value) { return base::beta1 = value, *this; }
  // decay of the second moment
  self& beta2(double value) { return base::beta2 = value, *this; }
  // added to the root
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // decoupled weight decay
  self& weight_decay(double value) { return base::weight_decay = value, *this; }
  // 1 divides by the largest second moment so far
  self& amsgrad(bool value) { return base::amsgrad = value, *this; }
  // 1 ascends
  self& maximize(bool value) { return base::maximize = value, *this; }
  // []: the number of this update in place of step, as in apply_fused_adamw
  self& step_tensor(const velo_tensor& value) { return base::step_tensor = &value, *this; }
  self& step_tensor(std::nullptr_t) { return base::step_tensor = nullptr, *this; }
  // float32, []: the learning rate in place of lr, read when the update runs
  self& lr_tensor(const velo_tensor& value) { return base::lr_tensor = &value, *this; }
  self& lr_tensor(std::nullptr_t) { return base::lr_tensor = nullptr, *this; }
};

inline outcome<> multi_tensor_adamw(stream_ref stream, const multi_tensor_adamw_args& args) {
  return detail::check(VELO_FN(multi_tensor_adamw)(stream.get(), &args));
}

// `m = beta1 * m + (1 - beta1) * grad`; `v = beta2 * v + (1 - beta2) * grad^2`; `p -= lr * ((m / (1
// - beta1^step)) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon) + weight_decay * p)`; `ema =
// ema_decay * ema + (1 - ema_decay) * p`.
struct multi_tensor_ema_adamw_args : velo_multi_tensor_ema_adamw_args {
  using self = multi_tensor_ema_adamw_args;
  using base = velo_multi_tensor_ema_adamw_args;
  multi_tensor_ema_adamw_args() noexcept
      : velo_multi_tensor_ema_adamw_args VELO_MULTI_TENSOR_EMA_ADAMW_ARGS_INIT {}

  // shapes of param
  self& grad(const velo_tensors& value) { return base::grad = &value, *this; }
  self& grad(std::initializer_list<tensor_view>) = delete;
  // any shapes
  self& param(const velo_tensors& value) { return base::param = &value, *this; }
  self& param(std::initializer_list<tensor_view>) = delete;
  // first moments, shapes of param
  self& m(const velo_tensors& value) { return base::m = &value, *this; }
  self& m(std::initializer_list<tensor_view>) = delete;
  // second moments, shapes of param
  self& v(const velo_tensors& value) { return base::v = &value, *this; }
  self& v(std::initializer_list<tensor_view>) = delete;
  // running averages of param, its shapes
  self& ema(const velo_tensors& value) { return base::ema = &value, *this; }
  self& ema(std::initializer_list<tensor_view>) = delete;
  // number of this update, from 1
  self& step(std::int64_t value) { return base::step = value, *this; }
  // learning rate
  self& lr(double value) { return base::lr = value, *this; }
  // decay of the averages
  self& ema_decay(double value) { return base::ema_decay = value, *this; }
  // decay of the first moment
  self& beta1(double value) { return base::beta1 = value, *this; }
  // decay of the second moment
  self& beta2(double value) { return base::beta2 = value, *this; }
  // added to the root
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // 1: decoupled weight decay (AdamW); 0: it is added to the gradient (Adam)
  self& mode(std::int64_t value) { return base::mode = value, *this; }
  // 0 leaves the moments as they are
  self& bias_correction(bool value) { return base::bias_correction = value, *this; }
  // weight decay
  self& weight_decay(double value) { return base::weight_decay = value, *this; }
  // []: the number of this update in place of step, as in apply_fused_adamw
  self& step_tensor(const velo_tensor& value) { return base::step_tensor = &value, *this; }
  self& step_tensor(std::nullptr_t) { return base::step_tensor = nullptr, *this; }
};

inline outcome<> multi_tensor_ema_adamw(stream_ref stream,
                                        const multi_tensor_ema_adamw_args& args) {
  return detail::check(VELO_FN(multi_tensor_ema_adamw)(stream.get(), &args));
}

// `sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm +
// 1e-6))`.
struct global_norm_args : velo_global_norm_args {
  using self = global_norm_args;
  using base = velo_global_norm_args;
  global_norm_args() noexcept : velo_global_norm_args VELO_GLOBAL_NORM_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // float64, []
  self& sum_of_squares(const velo_tensor& value) { return base::sum_of_squares = &value, *this; }
  // float32, []
  self& norm(const velo_tensor& value) { return base::norm = &value, *this; }
  self& norm(std::nullptr_t) { return base::norm = nullptr, *this; }
  // float32, []: what apply_fused_adamw takes as scale
  self& clip(const velo_tensor& value) { return base::clip = &value, *this; }
  self& clip(std::nullptr_t) { return base::clip = nullptr, *this; }
  // the norm to clip to
  self& max_norm(double value) { return base::max_norm = value, *this; }
  // 1 adds to sum_of_squares instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> global_norm(stream_ref stream, const global_norm_args& args) {
  return detail::check(VELO_FN(global_norm)(stream.get(), &args));
}

// `sum_of_squares = sum(x^2)`; `norm = sqrt(sum_of_squares)`; `clip = min(1, max_norm / (norm +
// 1e-6))`.
struct multi_tensor_global_norm_args : velo_multi_tensor_global_norm_args {
  using self = multi_tensor_global_norm_args;
  using base = velo_multi_tensor_global_norm_args;
  multi_tensor_global_norm_args() noexcept
      : velo_multi_tensor_global_norm_args VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT {}

  // any shapes
  self& x(const velo_tensors& value) { return base::x = &value, *this; }
  self& x(std::initializer_list<tensor_view>) = delete;
  // float64, []
  self& sum_of_squares(const velo_tensor& value) { return base::sum_of_squares = &value, *this; }
  // float32, []
  self& norm(const velo_tensor& value) { return base::norm = &value, *this; }
  self& norm(std::nullptr_t) { return base::norm = nullptr, *this; }
  // float32, []: what multi_tensor_adamw takes as scale
  self& clip(const velo_tensor& value) { return base::clip = &value, *this; }
  self& clip(std::nullptr_t) { return base::clip = nullptr, *this; }
  // the norm to clip to
  self& max_norm(double value) { return base::max_norm = value, *this; }
  // 1 adds to sum_of_squares instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> multi_tensor_global_norm(stream_ref stream,
                                          const multi_tensor_global_norm_args& args) {
  return detail::check(VELO_FN(multi_tensor_global_norm)(stream.get(), &args));
}

// `param = bfloat16(master)`; `residual = master - param`.
struct bf16_param_split_args : velo_bf16_param_split_args {
  using self = bf16_param_split_args;
  using base = velo_bf16_param_split_args;
  bf16_param_split_args() noexcept : velo_bf16_param_split_args VELO_BF16_PARAM_SPLIT_ARGS_INIT {}

  // any shape
  self& master(const velo_tensor& value) { return base::master = &value, *this; }
  // second moment, shape of master: half_even sets its sign, plain for a tie and negative for none;
  // unread by half_up
  self& v(const velo_tensor& value) { return base::v = &value, *this; }
  self& v(std::nullptr_t) { return base::v = nullptr, *this; }
  // bfloat16, shape of master
  self& param(const velo_tensor& value) { return base::param = &value, *this; }
  // uint8, shape of master with 2 appended
  self& residual(const velo_tensor& value) { return base::residual = &value, *this; }
  // where master lies halfway between two of bfloat16
  self& rounding(velo::bf16_rounding value) {
    return base::rounding = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> bf16_param_split(stream_ref stream, const bf16_param_split_args& args) {
  return detail::check(VELO_FN(bf16_param_split)(stream.get(), &args));
}

// `master = param + residual`.
struct bf16_param_merge_args : velo_bf16_param_merge_args {
  using self = bf16_param_merge_args;
  using base = velo_bf16_param_merge_args;
  bf16_param_merge_args() noexcept : velo_bf16_param_merge_args VELO_BF16_PARAM_MERGE_ARGS_INIT {}

  // any shape
  self& param(const velo_tensor& value) { return base::param = &value, *this; }
  // shape of param with 2 appended
  self& residual(const velo_tensor& value) { return base::residual = &value, *this; }
  // as bf16_param_split left it
  self& v(const velo_tensor& value) { return base::v = &value, *this; }
  self& v(std::nullptr_t) { return base::v = nullptr, *this; }
  // float32, shape of param
  self& master(const velo_tensor& value) { return base::master = &value, *this; }
  // as in bf16_param_split
  self& rounding(velo::bf16_rounding value) {
    return base::rounding = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> bf16_param_merge(stream_ref stream, const bf16_param_merge_args& args) {
  return detail::check(VELO_FN(bf16_param_merge)(stream.get(), &args));
}

// ---- elementwise

// Parts of a tensor that become one number.
enum class reduced : std::int64_t {
  tensor = VELO_REDUCED_TENSOR,    // all elements
  rows = VELO_REDUCED_ROWS,        // those along the last dimension
  columns = VELO_REDUCED_COLUMNS,  // those over all other dimensions
};

// Element types a conversion can produce.
enum class element : std::int64_t {
  float32 = VELO_ELEMENT_FLOAT32,    // IEEE binary32
  bfloat16 = VELO_ELEMENT_BFLOAT16,  // the upper half of a float32
  float16 = VELO_ELEMENT_FLOAT16,    // IEEE binary16
};

// `y = a + b`.
struct add_args : velo_add_args {
  using self = add_args;
  using base = velo_add_args;
  add_args() noexcept : velo_add_args VELO_ADD_ARGS_INIT {}

  // any shape
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  // shape and dtype of a
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  // shape and dtype of a; may be a or b itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> add(stream_ref stream, const add_args& args) {
  return detail::check(VELO_FN(add)(stream.get(), &args));
}

// `y = round(x)`.
struct cast_args : velo_cast_args {
  using self = cast_args;
  using base = velo_cast_args;
  cast_args() noexcept : velo_cast_args VELO_CAST_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x, element type `dtype`
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // element type of y
  self& dtype(velo::element value) { return base::dtype = static_cast<std::int64_t>(value), *this; }
};

inline outcome<> cast(stream_ref stream, const cast_args& args) {
  return detail::check(VELO_FN(cast)(stream.get(), &args));
}

// `y = x * mask / (1 - p)`.
struct dropout_args : velo_dropout_args {
  using self = dropout_args;
  using base = velo_dropout_args;
  dropout_args() noexcept : velo_dropout_args VELO_DROPOUT_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // uint8, shape of x: 1 where an element is kept, else 0
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  self& mask(std::nullptr_t) { return base::mask = nullptr, *this; }
  // probability of dropping an element; 1 drops all
  self& p(double value) { return base::p = value, *this; }
  // key of the generator, modulo 2^64
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // upper half of its counter: another for each call that shares the seed
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // a value for each dimension of x: where x begins in the whole, whose indices decide
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // the sizes of the whole; by default those of x
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout(stream_ref stream, const dropout_args& args) {
  return detail::check(VELO_FN(dropout)(stream.get(), &args));
}

// `dx = dy * mask / (1 - p)`.
struct dropout_backward_args : velo_dropout_backward_args {
  using self = dropout_backward_args;
  using base = velo_dropout_backward_args;
  dropout_backward_args() noexcept : velo_dropout_backward_args VELO_DROPOUT_BACKWARD_ARGS_INIT {}

  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // that of the forward call
  self& p(double value) { return base::p = value, *this; }
  // that of the forward call
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // that of the forward call
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // that of the forward call
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // those of the forward call
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
};

inline outcome<> dropout_backward(stream_ref stream, const dropout_backward_args& args) {
  return detail::check(VELO_FN(dropout_backward)(stream.get(), &args));
}

// `y += alpha * x`.
struct accumulate_args : velo_accumulate_args {
  using self = accumulate_args;
  using base = velo_accumulate_args;
  accumulate_args() noexcept : velo_accumulate_args VELO_ACCUMULATE_ARGS_INIT {}

  // any shape
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // shape of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the factor of x
  self& alpha(double value) { return base::alpha = value, *this; }
};

inline outcome<> accumulate(stream_ref stream, const accumulate_args& args) {
  return detail::check(VELO_FN(accumulate)(stream.get(), &args));
}

// `y = max(abs(x))`.
struct reduce_max_abs_args : velo_reduce_max_abs_args {
  using self = reduce_max_abs_args;
  using base = velo_reduce_max_abs_args;
  reduce_max_abs_args() noexcept : velo_reduce_max_abs_args VELO_REDUCE_MAX_ABS_ARGS_INIT {}

  // any shape; [.., n] for rows and columns
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // float32: [], [..] for rows, [n] for columns
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // what one number stands for
  self& over(velo::reduced value) { return base::over = static_cast<std::int64_t>(value), *this; }
};

inline outcome<> reduce_max_abs(stream_ref stream, const reduce_max_abs_args& args) {
  return detail::check(VELO_FN(reduce_max_abs)(stream.get(), &args));
}

// ---- overlap

// The part of the rows of tokens that a rank of group_tp has, by MindSpeed's numbers.
enum class expert_shard : std::int64_t {
  columns = VELO_EXPERT_SHARD_COLUMNS,  // all rows, some of their columns
  rows = VELO_EXPERT_SHARD_ROWS,        // some rows, all of their columns
};

// Activation behind the product of an expert.
enum class expert_activation : std::int64_t {
  none = VELO_EXPERT_ACTIVATION_NONE,          // none
  gelu = VELO_EXPERT_ACTIVATION_GELU,          // by the error function
  silu = VELO_EXPERT_ACTIVATION_SILU,          // x * sigmoid(x)
  relu = VELO_EXPERT_ACTIVATION_RELU,          // max(x, 0)
  fastgelu = VELO_EXPERT_ACTIVATION_FASTGELU,  // x * sigmoid(1.702 * x)
};

// The layout of x and y of grouped_matmul_all_reduce.
enum class grouped_split : std::int64_t {
  lists = VELO_GROUPED_SPLIT_LISTS,  // a tensor for each group
  one_x = VELO_GROUPED_SPLIT_ONE_X,  // one x, a y for each group
  one_y = VELO_GROUPED_SPLIT_ONE_Y,  // an x for each group, one y
  one = VELO_GROUPED_SPLIT_ONE,      // one x and one y
};

// Element type of a product of int8 by int8.
enum class dequantized : std::int64_t {
  by_scale = VELO_DEQUANTIZED_BY_SCALE,  // bfloat16 for a scale of bfloat16, else float16
  float16 = VELO_DEQUANTIZED_FLOAT16,    // float16
  bfloat16 = VELO_DEQUANTIZED_BFLOAT16,  // bfloat16
  float32 = VELO_DEQUANTIZED_FLOAT32,    // float32
};

// `y = sum_ranks(x @ op(weight)) + bias`.
struct matmul_all_reduce_args : velo_matmul_all_reduce_args {
  using self = matmul_all_reduce_args;
  using base = velo_matmul_all_reduce_args;
  matmul_all_reduce_args() noexcept
      : velo_matmul_all_reduce_args VELO_MATMUL_ALL_REDUCE_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [.., k], the leading dimensions folded into m rows; int8 with dequant_scale
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x; with scale int8, or int4 as int4 or as two
  // numbers in a uint8, as of weight_quant_matmul
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [.., n], dtype of x; of output_dtype with dequant_scale
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are
  // as many rows; the same on all ranks; MindSpeed's coc-parallel-num
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so all ranks give the
  // same; int32 with dequant_scale, and then of this rank's product; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // of a quantized weight: [1], [n], or [groups, n], float32 or the dtype of x; NULL: the weight is
  // not quantized, or x is, too
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  self& scale(std::nullptr_t) { return base::scale = nullptr, *this; }
  // shape and dtype of scale; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // rows of k in a group of scale, a multiple of 32 below k; the last group may have fewer; 0:
  // groups are equal
  self& group_size(std::int64_t value) { return base::group_size = value, *this; }
  // of int8 by int8: [1], [n] or [1, n]; int64 and uint64 have a float32 in the low half; bfloat16
  // for such a y alone
  self& dequant_scale(const velo_tensor& value) { return base::dequant_scale = &value, *this; }
  self& dequant_scale(std::nullptr_t) { return base::dequant_scale = nullptr, *this; }
  // [m], with dequant_scale alone; NULL = 1
  self& per_token_scale(const velo_tensor& value) { return base::per_token_scale = &value, *this; }
  self& per_token_scale(std::nullptr_t) { return base::per_token_scale = nullptr, *this; }
  // dtype of y with dequant_scale
  self& output_dtype(velo::dequantized value) {
    return base::output_dtype = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> matmul_all_reduce(stream_ref stream, const matmul_all_reduce_args& args) {
  return detail::check(VELO_FN(matmul_all_reduce)(stream.get(), &args));
}

// `y = part_rank(sum_ranks(x @ op(weight))) + bias`.
struct matmul_reduce_scatter_args : velo_matmul_reduce_scatter_args {
  using self = matmul_reduce_scatter_args;
  using base = velo_matmul_reduce_scatter_args;
  matmul_reduce_scatter_args() noexcept
      : velo_matmul_reduce_scatter_args VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [S, .., k]; S divides by the ranks, or is the sum of rows
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [S / ranks, .., n], or this rank's of rows, dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are
  // as many rows; the same on all ranks; MindSpeed's coc-parallel-num
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so all ranks give the
  // same; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [ranks]: rows of y of each rank, the same list on all; some may be 0; NULL: as many on each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
};

inline outcome<> matmul_reduce_scatter(stream_ref stream, const matmul_reduce_scatter_args& args) {
  return detail::check(VELO_FN(matmul_reduce_scatter)(stream.get(), &args));
}

// `y = gather_ranks(x) @ op(weight) + bias`.
struct all_gather_matmul_args : velo_all_gather_matmul_args {
  using self = all_gather_matmul_args;
  using base = velo_all_gather_matmul_args;
  all_gather_matmul_args() noexcept
      : velo_all_gather_matmul_args VELO_ALL_GATHER_MATMUL_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [s, .., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [S, .., n], dtype of x; S = ranks * s, or the sum of rows
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // x of all ranks, in their order along the first dimension: what the gradient to weight needs
  self& gathered(const velo_tensor& value) { return base::gathered = &value, *this; }
  self& gathered(std::nullptr_t) { return base::gathered = nullptr, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are
  // as many rows; the same on all ranks; MindSpeed's coc-parallel-num
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // [n] or [1, n], float32 or the dtype of x; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [ranks]: s of each rank, the same list on all; some may be 0; NULL: as many on each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
};

inline outcome<> all_gather_matmul(stream_ref stream, const all_gather_matmul_args& args) {
  return detail::check(VELO_FN(all_gather_matmul)(stream.get(), &args));
}

// `y = part_rank(sum_scatter(gather_ranks(x) @ op(weight))) + bias`.
struct all_gather_matmul_reduce_scatter_args : velo_all_gather_matmul_reduce_scatter_args {
  using self = all_gather_matmul_reduce_scatter_args;
  using base = velo_all_gather_matmul_reduce_scatter_args;
  all_gather_matmul_reduce_scatter_args() noexcept
      : velo_all_gather_matmul_reduce_scatter_args VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT {}

  // the ranks whose x is gathered, of the stream's context; NULL: this one alone
  self& gather_group(velo_group value) { return base::gather_group = value, *this; }
  // the ranks whose products are summed and divided, another group; NULL: this one alone
  self& scatter_group(velo_group value) { return base::scatter_group = value, *this; }
  // [s, .., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [S / summing ranks, .., n], or this rank's of scatter_rows, dtype of x; S = gathering ranks *
  // s, or the sum of gather_rows
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // x of all ranks, in their order along the first dimension: what the gradient to weight needs
  self& gathered(const velo_tensor& value) { return base::gathered = &value, *this; }
  self& gathered(std::nullptr_t) { return base::gathered = nullptr, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // slices of rows: 0 by overlap.slices or chosen, 1 none, else at least so many, where there are
  // as many rows; the same on all ranks; MindSpeed's coc-parallel-num
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // [n] or [1, n], float32 or the dtype of x; added to the rounded sum, once, so ranks of
  // scatter_group give the same; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // a pack of op(weight), [k, n], beside weight; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [gathering ranks]: s of each rank, the same list on all of gather_group; some may be 0; NULL:
  // as many on each
  self& gather_rows(const velo_ints& value) { return base::gather_rows = &value, *this; }
  self& gather_rows(std::nullptr_t) { return base::gather_rows = nullptr, *this; }
  // [summing ranks]: rows of y of each rank, the same list on all of scatter_group, with the sum S;
  // some may be 0; NULL: as many on each
  self& scatter_rows(const velo_ints& value) { return base::scatter_rows = &value, *this; }
  self& scatter_rows(std::nullptr_t) { return base::scatter_rows = nullptr, *this; }
  // the shape and dtype of y: rows that travel over scatter_group beside the sum, in its pieces; of
  // a gradient the layer's x beside dx; on all ranks or none
  self& beside(const velo_tensor& value) { return base::beside = &value, *this; }
  self& beside(std::nullptr_t) { return base::beside = nullptr, *this; }
  // [S, .., n]: beside of all ranks of scatter_group, in their order: what the gradient to weight
  // needs; given on all ranks or none; [0] without beside
  self& beside_gathered(const velo_tensor& value) { return base::beside_gathered = &value, *this; }
  self& beside_gathered(std::nullptr_t) { return base::beside_gathered = nullptr, *this; }
};

inline outcome<> all_gather_matmul_reduce_scatter(
    stream_ref stream, const all_gather_matmul_reduce_scatter_args& args) {
  return detail::check(VELO_FN(all_gather_matmul_reduce_scatter)(stream.get(), &args));
}

// `z = sum_ranks(x @ op(weight) + bias) + residual`; `y = z`; `norm_out = z / sqrt(mean(z^2) +
// epsilon) * gamma`.
struct matmul_all_reduce_add_rms_norm_args : velo_matmul_all_reduce_add_rms_norm_args {
  using self = matmul_all_reduce_add_rms_norm_args;
  using base = velo_matmul_all_reduce_add_rms_norm_args;
  matmul_all_reduce_add_rms_norm_args() noexcept
      : velo_matmul_all_reduce_add_rms_norm_args VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [.., k], the leading dimensions folded into m rows; int8 with dequant_scale
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [k, n], or [n, k] with transpose_weight; dtype of x; with scale int8, or int4 as int4 or as two
  // numbers in a uint8, as of weight_quant_matmul
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [n] or [1, n], float32 or the dtype of x, int32 with dequant_scale; added to this rank's
  // product, before the sum: the same bias on all ranks counts as often as there are ranks, unlike
  // that of matmul_all_reduce; NULL = 0, and other ranks may give one
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [.., n] of m rows, whatever their leading dimensions; float32, or the dtype of x, and any of
  // the three with dequant_scale; this rank's is added
  self& residual(const velo_tensor& value) { return base::residual = &value, *this; }
  // [n]; float32, or the dtype of norm_out
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // of a quantized weight: [1], [n], or [groups, n], as of matmul_all_reduce; NULL: the weight is
  // not quantized, or x is, too
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  self& scale(std::nullptr_t) { return base::scale = nullptr, *this; }
  // shape and dtype of scale; NULL = 0
  self& offset(const velo_tensor& value) { return base::offset = &value, *this; }
  self& offset(std::nullptr_t) { return base::offset = nullptr, *this; }
  // z, shape and dtype of residual; may be the residual itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // shape of residual, dtype of x; dtype of residual with dequant_scale
  self& norm_out(const velo_tensor& value) { return base::norm_out = &value, *this; }
  // float32, shape of residual with 1 for n; what the gradient needs
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // 1 when weight is stored [n, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
  // added to the mean square
  self& epsilon(double value) { return base::epsilon = value, *this; }
  // slices of rows, as of matmul_all_reduce; the same on all ranks
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // as of matmul_all_reduce; NULL with scale or dequant_scale
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // of scale, as of matmul_all_reduce
  self& group_size(std::int64_t value) { return base::group_size = value, *this; }
  // of int8 by int8: [1], [n] or [1, n], as of matmul_all_reduce; bfloat16 for such a residual
  // alone
  self& dequant_scale(const velo_tensor& value) { return base::dequant_scale = &value, *this; }
  self& dequant_scale(std::nullptr_t) { return base::dequant_scale = nullptr, *this; }
};

inline outcome<> matmul_all_reduce_add_rms_norm(stream_ref stream,
                                                const matmul_all_reduce_add_rms_norm_args& args) {
  return detail::check(VELO_FN(matmul_all_reduce_add_rms_norm)(stream.get(), &args));
}

// `y[e] = sum_ranks(x[e] @ weight[e]) + bias[e]`.
struct grouped_matmul_all_reduce_args : velo_grouped_matmul_all_reduce_args {
  using self = grouped_matmul_all_reduce_args;
  using base = velo_grouped_matmul_all_reduce_args;
  grouped_matmul_all_reduce_args() noexcept
      : velo_grouped_matmul_all_reduce_args VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [m, k] of each group, or one [m, k]; all of one dtype
  self& x(const velo_tensors& value) { return base::x = &value, *this; }
  self& x(std::initializer_list<tensor_view>) = delete;
  // [k, n] of each group, dtype of x; or one tensor
  self& weight(const velo_tensors& value) { return base::weight = &value, *this; }
  self& weight(std::initializer_list<tensor_view>) = delete;
  // [n] or [1, n] of each group, float32 or the dtype of x; NULL = 0
  self& bias(const velo_tensors& value) { return base::bias = &value, *this; }
  self& bias(std::initializer_list<tensor_view>) = delete;
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [m, n] of each group, or one [m, n]; dtype of x; written, never read
  self& y(const velo_tensors& value) { return base::y = &value, *this; }
  self& y(std::initializer_list<tensor_view>) = delete;
  // of one x: the end of each group's rows, the same list on all ranks; NULL for a list
  self& group_list(const velo_ints& value) { return base::group_list = &value, *this; }
  self& group_list(std::nullptr_t) { return base::group_list = nullptr, *this; }
  // which of x and y are one tensor
  self& split_item(velo::grouped_split value) {
    return base::split_item = static_cast<std::int64_t>(value), *this;
  }
  // slices of rows, as of matmul_all_reduce; the same on all ranks
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
};

inline outcome<> grouped_matmul_all_reduce(stream_ref stream,
                                           const grouped_matmul_all_reduce_args& args) {
  return detail::check(VELO_FN(grouped_matmul_all_reduce)(stream.get(), &args));
}

// `rows[e] = gather_tp(all_to_all_ep(x))`; `y[e] = act(rows[e] @ op(weight[e]) + bias[e])`.
struct all_to_all_all_gather_bmm_args : velo_all_to_all_all_gather_bmm_args {
  using self = all_to_all_all_gather_bmm_args;
  using base = velo_all_to_all_all_gather_bmm_args;
  all_to_all_all_gather_bmm_args() noexcept
      : velo_all_to_all_all_gather_bmm_args VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT {}

  // the ranks among which experts lie, of the stream's context; NULL: this one alone
  self& group_ep(velo_group value) { return base::group_ep = value, *this; }
  // the ranks between which weights are cut, another group; NULL: this one alone
  self& group_tp(velo_group value) { return base::group_tp = value, *this; }
  // [E, C, H / tp], or [E, C / tp, H]: C rows for each expert, those of an ep rank's experts
  // together
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [E / ep, H, n], or [E / ep, n, H] with transpose_weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [E / ep, n] or [E / ep, 1, n], float32 or the dtype of x; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [E / ep, ep C, n], dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // [E / ep, ep C, H]: the rows of each expert, which the gradient to weight needs;
  // need_allgather_out
  self& gathered(const velo_tensor& value) { return base::gathered = &value, *this; }
  self& gathered(std::nullptr_t) { return base::gathered = nullptr, *this; }
  // shape of y: the argument of act; need_activation_feature
  self& pre_activation(const velo_tensor& value) { return base::pre_activation = &value, *this; }
  self& pre_activation(std::nullptr_t) { return base::pre_activation = nullptr, *this; }
  // what a rank of group_tp has of the tokens' rows; the same on all ranks
  self& shard_type(velo::expert_shard value) {
    return base::shard_type = static_cast<std::int64_t>(value), *this;
  }
  // act
  self& act_type(velo::expert_activation value) {
    return base::act_type = static_cast<std::int64_t>(value), *this;
  }
  // 1 when weight is stored [E / ep, n, H]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
};

inline outcome<> all_to_all_all_gather_bmm(stream_ref stream,
                                           const all_to_all_all_gather_bmm_args& args) {
  return detail::check(VELO_FN(all_to_all_all_gather_bmm)(stream.get(), &args));
}

// `y = all_to_all_ep(reduce_scatter_tp(x[e] @ op(weight[e])) + bias[e])`.
struct bmm_reduce_scatter_all_to_all_args : velo_bmm_reduce_scatter_all_to_all_args {
  using self = bmm_reduce_scatter_all_to_all_args;
  using base = velo_bmm_reduce_scatter_all_to_all_args;
  bmm_reduce_scatter_all_to_all_args() noexcept
      : velo_bmm_reduce_scatter_all_to_all_args VELO_BMM_REDUCE_SCATTER_ALL_TO_ALL_ARGS_INIT {}

  // as of all_to_all_all_gather_bmm
  self& group_ep(velo_group value) { return base::group_ep = value, *this; }
  // as of all_to_all_all_gather_bmm
  self& group_tp(velo_group value) { return base::group_tp = value, *this; }
  // [E / ep, ep C, k]: the rows of each expert, by rank of ep
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [E / ep, k, H], or [E / ep, H, k] with transpose_weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [E / ep, w] or [E / ep, 1, w] for y's width w, float32 or the dtype of x; NULL = 0
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [E, C, H / tp], or [E, C / tp, H]; dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // what a rank of group_tp gets of the sums; the same on all ranks
  self& shard_type(velo::expert_shard value) {
    return base::shard_type = static_cast<std::int64_t>(value), *this;
  }
  // 1 when weight is stored [E / ep, H, k]
  self& transpose_weight(bool value) { return base::transpose_weight = value, *this; }
};

inline outcome<> bmm_reduce_scatter_all_to_all(stream_ref stream,
                                               const bmm_reduce_scatter_all_to_all_args& args) {
  return detail::check(VELO_FN(bmm_reduce_scatter_all_to_all)(stream.get(), &args));
}

// ---- experts

// The score of an expert.
enum class router_score : std::int64_t {
  softmax = VELO_ROUTER_SCORE_SOFTMAX,  // over all experts
  sigmoid = VELO_ROUTER_SCORE_SIGMOID,  // of each logit
};

// The score of a group of experts.
enum class group_score : std::int64_t {
  maximum = VELO_GROUP_SCORE_MAXIMUM,    // its largest s + bias (DeepSeek-V2)
  top2_sum = VELO_GROUP_SCORE_TOP2_SUM,  // the sum of its two largest (DeepSeek-V3)
};

// Noise of a gate's choice.
enum class gate_noise : std::int64_t {
  none = VELO_GATE_NOISE_NONE,        // none
  rsample = VELO_GATE_NOISE_RSAMPLE,  // Gumbel's, in the choice of the last expert of a token
};

// The choices that an expert keeps within its capacity.
enum class drop_policy : std::int64_t {
  probability = VELO_DROP_POLICY_PROBABILITY,  // those of the largest weights, of equal ones the
                                               // first
  position = VELO_DROP_POLICY_POSITION,        // the first
};

// `permuted[sorted_indices[t * k + j]] = tokens[t]`.
struct moe_token_permute_args : velo_moe_token_permute_args {
  using self = moe_token_permute_args;
  using base = velo_moe_token_permute_args;
  moe_token_permute_args() noexcept
      : velo_moe_token_permute_args VELO_MOE_TOKEN_PERMUTE_ARGS_INIT {}

  // [T, n]
  self& tokens(const velo_tensor& value) { return base::tokens = &value, *this; }
  // [T, k] or [T], the experts of each token, -1 - expert for a dropped choice, which comes after
  // all; padded: [experts, capacity], the tokens of each expert
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // [rows, n], dtype of tokens
  self& permuted(const velo_tensor& value) { return base::permuted = &value, *this; }
  // int32, [T k]; padded: as indices
  self& sorted_indices(const velo_tensor& value) { return base::sorted_indices = &value, *this; }
  self& sorted_indices(std::nullptr_t) { return base::sorted_indices = nullptr, *this; }
  // int64, [num_experts], the rows of each expert in permuted: a group_list_tensor
  self& counts(const velo_tensor& value) { return base::counts = &value, *this; }
  self& counts(std::nullptr_t) { return base::counts = nullptr, *this; }
  // rows kept; 0 all, negative: all but so many
  self& num_out_tokens(std::int64_t value) { return base::num_out_tokens = value, *this; }
  // indices are below it; counts need it; 0: 65536 at most
  self& num_experts(std::int64_t value) { return base::num_experts = value, *this; }
  // 1: each expert has as many rows, whose tokens indices lists
  self& padded_mode(bool value) { return base::padded_mode = value, *this; }
};

inline outcome<> moe_token_permute(stream_ref stream, const moe_token_permute_args& args) {
  return detail::check(VELO_FN(moe_token_permute)(stream.get(), &args));
}

// `dtokens[t] = sum[j](dpermuted[sorted_indices[t * k + j]])`.
struct moe_token_permute_backward_args : velo_moe_token_permute_backward_args {
  using self = moe_token_permute_backward_args;
  using base = velo_moe_token_permute_backward_args;
  moe_token_permute_backward_args() noexcept
      : velo_moe_token_permute_backward_args VELO_MOE_TOKEN_PERMUTE_BACKWARD_ARGS_INIT {}

  // [rows, n]
  self& dpermuted(const velo_tensor& value) { return base::dpermuted = &value, *this; }
  // of the forward call, each row once; padded: indices
  self& sorted_indices(const velo_tensor& value) { return base::sorted_indices = &value, *this; }
  // [T, n], dtype of dpermuted
  self& dtokens(const velo_tensor& value) { return base::dtokens = &value, *this; }
  // T
  self& tokens(std::int64_t value) { return base::tokens = value, *this; }
  // 1: each expert has as many rows, whose tokens sorted_indices lists
  self& padded_mode(bool value) { return base::padded_mode = value, *this; }
};

inline outcome<> moe_token_permute_backward(stream_ref stream,
                                            const moe_token_permute_backward_args& args) {
  return detail::check(VELO_FN(moe_token_permute_backward)(stream.get(), &args));
}

// `tokens[t] = sum[j](probs[t, j] * permuted[sorted_indices[t * k + j]])`.
struct moe_token_unpermute_args : velo_moe_token_unpermute_args {
  using self = moe_token_unpermute_args;
  using base = velo_moe_token_unpermute_args;
  moe_token_unpermute_args() noexcept
      : velo_moe_token_unpermute_args VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT {}

  // [rows, n]
  self& permuted(const velo_tensor& value) { return base::permuted = &value, *this; }
  // [T k], each row once; padded: [experts, capacity], the token of each row
  self& sorted_indices(const velo_tensor& value) { return base::sorted_indices = &value, *this; }
  // [T, k], padded [T, experts]; float32 or dtype of permuted; NULL: 1, and k is 1
  self& probs(const velo_tensor& value) { return base::probs = &value, *this; }
  self& probs(std::nullptr_t) { return base::probs = nullptr, *this; }
  // [T, n], dtype of permuted
  self& tokens(const velo_tensor& value) { return base::tokens = &value, *this; }
  // padded: [T, n]
  self& restore_shape(const velo_ints& value) { return base::restore_shape = &value, *this; }
  self& restore_shape(std::nullptr_t) { return base::restore_shape = nullptr, *this; }
  // 1: each expert has as many rows, whose tokens sorted_indices lists
  self& padded_mode(bool value) { return base::padded_mode = value, *this; }
};

inline outcome<> moe_token_unpermute(stream_ref stream, const moe_token_unpermute_args& args) {
  return detail::check(VELO_FN(moe_token_unpermute)(stream.get(), &args));
}

// `dpermuted[sorted_indices[t * k + j]] = probs[t, j] * dy[t]`; `dprobs[t, j] =
// sum(permuted[sorted_indices[t * k + j]] * dy[t])`.
struct moe_token_unpermute_backward_args : velo_moe_token_unpermute_backward_args {
  using self = moe_token_unpermute_backward_args;
  using base = velo_moe_token_unpermute_backward_args;
  moe_token_unpermute_backward_args() noexcept
      : velo_moe_token_unpermute_backward_args VELO_MOE_TOKEN_UNPERMUTE_BACKWARD_ARGS_INIT {}

  // [T, n]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // of the forward call; dprobs needs it
  self& permuted(const velo_tensor& value) { return base::permuted = &value, *this; }
  self& permuted(std::nullptr_t) { return base::permuted = nullptr, *this; }
  // of the forward call
  self& sorted_indices(const velo_tensor& value) { return base::sorted_indices = &value, *this; }
  // of the forward call
  self& probs(const velo_tensor& value) { return base::probs = &value, *this; }
  self& probs(std::nullptr_t) { return base::probs = nullptr, *this; }
  // [rows, n], dtype of dy
  self& dpermuted(const velo_tensor& value) { return base::dpermuted = &value, *this; }
  self& dpermuted(std::nullptr_t) { return base::dpermuted = nullptr, *this; }
  // shape and dtype of probs
  self& dprobs(const velo_tensor& value) { return base::dprobs = &value, *this; }
  self& dprobs(std::nullptr_t) { return base::dprobs = nullptr, *this; }
  // as in moe_token_permute: how many rows there are
  self& num_out_tokens(std::int64_t value) { return base::num_out_tokens = value, *this; }
  // 1: each expert has as many rows, whose tokens sorted_indices lists
  self& padded_mode(bool value) { return base::padded_mode = value, *this; }
};

inline outcome<> moe_token_unpermute_backward(stream_ref stream,
                                              const moe_token_unpermute_backward_args& args) {
  return detail::check(VELO_FN(moe_token_unpermute_backward)(stream.get(), &args));
}

// `w = scale * s / sum[chosen](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss =
// mean(logsumexp(logits)^2)`.
struct topk_router_args : velo_topk_router_args {
  using self = topk_router_args;
  using base = velo_topk_router_args;
  topk_router_args() noexcept : velo_topk_router_args VELO_TOPK_ROUTER_ARGS_INIT {}

  // [T, E]
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // float32, [E], for the choice alone
  self& expert_bias(const velo_tensor& value) { return base::expert_bias = &value, *this; }
  self& expert_bias(std::nullptr_t) { return base::expert_bias = nullptr, *this; }
  // float32, [T, k]
  self& weights(const velo_tensor& value) { return base::weights = &value, *this; }
  // int32, [T, k]
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // int64, [E], choices before any is dropped
  self& counts(const velo_tensor& value) { return base::counts = &value, *this; }
  self& counts(std::nullptr_t) { return base::counts = nullptr, *this; }
  // float32, a number
  self& aux_loss(const velo_tensor& value) { return base::aux_loss = &value, *this; }
  self& aux_loss(std::nullptr_t) { return base::aux_loss = nullptr, *this; }
  // float32, a number
  self& z_loss(const velo_tensor& value) { return base::z_loss = &value, *this; }
  self& z_loss(std::nullptr_t) { return base::z_loss = nullptr, *this; }
  // experts of a token
  self& k(std::int64_t value) { return base::k = value, *this; }
  // s of the logits
  self& score_function(velo::router_score value) {
    return base::score_function = static_cast<std::int64_t>(value), *this;
  }
  // 1 divides the weights of a token by the sum of its chosen s
  self& normalize(bool value) { return base::normalize = value, *this; }
  // of the weights
  self& scale(double value) { return base::scale = value, *this; }
  // groups of as many experts
  self& num_groups(std::int64_t value) { return base::num_groups = value, *this; }
  // groups that are chosen from; 0 all
  self& kept_groups(std::int64_t value) { return base::kept_groups = value, *this; }
  // by which groups are compared
  self& group_score(velo::group_score value) {
    return base::group_score = static_cast<std::int64_t>(value), *this;
  }
  // tokens of an expert at most; 0 all
  self& capacity(std::int64_t value) { return base::capacity = value, *this; }
  // which choices capacity keeps
  self& drop_policy(velo::drop_policy value) {
    return base::drop_policy = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> topk_router(stream_ref stream, const topk_router_args& args) {
  return detail::check(VELO_FN(topk_router)(stream.get(), &args));
}

// `dlogits = ds * dweights + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`.
struct topk_router_backward_args : velo_topk_router_backward_args {
  using self = topk_router_backward_args;
  using base = velo_topk_router_backward_args;
  topk_router_backward_args() noexcept
      : velo_topk_router_backward_args VELO_TOPK_ROUTER_BACKWARD_ARGS_INIT {}

  // of the forward call
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // of the forward call
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // [E]; daux_loss needs it
  self& counts(const velo_tensor& value) { return base::counts = &value, *this; }
  self& counts(std::nullptr_t) { return base::counts = nullptr, *this; }
  // [T, k]
  self& dweights(const velo_tensor& value) { return base::dweights = &value, *this; }
  self& dweights(std::nullptr_t) { return base::dweights = nullptr, *this; }
  // a number
  self& daux_loss(const velo_tensor& value) { return base::daux_loss = &value, *this; }
  self& daux_loss(std::nullptr_t) { return base::daux_loss = nullptr, *this; }
  // a number
  self& dz_loss(const velo_tensor& value) { return base::dz_loss = &value, *this; }
  self& dz_loss(std::nullptr_t) { return base::dz_loss = nullptr, *this; }
  // as logits
  self& dlogits(const velo_tensor& value) { return base::dlogits = &value, *this; }
  // s of the logits
  self& score_function(velo::router_score value) {
    return base::score_function = static_cast<std::int64_t>(value), *this;
  }
  // 1 divides the weights of a token by the sum of its chosen s
  self& normalize(bool value) { return base::normalize = value, *this; }
  // of the weights
  self& scale(double value) { return base::scale = value, *this; }
  // tokens that the losses are means over; 0: T
  self& total_tokens(std::int64_t value) { return base::total_tokens = value, *this; }
};

inline outcome<> topk_router_backward(stream_ref stream, const topk_router_backward_args& args) {
  return detail::check(VELO_FN(topk_router_backward)(stream.get(), &args));
}

// `w = s / sum[kept](s)`; `aux_loss = E * sum[e](f * p)`; `z_loss = mean(logsumexp(logits)^2)`.
struct capacity_gate_args : velo_capacity_gate_args {
  using self = capacity_gate_args;
  using base = velo_capacity_gate_args;
  capacity_gate_args() noexcept : velo_capacity_gate_args VELO_CAPACITY_GATE_ARGS_INIT {}

  // [T, E]; those of a balanced gate come from sinkhorn
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // float32, [T, k]
  self& weights(const velo_tensor& value) { return base::weights = &value, *this; }
  // int32, [T, k], the first choice first
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // int32, [T, k], the place of each choice at its expert
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  // int32, [E, capacity], the token at each place; -1 none
  self& slot_tokens(const velo_tensor& value) { return base::slot_tokens = &value, *this; }
  self& slot_tokens(std::nullptr_t) { return base::slot_tokens = nullptr, *this; }
  // float32, [T, E, capacity], the weights as a matrix
  self& combine(const velo_tensor& value) { return base::combine = &value, *this; }
  self& combine(std::nullptr_t) { return base::combine = nullptr, *this; }
  // uint8, [T, E, capacity], 1 for each choice that is kept
  self& dispatch(const velo_tensor& value) { return base::dispatch = &value, *this; }
  self& dispatch(std::nullptr_t) { return base::dispatch = nullptr, *this; }
  // int64, [E], choices before any is dropped
  self& counts(const velo_tensor& value) { return base::counts = &value, *this; }
  self& counts(std::nullptr_t) { return base::counts = nullptr, *this; }
  // float32, a number
  self& aux_loss(const velo_tensor& value) { return base::aux_loss = &value, *this; }
  self& aux_loss(std::nullptr_t) { return base::aux_loss = nullptr, *this; }
  // float32, a number
  self& z_loss(const velo_tensor& value) { return base::z_loss = &value, *this; }
  self& z_loss(std::nullptr_t) { return base::z_loss = nullptr, *this; }
  // experts of a token
  self& k(std::int64_t value) { return base::k = value, *this; }
  // places over those that even shares need
  self& capacity_factor(double value) { return base::capacity_factor = value, *this; }
  // places of an expert at least, where there are as many tokens
  self& min_capacity(std::int64_t value) { return base::min_capacity = value, *this; }
  // places of an expert, whatever the factor; 0: by it; T: none is dropped
  self& capacity(std::int64_t value) { return base::capacity = value, *this; }
  // of the choice
  self& noise(velo::gate_noise value) {
    return base::noise = static_cast<std::int64_t>(value), *this;
  }
  // 1: draws decide which tokens an expert keeps; 0 where k is 2
  self& random_selection(bool value) { return base::random_selection = value, *this; }
  // key of the generator, modulo 2^64
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // upper half of its counter: another for each call that shares the seed
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // number of the first token among those of all ranks
  self& first_token(std::int64_t value) { return base::first_token = value, *this; }
};

inline outcome<> capacity_gate(stream_ref stream, const capacity_gate_args& args) {
  return detail::check(VELO_FN(capacity_gate)(stream.get(), &args));
}

// `dlogits = ds * dw + E * f * dp * daux_loss / T + 2 * lse * softmax(logits) * dz_loss / T`.
struct capacity_gate_backward_args : velo_capacity_gate_backward_args {
  using self = capacity_gate_backward_args;
  using base = velo_capacity_gate_backward_args;
  capacity_gate_backward_args() noexcept
      : velo_capacity_gate_backward_args VELO_CAPACITY_GATE_BACKWARD_ARGS_INIT {}

  // of the forward call
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // of the forward call
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // of the forward call; dcombine needs them
  self& positions(const velo_tensor& value) { return base::positions = &value, *this; }
  self& positions(std::nullptr_t) { return base::positions = nullptr, *this; }
  // [T, k]
  self& dweights(const velo_tensor& value) { return base::dweights = &value, *this; }
  self& dweights(std::nullptr_t) { return base::dweights = nullptr, *this; }
  // [T, E, capacity]
  self& dcombine(const velo_tensor& value) { return base::dcombine = &value, *this; }
  self& dcombine(std::nullptr_t) { return base::dcombine = nullptr, *this; }
  // a number
  self& daux_loss(const velo_tensor& value) { return base::daux_loss = &value, *this; }
  self& daux_loss(std::nullptr_t) { return base::daux_loss = nullptr, *this; }
  // a number
  self& dz_loss(const velo_tensor& value) { return base::dz_loss = &value, *this; }
  self& dz_loss(std::nullptr_t) { return base::dz_loss = nullptr, *this; }
  // as logits
  self& dlogits(const velo_tensor& value) { return base::dlogits = &value, *this; }
};

inline outcome<> capacity_gate_backward(stream_ref stream,
                                        const capacity_gate_backward_args& args) {
  return detail::check(VELO_FN(capacity_gate_backward)(stream.get(), &args));
}

// `y = rows * exp(logits) * columns`.
struct sinkhorn_args : velo_sinkhorn_args {
  using self = sinkhorn_args;
  using base = velo_sinkhorn_args;
  sinkhorn_args() noexcept : velo_sinkhorn_args VELO_SINKHORN_ARGS_INIT {}

  // [T, E]
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // float32, [T, E]
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // mean change of the factors of experts that ends the rounds
  self& tolerance(double value) { return base::tolerance = value, *this; }
  // rounds at most
  self& max_rounds(std::int64_t value) { return base::max_rounds = value, *this; }
};

inline outcome<> sinkhorn(stream_ref stream, const sinkhorn_args& args) {
  return detail::check(VELO_FN(sinkhorn)(stream.get(), &args));
}

// `dlogits = exp(logits) * dpowers`.
struct sinkhorn_backward_args : velo_sinkhorn_backward_args {
  using self = sinkhorn_backward_args;
  using base = velo_sinkhorn_backward_args;
  sinkhorn_backward_args() noexcept
      : velo_sinkhorn_backward_args VELO_SINKHORN_BACKWARD_ARGS_INIT {}

  // of the forward call
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // [T, E]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // as logits
  self& dlogits(const velo_tensor& value) { return base::dlogits = &value, *this; }
  // mean change of the factors of experts that ends the rounds
  self& tolerance(double value) { return base::tolerance = value, *this; }
  // rounds at most
  self& max_rounds(std::int64_t value) { return base::max_rounds = value, *this; }
};

inline outcome<> sinkhorn_backward(stream_ref stream, const sinkhorn_backward_args& args) {
  return detail::check(VELO_FN(sinkhorn_backward)(stream.get(), &args));
}

// ---- softmax

// `y[i] = exp(scale * x[i]) / sum[j](exp(scale * x[j]))`.
struct softmax_args : velo_softmax_args {
  using self = softmax_args;
  using base = velo_softmax_args;
  softmax_args() noexcept : velo_softmax_args VELO_SOFTMAX_ARGS_INIT {}

  // [.., n]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // nonzero hides; sizes those of x's last dimensions, or 1 in all but the last
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  self& mask(std::nullptr_t) { return base::mask = nullptr, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // x is multiplied by it
  self& scale(double value) { return base::scale = value, *this; }
};

inline outcome<> softmax(stream_ref stream, const softmax_args& args) {
  return detail::check(VELO_FN(softmax)(stream.get(), &args));
}

// `dx[i] = scale * y[i] * (dy[i] - sum[j](dy[j] * y[j]))`.
struct softmax_backward_args : velo_softmax_backward_args {
  using self = softmax_backward_args;
  using base = velo_softmax_backward_args;
  softmax_backward_args() noexcept : velo_softmax_backward_args VELO_SOFTMAX_BACKWARD_ARGS_INIT {}

  // [.., n]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward output: shape and dtype of dy
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // shape and dtype of dy; may be dy or y itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // as in the forward call
  self& scale(double value) { return base::scale = value, *this; }
};

inline outcome<> softmax_backward(stream_ref stream, const softmax_backward_args& args) {
  return detail::check(VELO_FN(softmax_backward)(stream.get(), &args));
}

// ---- unpad

// The products of attention, and of its gradients, over sequences without padding; s is a
// sequence's length, D the columns of a head, hidden = head_num * D.
enum class strided_matmul_preset : std::int64_t {
  none = VELO_STRIDED_MATMUL_PRESET_NONE,              // the lists state the products
  bmm1 = VELO_STRIDED_MATMUL_PRESET_BMM1,              // scores = q k^T, not scaled: a, b rows of
                                                       // hidden, c [head_num, s, s]
  bmm1_grad1 = VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD1,  // dq = dscores k: a [head_num, s, s], b, c
                                                       // rows of hidden
  bmm1_grad2 = VELO_STRIDED_MATMUL_PRESET_BMM1_GRAD2,  // dk^T = q^T dscores: a rows of hidden, b
                                                       // [head_num, s, s], c [head_num, D, s]
  bmm2 = VELO_STRIDED_MATMUL_PRESET_BMM2,              // out = p v, laid out as bmm1_grad1
  bmm2_grad1 = VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD1,  // dp = dout v^T, laid out as bmm1
  bmm2_grad2 = VELO_STRIDED_MATMUL_PRESET_BMM2_GRAD2,  // dv = p^T dout: a [head_num, s, s], b, c
                                                       // rows of hidden
};

// `y[i, j] = x[start[i] + j]`.
struct pad_seqlen_args : velo_pad_seqlen_args {
  using self = pad_seqlen_args;
  using base = velo_pad_seqlen_args;
  pad_seqlen_args() noexcept : velo_pad_seqlen_args VELO_PAD_SEQLEN_ARGS_INIT {}

  // [T, H], T the sum of seq_len
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the length of each sequence, each at most max_seq_len
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // [sequences, max_seq_len, H], dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the length of the rows
  self& max_seq_len(std::int64_t value) { return base::max_seq_len = value, *this; }
};

inline outcome<> pad_seqlen(stream_ref stream, const pad_seqlen_args& args) {
  return detail::check(VELO_FN(pad_seqlen)(stream.get(), &args));
}

// `dx[start[i] + j] = dy[i, j]`.
struct pad_seqlen_backward_args : velo_pad_seqlen_backward_args {
  using self = pad_seqlen_backward_args;
  using base = velo_pad_seqlen_backward_args;
  pad_seqlen_backward_args() noexcept
      : velo_pad_seqlen_backward_args VELO_PAD_SEQLEN_BACKWARD_ARGS_INIT {}

  // [sequences, max_seq_len, H]
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the length of each sequence
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // [T, H], T the sum of seq_len; dtype of dy
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
};

inline outcome<> pad_seqlen_backward(stream_ref stream, const pad_seqlen_backward_args& args) {
  return detail::check(VELO_FN(pad_seqlen_backward)(stream.get(), &args));
}

// `y[start[i] + j] = x[i, j]`.
struct unpad_seqlen_args : velo_unpad_seqlen_args {
  using self = unpad_seqlen_args;
  using base = velo_unpad_seqlen_args;
  unpad_seqlen_args() noexcept : velo_unpad_seqlen_args VELO_UNPAD_SEQLEN_ARGS_INIT {}

  // [sequences, S, H]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the length of each sequence, each at most S
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // [T, H], T the sum of seq_len; dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
};

inline outcome<> unpad_seqlen(stream_ref stream, const unpad_seqlen_args& args) {
  return detail::check(VELO_FN(unpad_seqlen)(stream.get(), &args));
}

// `dx[i, j] = dy[start[i] + j]`.
struct unpad_seqlen_backward_args : velo_unpad_seqlen_backward_args {
  using self = unpad_seqlen_backward_args;
  using base = velo_unpad_seqlen_backward_args;
  unpad_seqlen_backward_args() noexcept
      : velo_unpad_seqlen_backward_args VELO_UNPAD_SEQLEN_BACKWARD_ARGS_INIT {}

  // [T, H], T the sum of seq_len
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the length of each sequence, each at most max_seq_len
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // [sequences, max_seq_len, H], dtype of dy
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // S of the forward input
  self& max_seq_len(std::int64_t value) { return base::max_seq_len = value, *this; }
};

inline outcome<> unpad_seqlen_backward(stream_ref stream, const unpad_seqlen_backward_args& args) {
  return detail::check(VELO_FN(unpad_seqlen_backward)(stream.get(), &args));
}

// `y[h] = mask[i]`.
struct unpad_gen_attention_mask_args : velo_unpad_gen_attention_mask_args {
  using self = unpad_gen_attention_mask_args;
  using base = velo_unpad_gen_attention_mask_args;
  unpad_gen_attention_mask_args() noexcept
      : velo_unpad_gen_attention_mask_args VELO_UNPAD_GEN_ATTENTION_MASK_ARGS_INIT {}

  // [sequences, m, S, S], m mostly 1
  self& mask(const velo_tensor& value) { return base::mask = &value, *this; }
  // the length of each sequence, each at most S
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // flat, head_num * m times the sum of the squared lengths; dtype of mask
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // copies of each
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
};

inline outcome<> unpad_gen_attention_mask(stream_ref stream,
                                          const unpad_gen_attention_mask_args& args) {
  return detail::check(VELO_FN(unpad_gen_attention_mask)(stream.get(), &args));
}

// `q_out = q * cos + rotate(q) * sin`.
struct unpad_rope_args : velo_unpad_rope_args {
  using self = unpad_rope_args;
  using base = velo_unpad_rope_args;
  unpad_rope_args() noexcept : velo_unpad_rope_args VELO_UNPAD_ROPE_ARGS_INIT {}

  // [T, Hq], T the sum of seq_len; Hq a multiple of D and of Hk
  self& q(const velo_tensor& value) { return base::q = &value, *this; }
  // [T, Hk], Hk a multiple of D; dtype of q
  self& k(const velo_tensor& value) { return base::k = &value, *this; }
  // [positions, D], float32 or dtype of q; D even
  self& cos(const velo_tensor& value) { return base::cos = &value, *this; }
  // shape and dtype of cos
  self& sin(const velo_tensor& value) { return base::sin = &value, *this; }
  // [sequences], each at most positions, checked when the call runs
  self& seq_len(const velo_tensor& value) { return base::seq_len = &value, *this; }
  // shape and dtype of q; may be q itself
  self& q_out(const velo_tensor& value) { return base::q_out = &value, *this; }
  // shape and dtype of k; may be k itself
  self& k_out(const velo_tensor& value) { return base::k_out = &value, *this; }
};

inline outcome<> unpad_rope(stream_ref stream, const unpad_rope_args& args) {
  return detail::check(VELO_FN(unpad_rope)(stream.get(), &args));
}

// `dq = dq_out * cos + rotate^T(dq_out * sin)`.
struct unpad_rope_backward_args : velo_unpad_rope_backward_args {
  using self = unpad_rope_backward_args;
  using base = velo_unpad_rope_backward_args;
  unpad_rope_backward_args() noexcept
      : velo_unpad_rope_backward_args VELO_UNPAD_ROPE_BACKWARD_ARGS_INIT {}

  // [T, Hq]
  self& dq_out(const velo_tensor& value) { return base::dq_out = &value, *this; }
  // [T, Hk], dtype of dq_out
  self& dk_out(const velo_tensor& value) { return base::dk_out = &value, *this; }
  // the forward table
  self& cos(const velo_tensor& value) { return base::cos = &value, *this; }
  // the forward table
  self& sin(const velo_tensor& value) { return base::sin = &value, *this; }
  // as in the forward call
  self& seq_len(const velo_tensor& value) { return base::seq_len = &value, *this; }
  // shape and dtype of dq_out; may be dq_out itself
  self& dq(const velo_tensor& value) { return base::dq = &value, *this; }
  // shape and dtype of dk_out; may be dk_out itself
  self& dk(const velo_tensor& value) { return base::dk = &value, *this; }
  // the formula of AscendSpeed, not the gradient
  self& upstream(bool value) { return base::upstream = value, *this; }
};

inline outcome<> unpad_rope_backward(stream_ref stream, const unpad_rope_backward_args& args) {
  return detail::check(VELO_FN(unpad_rope_backward)(stream.get(), &args));
}

// `y[r, i] = exp(x[r, i]) / sum[j](exp(x[r, j]))`.
struct unpad_softmax_args : velo_unpad_softmax_args {
  using self = unpad_softmax_args;
  using base = velo_unpad_softmax_args;
  unpad_softmax_args() noexcept : velo_unpad_softmax_args VELO_UNPAD_SOFTMAX_ARGS_INIT {}

  // flat, head_num times the sum of the squared lengths; or [n, flat], n of these
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the length of each sequence
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // heads
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
};

inline outcome<> unpad_softmax(stream_ref stream, const unpad_softmax_args& args) {
  return detail::check(VELO_FN(unpad_softmax)(stream.get(), &args));
}

// `dx[r, i] = y[r, i] * (dy[r, i] - sum[j](dy[r, j] * y[r, j]))`.
struct unpad_softmax_backward_args : velo_unpad_softmax_backward_args {
  using self = unpad_softmax_backward_args;
  using base = velo_unpad_softmax_backward_args;
  unpad_softmax_backward_args() noexcept
      : velo_unpad_softmax_backward_args VELO_UNPAD_SOFTMAX_BACKWARD_ARGS_INIT {}

  // as y
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward output: shape and dtype of dy
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the length of each sequence
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  // shape and dtype of dy; may be dy or y itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // heads
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
};

inline outcome<> unpad_softmax_backward(stream_ref stream,
                                        const unpad_softmax_backward_args& args) {
  return detail::check(VELO_FN(unpad_softmax_backward)(stream.get(), &args));
}

// `c[i, h] = op(a[i, h]) @ op(b[i, h])`.
struct unpad_strided_batch_matmul_args : velo_unpad_strided_batch_matmul_args {
  using self = unpad_strided_batch_matmul_args;
  using base = velo_unpad_strided_batch_matmul_args;
  unpad_strided_batch_matmul_args() noexcept
      : velo_unpad_strided_batch_matmul_args VELO_UNPAD_STRIDED_BATCH_MATMUL_ARGS_INIT {}

  // flat, [elements] of all its matrices, not [tokens, hidden]; or [r, elements], r of these
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  // likewise, as many of them; dtype of a
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  // likewise; dtype of a
  self& c(const velo_tensor& value) { return base::c = &value, *this; }
  // rows of op(a) and c of each sequence; needed without preset
  self& m(const velo_ints& value) { return base::m = &value, *this; }
  self& m(std::nullptr_t) { return base::m = nullptr, *this; }
  // columns of op(b) and c
  self& n(const velo_ints& value) { return base::n = &value, *this; }
  self& n(std::nullptr_t) { return base::n = nullptr, *this; }
  // columns of op(a), rows of op(b)
  self& k(const velo_ints& value) { return base::k = &value, *this; }
  self& k(std::nullptr_t) { return base::k = nullptr, *this; }
  // elements between stored rows of a; NULL: their length
  self& lda(const velo_ints& value) { return base::lda = &value, *this; }
  self& lda(std::nullptr_t) { return base::lda = nullptr, *this; }
  // elements between stored rows of b; NULL: their length
  self& ldb(const velo_ints& value) { return base::ldb = &value, *this; }
  self& ldb(std::nullptr_t) { return base::ldb = nullptr, *this; }
  // elements between stored rows of c; NULL: their length
  self& ldc(const velo_ints& value) { return base::ldc = &value, *this; }
  self& ldc(std::nullptr_t) { return base::ldc = nullptr, *this; }
  // elements between the matrices of two heads in a; NULL: their size
  self& stride_a(const velo_ints& value) { return base::stride_a = &value, *this; }
  self& stride_a(std::nullptr_t) { return base::stride_a = nullptr, *this; }
  // elements between the matrices of two heads in b; NULL: their size
  self& stride_b(const velo_ints& value) { return base::stride_b = &value, *this; }
  self& stride_b(std::nullptr_t) { return base::stride_b = nullptr, *this; }
  // elements between the matrices of two heads in c; NULL: their size
  self& stride_c(const velo_ints& value) { return base::stride_c = &value, *this; }
  self& stride_c(std::nullptr_t) { return base::stride_c = nullptr, *this; }
  // 1 where a is stored [k, m]; NULL: nowhere
  self& transpose_a(const velo_ints& value) { return base::transpose_a = &value, *this; }
  self& transpose_a(std::nullptr_t) { return base::transpose_a = nullptr, *this; }
  // 1 where b is stored [n, k]; NULL: nowhere
  self& transpose_b(const velo_ints& value) { return base::transpose_b = &value, *this; }
  self& transpose_b(std::nullptr_t) { return base::transpose_b = nullptr, *this; }
  // with a preset the length s of each sequence, in place of all lists
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  self& seq_len(std::nullptr_t) { return base::seq_len = nullptr, *this; }
  // products of each sequence
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // with a preset the columns of a head
  self& head_dim(std::int64_t value) { return base::head_dim = value, *this; }
  // the lists of a product of attention
  self& preset(velo::strided_matmul_preset value) {
    return base::preset = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> unpad_strided_batch_matmul(stream_ref stream,
                                            const unpad_strided_batch_matmul_args& args) {
  return detail::check(VELO_FN(unpad_strided_batch_matmul)(stream.get(), &args));
}

// `da[i, h] = dc[i, h] @ op(b[i, h])^T`; `db[i, h] = op(a[i, h])^T @ dc[i, h]`.
struct unpad_strided_batch_matmul_backward_args : velo_unpad_strided_batch_matmul_backward_args {
  using self = unpad_strided_batch_matmul_backward_args;
  using base = velo_unpad_strided_batch_matmul_backward_args;
  unpad_strided_batch_matmul_backward_args() noexcept
      : velo_unpad_strided_batch_matmul_backward_args
        VELO_UNPAD_STRIDED_BATCH_MATMUL_BACKWARD_ARGS_INIT {}

  // as c
  self& dc(const velo_tensor& value) { return base::dc = &value, *this; }
  // as in the forward call, dtype of dc; db needs it
  self& a(const velo_tensor& value) { return base::a = &value, *this; }
  self& a(std::nullptr_t) { return base::a = nullptr, *this; }
  // as in the forward call, dtype of dc; da needs it
  self& b(const velo_tensor& value) { return base::b = &value, *this; }
  self& b(std::nullptr_t) { return base::b = nullptr, *this; }
  // as a, dtype of dc
  self& da(const velo_tensor& value) { return base::da = &value, *this; }
  self& da(std::nullptr_t) { return base::da = nullptr, *this; }
  // as b, dtype of dc
  self& db(const velo_tensor& value) { return base::db = &value, *this; }
  self& db(std::nullptr_t) { return base::db = nullptr, *this; }
  // rows of op(a) and c of each sequence; needed without preset
  self& m(const velo_ints& value) { return base::m = &value, *this; }
  self& m(std::nullptr_t) { return base::m = nullptr, *this; }
  // columns of op(b) and c
  self& n(const velo_ints& value) { return base::n = &value, *this; }
  self& n(std::nullptr_t) { return base::n = nullptr, *this; }
  // columns of op(a), rows of op(b)
  self& k(const velo_ints& value) { return base::k = &value, *this; }
  self& k(std::nullptr_t) { return base::k = nullptr, *this; }
  // elements between stored rows of a; NULL: their length
  self& lda(const velo_ints& value) { return base::lda = &value, *this; }
  self& lda(std::nullptr_t) { return base::lda = nullptr, *this; }
  // elements between stored rows of b; NULL: their length
  self& ldb(const velo_ints& value) { return base::ldb = &value, *this; }
  self& ldb(std::nullptr_t) { return base::ldb = nullptr, *this; }
  // elements between stored rows of c; NULL: their length
  self& ldc(const velo_ints& value) { return base::ldc = &value, *this; }
  self& ldc(std::nullptr_t) { return base::ldc = nullptr, *this; }
  // elements between the matrices of two heads in a; NULL: their size
  self& stride_a(const velo_ints& value) { return base::stride_a = &value, *this; }
  self& stride_a(std::nullptr_t) { return base::stride_a = nullptr, *this; }
  // elements between the matrices of two heads in b; NULL: their size
  self& stride_b(const velo_ints& value) { return base::stride_b = &value, *this; }
  self& stride_b(std::nullptr_t) { return base::stride_b = nullptr, *this; }
  // elements between the matrices of two heads in c; NULL: their size
  self& stride_c(const velo_ints& value) { return base::stride_c = &value, *this; }
  self& stride_c(std::nullptr_t) { return base::stride_c = nullptr, *this; }
  // 1 where a is stored [k, m]; NULL: nowhere
  self& transpose_a(const velo_ints& value) { return base::transpose_a = &value, *this; }
  self& transpose_a(std::nullptr_t) { return base::transpose_a = nullptr, *this; }
  // 1 where b is stored [n, k]; NULL: nowhere
  self& transpose_b(const velo_ints& value) { return base::transpose_b = &value, *this; }
  self& transpose_b(std::nullptr_t) { return base::transpose_b = nullptr, *this; }
  // with a preset the length s of each sequence, in place of all lists
  self& seq_len(const velo_ints& value) { return base::seq_len = &value, *this; }
  self& seq_len(std::nullptr_t) { return base::seq_len = nullptr, *this; }
  // products of each sequence
  self& head_num(std::int64_t value) { return base::head_num = value, *this; }
  // with a preset the columns of a head
  self& head_dim(std::int64_t value) { return base::head_dim = value, *this; }
  // the lists of a product of attention
  self& preset(velo::strided_matmul_preset value) {
    return base::preset = static_cast<std::int64_t>(value), *this;
  }
};

inline outcome<> unpad_strided_batch_matmul_backward(
    stream_ref stream, const unpad_strided_batch_matmul_backward_args& args) {
  return detail::check(VELO_FN(unpad_strided_batch_matmul_backward)(stream.get(), &args));
}

// ---- quant

// The elements that share a scale.
enum class quantized_over : std::int64_t {
  tensor = VELO_QUANTIZED_OVER_TENSOR,    // all
  token = VELO_QUANTIZED_OVER_TOKEN,      // those of a row along the last dimension
  channel = VELO_QUANTIZED_OVER_CHANNEL,  // those along the last dimension but one
  group = VELO_QUANTIZED_OVER_GROUP,      // group_size neighbors along the last dimension but one
};

// Integers of a quantized tensor.
enum class quantized_format : std::int64_t {
  int8 = VELO_QUANTIZED_FORMAT_INT8,  // 8 bits
  int4 = VELO_QUANTIZED_FORMAT_INT4,  // 4 bits, two to a byte
};

// `scale = max(abs(x)) / limit`; `y = round(x / scale)`.
struct quantize_args : velo_quantize_args {
  using self = quantize_args;
  using base = velo_quantize_args;
  quantize_args() noexcept : velo_quantize_args VELO_QUANTIZE_ARGS_INIT {}

  // [.., k, n]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // int8 [.., k, n]; of int4 uint8 [.., k, n / 2], or int4 [.., k, n]
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32: [], [.., k] of tokens, [.., n] of channels, [.., k / group_size, n] of groups
  self& scale(const velo_tensor& value) { return base::scale = &value, *this; }
  // what has a scale of its own
  self& over(velo::quantized_over value) {
    return base::over = static_cast<std::int64_t>(value), *this;
  }
  // of y
  self& format(velo::quantized_format value) {
    return base::format = static_cast<std::int64_t>(value), *this;
  }
  // of groups: a divisor of k, 32, 64, 128 or another multiple of 32
  self& group_size(std::int64_t value) { return base::group_size = value, *this; }
};

inline outcome<> quantize(stream_ref stream, const quantize_args& args) {
  return detail::check(VELO_FN(quantize)(stream.get(), &args));
}

// ---- parallel

// The dimension that is divided among ranks.
enum class sequence_cut : std::int64_t {
  heads = VELO_SEQUENCE_CUT_HEADS,  // heads; all rows on each rank
  rows = VELO_SEQUENCE_CUT_ROWS,    // rows; all heads on each rank
};

// `y = rows_or_heads(x)`.
struct sequence_all_to_all_args : velo_sequence_all_to_all_args {
  using self = sequence_all_to_all_args;
  using base = velo_sequence_all_to_all_args;
  sequence_all_to_all_args() noexcept
      : velo_sequence_all_to_all_args VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [rows, heads, ..]: to heads, this rank's rows of all heads; to rows, all rows of this rank's
  // heads
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [rows, heads, ..] the other way, dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the cut of y
  self& to(velo::sequence_cut value) { return base::to = static_cast<std::int64_t>(value), *this; }
  // [ranks]: rows of each rank, the same list on all; NULL: as many on each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
  // [2 ranks]: begin and end of each rank's heads, the same list on all; NULL: as many for each,
  // one rank's after another's
  self& heads(const velo_ints& value) { return base::heads = &value, *this; }
  self& heads(std::nullptr_t) { return base::heads = nullptr, *this; }
};

inline outcome<> sequence_all_to_all(stream_ref stream, const sequence_all_to_all_args& args) {
  return detail::check(VELO_FN(sequence_all_to_all)(stream.get(), &args));
}

// `attention_out = softmax(scale * query @ key^T) @ value`.
struct context_parallel_attention_args : velo_context_parallel_attention_args {
  using self = context_parallel_attention_args;
  using base = velo_context_parallel_attention_args;
  context_parallel_attention_args() noexcept
      : velo_context_parallel_attention_args VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT {}

  // the context-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // rows, tasks and messages of the ranks; it must live until the call has run; NULL: a causal ring
  // of the group over one document, whose ranks have as many rows each
  self& plan(velo_sequence_plan value) { return base::plan = value, *this; }
  // [S, N, D] or [B, S, N, D]: the rows of this rank, in the order of the plan
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // the same with Nkv heads, dtype of query
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // the same with Nkv heads of Dv elements, dtype of query
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // shape and dtype of query with Dv for D
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // float32 [heads, rows] or [B, heads, rows] of the queries that this rank computes: its own, or
  // with Ulysses all rows of its heads
  self& softmax_max(const velo_tensor& value) { return base::softmax_max = &value, *this; }
  self& softmax_max(std::nullptr_t) { return base::softmax_max = nullptr, *this; }
  // the same of the sum of exp(score - softmax_max)
  self& softmax_sum(const velo_tensor& value) { return base::softmax_sum = &value, *this; }
  self& softmax_sum(std::nullptr_t) { return base::softmax_sum = nullptr, *this; }
  // [n], dtype of query: blocks of other ranks that the plan keeps for the gradient, and for layers
  // that share the keys; velo_op_infer tells n
  self& kept(const velo_tensor& value) { return base::kept = &value, *this; }
  self& kept(std::nullptr_t) { return base::kept = nullptr, *this; }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  self& scale(double value) { return base::scale = value, *this; }
  // [N]: a score gets -slope * |i - j| for rows i and j of the sequence
  self& alibi_slopes(const velo_tensor& value) { return base::alibi_slopes = &value, *this; }
  self& alibi_slopes(std::nullptr_t) { return base::alibi_slopes = nullptr, *this; }
  // 1: -slope * sqrt(|i - j|)
  self& alibi_root(bool value) { return base::alibi_root = value, *this; }
  // share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all; decided by the
  // indices of the whole [B, N, sequence, sequence], so that no cut changes it: ranks that have
  // some heads or sequences give dropout_origin
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // of dropout, as the operator dropout has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 2 values: where the call's [B, N] begins in the whole [B, N, sequence, sequence], whose indices
  // decide; the same on all ranks of group
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // 2 values, B and N of the whole; by default the call's own
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
  // [n], dtype of query: kept of the call of the layer that owns the keys, which had the plan of
  // KEYS_SHARED; where this plan is of KEYS_GIVEN and takes any
  self& given(const velo_tensor& value) { return base::given = &value, *this; }
  self& given(std::nullptr_t) { return base::given = nullptr, *this; }
};

inline outcome<> context_parallel_attention(stream_ref stream,
                                            const context_parallel_attention_args& args) {
  return detail::check(VELO_FN(context_parallel_attention)(stream.get(), &args));
}

// `delta = sum[Dv](dy * attention_out)`; `dvalue = P^T @ dy`; `dS = P * (dy @ value^T - delta)`;
// `dquery = scale * dS @ key`; `dkey = scale * dS^T @ query`.
struct context_parallel_attention_backward_args : velo_context_parallel_attention_backward_args {
  using self = context_parallel_attention_backward_args;
  using base = velo_context_parallel_attention_backward_args;
  context_parallel_attention_backward_args() noexcept
      : velo_context_parallel_attention_backward_args
        VELO_CONTEXT_PARALLEL_ATTENTION_BACKWARD_ARGS_INIT {}

  // the context-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // rows, tasks and messages of the ranks; it must live until the call has run; NULL: a causal ring
  // of the group over one document, whose ranks have as many rows each
  self& plan(velo_sequence_plan value) { return base::plan = value, *this; }
  // [S, N, D] or [B, S, N, D]: the rows of this rank, in the order of the plan
  self& query(const velo_tensor& value) { return base::query = &value, *this; }
  // the same with Nkv heads, dtype of query
  self& key(const velo_tensor& value) { return base::key = &value, *this; }
  // the same with Nkv heads of Dv elements, dtype of query
  self& value(const velo_tensor& value) { return base::value = &value, *this; }
  // gradient of attention_out: its shape and dtype
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // from the forward pass
  self& softmax_max(const velo_tensor& value) { return base::softmax_max = &value, *this; }
  // from the forward pass
  self& softmax_sum(const velo_tensor& value) { return base::softmax_sum = &value, *this; }
  // from the forward pass
  self& attention_out(const velo_tensor& value) { return base::attention_out = &value, *this; }
  // from the forward pass; NULL where it has no elements
  self& kept(const velo_tensor& value) { return base::kept = &value, *this; }
  self& kept(std::nullptr_t) { return base::kept = nullptr, *this; }
  // shape and dtype of query
  self& dquery(const velo_tensor& value) { return base::dquery = &value, *this; }
  // shape and dtype of key
  self& dkey(const velo_tensor& value) { return base::dkey = &value, *this; }
  // shape and dtype of value
  self& dvalue(const velo_tensor& value) { return base::dvalue = &value, *this; }
  // factor of the products, usually 1 / sqrt(D); finite in float32
  self& scale(double value) { return base::scale = value, *this; }
  // [N]: a score gets -slope * |i - j| for rows i and j of the sequence
  self& alibi_slopes(const velo_tensor& value) { return base::alibi_slopes = &value, *this; }
  self& alibi_slopes(std::nullptr_t) { return base::alibi_slopes = nullptr, *this; }
  // 1: -slope * sqrt(|i - j|)
  self& alibi_root(bool value) { return base::alibi_root = value, *this; }
  // share of probabilities that dropout keeps, times 1 / keep_prob; 0 drops all; decided by the
  // indices of the whole [B, N, sequence, sequence], so that no cut changes it: ranks that have
  // some heads or sequences give dropout_origin
  self& keep_prob(double value) { return base::keep_prob = value, *this; }
  // of dropout, as the operator dropout has it
  self& seed(std::int64_t value) { return base::seed = value, *this; }
  // of dropout
  self& offset(std::int64_t value) { return base::offset = value, *this; }
  // 2 values: where the call's [B, N] begins in the whole [B, N, sequence, sequence], whose indices
  // decide; the same on all ranks of group
  self& dropout_origin(const velo_ints& value) { return base::dropout_origin = &value, *this; }
  self& dropout_origin(std::nullptr_t) { return base::dropout_origin = nullptr, *this; }
  // 2 values, B and N of the whole; by default the call's own
  self& dropout_extents(const velo_ints& value) { return base::dropout_extents = &value, *this; }
  self& dropout_extents(std::nullptr_t) { return base::dropout_extents = nullptr, *this; }
  // as in the forward pass
  self& given(const velo_tensor& value) { return base::given = &value, *this; }
  self& given(std::nullptr_t) { return base::given = nullptr, *this; }
};

inline outcome<> context_parallel_attention_backward(
    stream_ref stream, const context_parallel_attention_backward_args& args) {
  return detail::check(VELO_FN(context_parallel_attention_backward)(stream.get(), &args));
}

// `lse[t] = log(sum[v](exp(logits[t, v])))`; `loss[t] = (1 - e) * (lse[t] - logits[t, targets[t]])
// + e / V * sum[v](lse[t] - logits[t, v])`.
struct vocab_parallel_cross_entropy_args : velo_vocab_parallel_cross_entropy_args {
  using self = vocab_parallel_cross_entropy_args;
  using base = velo_vocab_parallel_cross_entropy_args;
  vocab_parallel_cross_entropy_args() noexcept
      : velo_vocab_parallel_cross_entropy_args VELO_VOCAB_PARALLEL_CROSS_ENTROPY_ARGS_INIT {}

  // the ranks that the classes are cut between, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [T, n]: this rank's classes
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // [T], the same on all ranks; each in [0, V) or ignore_index
  self& targets(const velo_tensor& value) { return base::targets = &value, *this; }
  // float32, [T]; the same bits on all ranks
  self& loss(const velo_tensor& value) { return base::loss = &value, *this; }
  // float32, [T]: log-sum-exp over all classes, what the gradient needs
  self& lse(const velo_tensor& value) { return base::lse = &value, *this; }
  self& lse(std::nullptr_t) { return base::lse = nullptr, *this; }
  // the target that does not count
  self& ignore_index(std::int64_t value) { return base::ignore_index = value, *this; }
  // e
  self& label_smoothing(double value) { return base::label_smoothing = value, *this; }
  // the first class of this rank; -1: rank * n; the ranks' columns hold each class once
  self& vocab_begin(std::int64_t value) { return base::vocab_begin = value, *this; }
  // V, classes of all ranks; those from V on are padding, which counts nowhere and has the gradient
  // 0; 0: n * ranks, or vocab_begin + n if that is more; needed where columns are uneven
  self& vocab_size(std::int64_t value) { return base::vocab_size = value, *this; }
};

inline outcome<> vocab_parallel_cross_entropy(stream_ref stream,
                                              const vocab_parallel_cross_entropy_args& args) {
  return detail::check(VELO_FN(vocab_parallel_cross_entropy)(stream.get(), &args));
}

// `dlogits[t, v] = (exp(logits[t, v] - lse[t]) - (1 - e) * [v = targets[t]] - e / V) * dloss[t]`.
struct vocab_parallel_cross_entropy_backward_args : velo_vocab_parallel_cross_entropy_backward_args {
  using self = vocab_parallel_cross_entropy_backward_args;
  using base = velo_vocab_parallel_cross_entropy_backward_args;
  vocab_parallel_cross_entropy_backward_args() noexcept
      : velo_vocab_parallel_cross_entropy_backward_args
        VELO_VOCAB_PARALLEL_CROSS_ENTROPY_BACKWARD_ARGS_INIT {}

  // the ranks that the classes are cut between, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // float32, [T]: divided by the count of the tokens of all ranks where a mean is wanted
  self& dloss(const velo_tensor& value) { return base::dloss = &value, *this; }
  // the forward input
  self& logits(const velo_tensor& value) { return base::logits = &value, *this; }
  // the forward targets
  self& targets(const velo_tensor& value) { return base::targets = &value, *this; }
  // float32, [T], from the forward pass
  self& lse(const velo_tensor& value) { return base::lse = &value, *this; }
  // shape and dtype of logits; may be logits itself
  self& dlogits(const velo_tensor& value) { return base::dlogits = &value, *this; }
  // the target that does not count
  self& ignore_index(std::int64_t value) { return base::ignore_index = value, *this; }
  // e
  self& label_smoothing(double value) { return base::label_smoothing = value, *this; }
  // the first class of this rank; -1: rank * n
  self& vocab_begin(std::int64_t value) { return base::vocab_begin = value, *this; }
  // V, classes of all ranks; those from V on are padding, which counts nowhere and has the gradient
  // 0; 0: n * ranks, or vocab_begin + n if that is more; needed where columns are uneven
  self& vocab_size(std::int64_t value) { return base::vocab_size = value, *this; }
};

inline outcome<> vocab_parallel_cross_entropy_backward(
    stream_ref stream, const vocab_parallel_cross_entropy_backward_args& args) {
  return detail::check(VELO_FN(vocab_parallel_cross_entropy_backward)(stream.get(), &args));
}

// `y[t] = table[indices[t]]`.
struct vocab_parallel_embedding_args : velo_vocab_parallel_embedding_args {
  using self = vocab_parallel_embedding_args;
  using base = velo_vocab_parallel_embedding_args;
  vocab_parallel_embedding_args() noexcept
      : velo_vocab_parallel_embedding_args VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT {}

  // the ranks that the rows are cut between, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // any shape, the same indices on all ranks; each in [0, V)
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // [v, h]: this rank's rows of the table
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // shape of indices with h appended, dtype of weight; with sequence_parallel the first dimension
  // is this rank's part of it
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // the first row of this rank; -1: rank * v
  self& vocab_begin(std::int64_t value) { return base::vocab_begin = value, *this; }
  // V, rows of all ranks; those from V on are padding, which no index may name; 0: v * ranks, or
  // vocab_begin + v if that is more; needed where rows are uneven
  self& vocab_size(std::int64_t value) { return base::vocab_size = value, *this; }
  // 1: each rank gets its part of the first dimension of indices, which the ranks divide evenly or
  // by token_rows; 0: each gets all of y
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // [ranks]: rows of the first dimension of indices that each rank gets, the same list on all, with
  // sequence_parallel alone; some may be 0; NULL: as many on each
  self& token_rows(const velo_ints& value) { return base::token_rows = &value, *this; }
  self& token_rows(std::nullptr_t) { return base::token_rows = nullptr, *this; }
};

inline outcome<> vocab_parallel_embedding(stream_ref stream,
                                          const vocab_parallel_embedding_args& args) {
  return detail::check(VELO_FN(vocab_parallel_embedding)(stream.get(), &args));
}

// `dtable[indices[t]] += dy[t]`.
struct vocab_parallel_embedding_backward_args : velo_vocab_parallel_embedding_backward_args {
  using self = vocab_parallel_embedding_backward_args;
  using base = velo_vocab_parallel_embedding_backward_args;
  vocab_parallel_embedding_backward_args() noexcept
      : velo_vocab_parallel_embedding_backward_args
        VELO_VOCAB_PARALLEL_EMBEDDING_BACKWARD_ARGS_INIT {}

  // the ranks that the rows are cut between, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // as in the forward call
  self& indices(const velo_tensor& value) { return base::indices = &value, *this; }
  // gradient of y, with its shape; without sequence_parallel the same on all ranks
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // float32, [rows, h]
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  // v, this rank's rows of the table
  self& rows(std::int64_t value) { return base::rows = value, *this; }
  // 1 adds to dweight instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // the first row of this rank; -1: rank * rows
  self& vocab_begin(std::int64_t value) { return base::vocab_begin = value, *this; }
  // V, rows of all ranks, as in the forward call; 0: rows * ranks, or vocab_begin + rows if that is
  // more
  self& vocab_size(std::int64_t value) { return base::vocab_size = value, *this; }
  // 1: dy has this rank's part of the first dimension of indices; 0: all of it
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // as in the forward call
  self& token_rows(const velo_ints& value) { return base::token_rows = &value, *this; }
  self& token_rows(std::nullptr_t) { return base::token_rows = nullptr, *this; }
};

inline outcome<> vocab_parallel_embedding_backward(
    stream_ref stream, const vocab_parallel_embedding_backward_args& args) {
  return detail::check(VELO_FN(vocab_parallel_embedding_backward)(stream.get(), &args));
}

// `y = gather_ranks(x) @ weight^T + bias`.
struct column_parallel_linear_args : velo_column_parallel_linear_args {
  using self = column_parallel_linear_args;
  using base = velo_column_parallel_linear_args;
  column_parallel_linear_args() noexcept
      : velo_column_parallel_linear_args VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT {}

  // the tensor-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [s, .., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [n, k]: this rank's outputs; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [n], float32 or the dtype of x
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [S, .., n], dtype of x; with gather_output [S, .., N], the outputs of rank after rank; N =
  // ranks * n, or the sum of columns
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // x of all ranks, [S, .., k]: what the gradient to weight needs; [0] without sequence_parallel
  self& gathered(const velo_tensor& value) { return base::gathered = &value, *this; }
  self& gathered(std::nullptr_t) { return base::gathered = nullptr, *this; }
  // 1: the rows of x are cut between the ranks; S: rows of all ranks; 0: every rank has all rows,
  // and S is s
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // 1: y has the outputs of all ranks; excludes sequence_parallel
  self& gather_output(bool value) { return base::gather_output = value, *this; }
  // [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on
  // each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
  // slices of rows, as matmul_all_reduce has them
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // a pack of weight with transpose, [k, n], beside it: products read the pack where it has the
  // form of their instruction set, and weight elsewhere; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // [ranks]: n of each rank, the same list on all, with gather_output alone; some may be 0; NULL:
  // as many on each
  self& columns(const velo_ints& value) { return base::columns = &value, *this; }
  self& columns(std::nullptr_t) { return base::columns = nullptr, *this; }
};

inline outcome<> column_parallel_linear(stream_ref stream,
                                        const column_parallel_linear_args& args) {
  return detail::check(VELO_FN(column_parallel_linear)(stream.get(), &args));
}

// `dx = sum_ranks(dy @ weight)`; `dweight = dy^T @ gather_ranks(x)`; `dbias = sum[rows](dy)`.
struct column_parallel_linear_backward_args : velo_column_parallel_linear_backward_args {
  using self = column_parallel_linear_backward_args;
  using base = velo_column_parallel_linear_backward_args;
  column_parallel_linear_backward_args() noexcept
      : velo_column_parallel_linear_backward_args VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT {}

  // the tensor-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [S, .., n], dtype of x; with gather_output [S, .., N], of which this rank reads its n
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // [s, .., k], the forward input; dweight needs it or gathered
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // [S, .., k] from the forward pass with sequence_parallel, in place of x; [0] counts as NULL
  self& gathered(const velo_tensor& value) { return base::gathered = &value, *this; }
  self& gathered(std::nullptr_t) { return base::gathered = nullptr, *this; }
  // [n, k]: the forward weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [s, .., k], dtype of x
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  self& dx(std::nullptr_t) { return base::dx = nullptr, *this; }
  // [n, k], the weight's gradient on this rank; float32, as main gradients are, or the dtype of x
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  self& dweight(std::nullptr_t) { return base::dweight = nullptr, *this; }
  // float32, [n]
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // as in the forward call
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // as in the forward call
  self& gather_output(bool value) { return base::gather_output = value, *this; }
  // 1 adds to dweight and dbias (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on
  // each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
  // slices of rows, as matmul_all_reduce has them
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // a pack of weight, [n, k], beside it: the product for dx reads the pack where it has the form of
  // its instruction set, and weight elsewhere; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
  // as in the forward call
  self& columns(const velo_ints& value) { return base::columns = &value, *this; }
  self& columns(std::nullptr_t) { return base::columns = nullptr, *this; }
};

inline outcome<> column_parallel_linear_backward(stream_ref stream,
                                                 const column_parallel_linear_backward_args& args) {
  return detail::check(VELO_FN(column_parallel_linear_backward)(stream.get(), &args));
}

// `y = sum_ranks(x @ weight^T) + bias`.
struct row_parallel_linear_args : velo_row_parallel_linear_args {
  using self = row_parallel_linear_args;
  using base = velo_row_parallel_linear_args;
  row_parallel_linear_args() noexcept
      : velo_row_parallel_linear_args VELO_ROW_PARALLEL_LINEAR_ARGS_INIT {}

  // the tensor-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [S, .., k]
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // [n, k]: this rank's inputs; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [n], float32 or the dtype of x, the same on all ranks
  self& bias(const velo_tensor& value) { return base::bias = &value, *this; }
  self& bias(std::nullptr_t) { return base::bias = nullptr, *this; }
  // [s, .., n], dtype of x
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // 1: y has this rank's rows, s of S; 0: all rows, and s is S
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on
  // each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
  // slices of rows, as matmul_all_reduce has them
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // a pack of weight with transpose, [k, n], beside it: products read the pack where it has the
  // form of their instruction set, and weight elsewhere; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> row_parallel_linear(stream_ref stream, const row_parallel_linear_args& args) {
  return detail::check(VELO_FN(row_parallel_linear)(stream.get(), &args));
}

// `dx = gather_ranks(dy) @ weight`; `dweight = gather_ranks(dy)^T @ x`; `dbias =
// sum[rows](gather_ranks(dy))`.
struct row_parallel_linear_backward_args : velo_row_parallel_linear_backward_args {
  using self = row_parallel_linear_backward_args;
  using base = velo_row_parallel_linear_backward_args;
  row_parallel_linear_backward_args() noexcept
      : velo_row_parallel_linear_backward_args VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT {}

  // the tensor-parallel ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [s, .., n], dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // [S, .., k], the forward input; dweight needs it
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  self& x(std::nullptr_t) { return base::x = nullptr, *this; }
  // [n, k]: the forward weight; dtype of x
  self& weight(const velo_tensor& value) { return base::weight = &value, *this; }
  // [S, .., k], dtype of x
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  self& dx(std::nullptr_t) { return base::dx = nullptr, *this; }
  // [n, k], the weight's gradient on this rank; float32, as main gradients are, or the dtype of x
  self& dweight(const velo_tensor& value) { return base::dweight = &value, *this; }
  self& dweight(std::nullptr_t) { return base::dweight = nullptr, *this; }
  // float32, [n]: over the rows of all ranks
  self& dbias(const velo_tensor& value) { return base::dbias = &value, *this; }
  self& dbias(std::nullptr_t) { return base::dbias = nullptr, *this; }
  // as in the forward call
  self& sequence_parallel(bool value) { return base::sequence_parallel = value, *this; }
  // 1 adds to dweight and dbias (in float32, rounded once)
  self& accumulate(bool value) { return base::accumulate = value, *this; }
  // [ranks]: s of each rank, the same list on all, with sequence_parallel alone; NULL: as many on
  // each
  self& rows(const velo_ints& value) { return base::rows = &value, *this; }
  self& rows(std::nullptr_t) { return base::rows = nullptr, *this; }
  // slices of rows, as matmul_all_reduce has them
  self& parallel_num(std::int64_t value) { return base::parallel_num = value, *this; }
  // a pack of weight, [n, k], beside it: the product for dx reads the pack where it has the form of
  // its instruction set, and weight elsewhere; NULL: each call packs anew
  self& packed(velo_pack value) { return base::packed = value, *this; }
};

inline outcome<> row_parallel_linear_backward(stream_ref stream,
                                              const row_parallel_linear_backward_args& args) {
  return detail::check(VELO_FN(row_parallel_linear_backward)(stream.get(), &args));
}

// `rstd = 1 / sqrt(mean(x^2) + epsilon)`; `y = x * rstd * gamma`.
struct parallel_rms_norm_args : velo_parallel_rms_norm_args {
  using self = parallel_rms_norm_args;
  using base = velo_parallel_rms_norm_args;
  parallel_rms_norm_args() noexcept
      : velo_parallel_rms_norm_args VELO_PARALLEL_RMS_NORM_ARGS_INIT {}

  // the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this
  // one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [..., n]: this rank's part of the rows, compact; as many rows on all ranks, n may differ
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32, the shape of x with a 1 for each normalized dimension; the same bits on all ranks;
  // what the gradient needs; NaN where these hold no element
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // added to the mean square; a finite number, the same on all ranks
  self& epsilon(double value) { return base::epsilon = value, *this; }
};

inline outcome<> parallel_rms_norm(stream_ref stream, const parallel_rms_norm_args& args) {
  return detail::check(VELO_FN(parallel_rms_norm)(stream.get(), &args));
}

// `dx = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))`; `dgamma = sum[rows](dy * x *
// rstd)`.
struct parallel_rms_norm_backward_args : velo_parallel_rms_norm_backward_args {
  using self = parallel_rms_norm_backward_args;
  using base = velo_parallel_rms_norm_backward_args;
  parallel_rms_norm_backward_args() noexcept
      : velo_parallel_rms_norm_backward_args VELO_PARALLEL_RMS_NORM_BACKWARD_ARGS_INIT {}

  // the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this
  // one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the forward gain
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // float32, shape of gamma
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // 1 adds to dgamma instead of writing it
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> parallel_rms_norm_backward(stream_ref stream,
                                            const parallel_rms_norm_backward_args& args) {
  return detail::check(VELO_FN(parallel_rms_norm_backward)(stream.get(), &args));
}

// `mu = mean(x)`; `rstd = 1 / sqrt(mean((x - mu)^2) + epsilon)`; `y = (x - mu) * rstd * gamma +
// beta`.
struct parallel_layer_norm_args : velo_parallel_layer_norm_args {
  using self = parallel_layer_norm_args;
  using base = velo_parallel_layer_norm_args;
  parallel_layer_norm_args() noexcept
      : velo_parallel_layer_norm_args VELO_PARALLEL_LAYER_NORM_ARGS_INIT {}

  // the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this
  // one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [..., n]: this rank's part of the rows, compact; as many rows on all ranks, n may differ
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // trailing dimensions of x; float32, or the dtype of x; NULL = 1
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  self& gamma(std::nullptr_t) { return base::gamma = nullptr, *this; }
  // shape of gamma, [n] without it; float32, or the dtype of x; NULL = 0
  self& beta(const velo_tensor& value) { return base::beta = &value, *this; }
  self& beta(std::nullptr_t) { return base::beta = nullptr, *this; }
  // shape and dtype of x; may be x itself
  self& y(const velo_tensor& value) { return base::y = &value, *this; }
  // float32, the shape of x with a 1 for each normalized dimension; the same bits on all ranks;
  // what the gradient needs; NaN where these hold no element
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  self& mean(std::nullptr_t) { return base::mean = nullptr, *this; }
  // like mean
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  self& rstd(std::nullptr_t) { return base::rstd = nullptr, *this; }
  // added to the mean square; a finite number, the same on all ranks
  self& epsilon(double value) { return base::epsilon = value, *this; }
};

inline outcome<> parallel_layer_norm(stream_ref stream, const parallel_layer_norm_args& args) {
  return detail::check(VELO_FN(parallel_layer_norm)(stream.get(), &args));
}

// `g = dy * gamma`; `h = (x - mean) * rstd`; `dx = rstd * (g - mean(g) - h * mean(g * h))`; `dgamma
// = sum[rows](dy * h)`; `dbeta = sum[rows](dy)`.
struct parallel_layer_norm_backward_args : velo_parallel_layer_norm_backward_args {
  using self = parallel_layer_norm_backward_args;
  using base = velo_parallel_layer_norm_backward_args;
  parallel_layer_norm_backward_args() noexcept
      : velo_parallel_layer_norm_backward_args VELO_PARALLEL_LAYER_NORM_BACKWARD_ARGS_INIT {}

  // the ranks that the normalized dimensions are cut between, of the stream's context; NULL: this
  // one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // shape and dtype of x
  self& dy(const velo_tensor& value) { return base::dy = &value, *this; }
  // the forward input
  self& x(const velo_tensor& value) { return base::x = &value, *this; }
  // the forward gain; NULL = 1
  self& gamma(const velo_tensor& value) { return base::gamma = &value, *this; }
  self& gamma(std::nullptr_t) { return base::gamma = nullptr, *this; }
  // from the forward pass
  self& mean(const velo_tensor& value) { return base::mean = &value, *this; }
  // from the forward pass
  self& rstd(const velo_tensor& value) { return base::rstd = &value, *this; }
  // shape and dtype of x; may be dy itself
  self& dx(const velo_tensor& value) { return base::dx = &value, *this; }
  // float32, the normalized dimensions of x
  self& dgamma(const velo_tensor& value) { return base::dgamma = &value, *this; }
  self& dgamma(std::nullptr_t) { return base::dgamma = nullptr, *this; }
  // like dgamma
  self& dbeta(const velo_tensor& value) { return base::dbeta = &value, *this; }
  self& dbeta(std::nullptr_t) { return base::dbeta = nullptr, *this; }
  // 1 adds to dgamma and dbeta instead of writing them
  self& accumulate(bool value) { return base::accumulate = value, *this; }
};

inline outcome<> parallel_layer_norm_backward(stream_ref stream,
                                              const parallel_layer_norm_backward_args& args) {
  return detail::check(VELO_FN(parallel_layer_norm_backward)(stream.get(), &args));
}

// `capacity = max_ranks(max[e](counts))`.
struct capacity_args : velo_capacity_args {
  using self = capacity_args;
  using base = velo_capacity_args;
  capacity_args() noexcept : velo_capacity_args VELO_CAPACITY_ARGS_INIT {}

  // the ranks, of the stream's context; NULL: this one alone
  self& group(velo_group value) { return base::group = value, *this; }
  // [E], the choices of each expert on this rank
  self& counts(const velo_tensor& value) { return base::counts = &value, *this; }
  // int64, a number
  self& capacity(const velo_tensor& value) { return base::capacity = &value, *this; }
  // [2 + n]: calls so far, the prediction, the last n maxima, of which call c has number c mod n;
  // zeros before the first call; n is 5 in MindSpeed
  self& history(const velo_tensor& value) { return base::history = &value, *this; }
  self& history(std::nullptr_t) { return base::history = nullptr, *this; }
  // the most tokens of a rank, which the capacity never exceeds; the same on all; 0: any
  self& tokens(std::int64_t value) { return base::tokens = value, *this; }
  // the first prediction; the same on all ranks
  self& initial(std::int64_t value) { return base::initial = value, *this; }
  // calls between predictions; the same on all ranks
  self& period(std::int64_t value) { return base::period = value, *this; }
  // of a prediction over the mean; the same on all ranks
  self& margin(std::int64_t value) { return base::margin = value, *this; }
};

inline outcome<> capacity(stream_ref stream, const capacity_args& args) {
  return detail::check(VELO_FN(capacity)(stream.get(), &args));
}

VELO_CPP_END
