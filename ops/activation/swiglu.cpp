// swiglu as an operator: how the split dimension becomes rows of gate and up, how rows become
// slices, which kernels there are.
#include "ops/activation/swiglu.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_activation.h"

namespace velo::ops {
namespace {

using core::text;
using simd::bf16;

// x seen from the split dimension: `rows` rows of 2 * half elements, gate first.
struct halves {
  int dim;
  std::int64_t rows;
  std::int64_t half;

  halves(const velo_tensor& x, std::int64_t wanted) {
    require_rank(x, "x", 1);
    dim = static_cast<int>(wanted < 0 ? wanted + x.ndim : wanted);
    if (dim < 0 || dim >= x.ndim) {
      core::fail(VELO_ERR_ARGUMENT, "args.dim",
                 text("a dimension in [%d, %d]", -x.ndim, x.ndim - 1),
                 text("%lld", static_cast<long long>(wanted)));
    }
    if (x.shape[dim] % 2 != 0) {
      core::fail(VELO_ERR_SHAPE, "args.x.shape", text("an even size in dimension %d", dim),
                 shape_name(x.ndim, x.shape));
    }
    rows = product(x.shape, dim);
    half = product(x.shape + dim, x.ndim - dim) / 2;
  }
};

struct half_shape {
  std::int64_t sizes[max_rank];
  half_shape(const velo_tensor& x, const halves& split) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i == split.dim ? x.shape[i] / 2 : x.shape[i];
  }
};

void infer(const velo_swiglu_args& a, output_shapes& outputs) {
  const halves split(*a.x, a.dim);
  outputs.set("y", a.x->dtype, a.x->ndim, half_shape(*a.x, split).sizes);
}

void infer_backward(const velo_swiglu_backward_args& a, output_shapes& outputs) {
  const halves split(*a.x, a.dim);
  require_shape(*a.dy, "dy", a.x->ndim, half_shape(*a.x, split).sizes);
  require_dtype(*a.dy, "dy", a.x->dtype);
  outputs.like("dx", *a.x);
}

// Cuts the rows * half elements of y into blocks and gives each block's parts of rows: part(element
// of x, element of y, n).
template <class Part>
void for_parts(const halves& split, core::execution& on, Part&& part) {
  const row_slices blocks = slice_elements(split.rows * split.half);
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    std::int64_t at = blocks.begin(task);
    const std::int64_t end = at + blocks.count(task);
    while (at < end) {
      const std::int64_t row = at / split.half;
      const std::int64_t n = std::min(end, (row + 1) * split.half) - at;
      part(at + row * split.half, at, n);
      at += n;
    }
  });
}

template <class T>
void forward(const velo_swiglu_args& a, core::execution& on,
             void (*kernel)(const swiglu_slice<T>&)) {
  const halves split(*a.x, a.dim);
  const auto row_bytes = split.half * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.y), split.rows, row_bytes, on);
  for_parts(split, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
    const T* gate = data<const T>(a.x) + in;
    kernel({gate, gate + split.half, data<T>(a.y) + out, n, bypass});
  });
}

template <class T>
void backward(const velo_swiglu_backward_args& a, core::execution& on,
              void (*kernel)(const swiglu_backward_slice<T>&)) {
  const halves split(*a.x, a.dim);
  const auto row_bytes = split.half * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.dx), split.rows, row_bytes, on);
  for_parts(split, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
    const T* gate = data<const T>(a.x) + in;
    T* dgate = data<T>(a.dx) + in;
    kernel(
        {data<const T>(a.dy) + out, gate, gate + split.half, dgate, dgate + split.half, n, bypass});
  });
}

template <void (*F32)(const swiglu_slice<float>&), void (*BF16)(const swiglu_slice<bf16>&)>
void run(const velo_swiglu_args& a, core::execution& on) {
  a.x->dtype == f32 ? forward<float>(a, on, F32) : forward<bf16>(a, on, BF16);
}
template <void (*F32)(const swiglu_backward_slice<float>&),
          void (*BF16)(const swiglu_backward_slice<bf16>&)>
void run(const velo_swiglu_backward_args& a, core::execution& on) {
  a.x->dtype == f32 ? backward<float>(a, on, F32) : backward<bf16>(a, on, BF16);
}

using forward_args = velo_swiglu_args;
using backward_args = velo_swiglu_backward_args;

constexpr candidate forward_kernels[] = {
    kernel<forward_args, run<avx512::swiglu, avx512::swiglu>>("avx512", core::isa::avx512),
    kernel<forward_args, run<avx2::swiglu, avx2::swiglu>>("avx2", core::isa::avx2),
    kernel<forward_args, run<reference::swiglu, reference::swiglu>>("reference", core::isa::scalar),
};
constexpr candidate backward_kernels[] = {
    kernel<backward_args, run<avx512::swiglu_backward, avx512::swiglu_backward>>("avx512",
                                                                                 core::isa::avx512),
    kernel<backward_args, run<avx2::swiglu_backward, avx2::swiglu_backward>>("avx2",
                                                                             core::isa::avx2),
    kernel<backward_args, run<reference::swiglu_backward, reference::swiglu_backward>>(
        "reference", core::isa::scalar),
};

}  // namespace

extern const operator_def swiglu_operator = define<forward_args, infer>(forward_kernels);
extern const operator_def swiglu_backward_operator =
    define<backward_args, infer_backward>(backward_kernels);

}  // namespace velo::ops
