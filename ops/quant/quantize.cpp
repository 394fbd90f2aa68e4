// quantize as an operator: which elements share a scale, and how they become slices.
//
// Rows are a slice each, columns of neighboring rows a block; a whole tensor is reduced first, and
// then rounded.
#include "ops/quant/quantize.hpp"

#include <algorithm>
#include <cstring>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_quant.h"

namespace velo::ops {
namespace {

using core::fail;

struct quantize_problem {
  std::int64_t rows, n;  // all rows of the last dimension
  std::int64_t group;    // rows that share scales by column
  std::int64_t groups;
};

// [.., middle, n] with one of both, or a number in place of the second.
void set_scale(const velo_quantize_args& a, quantize_problem& p, output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  if (a.over != VELO_QUANTIZED_OVER_GROUP && a.group_size != 0)
    fail(VELO_ERR_ARGUMENT, "args.group_size", "0 unless groups have a scale",
         core::number(a.group_size));
  if (a.over == VELO_QUANTIZED_OVER_TENSOR) return outputs.set(a.scale, f32, 0, nullptr);
  if (a.over == VELO_QUANTIZED_OVER_TOKEN) return outputs.set(a.scale, f32, x.ndim - 1, x.shape);
  require_rank(x, "x", 2);
  std::int64_t sizes[max_rank];
  std::copy_n(x.shape, x.ndim, sizes);
  std::int64_t& middle = sizes[x.ndim - 2];
  p.group = middle;
  p.groups = 1;
  for (int d = 0; d < x.ndim - 2; ++d) p.groups *= x.shape[d];
  if (a.over == VELO_QUANTIZED_OVER_CHANNEL) {
    middle = p.n;
    return outputs.set(a.scale, f32, x.ndim - 1, sizes);
  }
  if (a.group_size == 0 || a.group_size % 32 != 0 || middle % a.group_size != 0)
    fail(VELO_ERR_ARGUMENT, "args.group_size",
         core::concat("a multiple of 32 that divides ", middle), core::number(a.group_size));
  p.group = a.group_size;
  middle /= a.group_size;
  p.groups *= middle;
  outputs.set(a.scale, f32, x.ndim, sizes);
}

void infer(const velo_quantize_args& a, quantize_problem& p, output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  require_rank(x, "x", 1);
  p = {row_count(x), row_size(x), 1, 1};
  const bool int4 = a.format == VELO_QUANTIZED_FORMAT_INT4;
  if (int4 && p.n % 2 != 0)
    fail(VELO_ERR_SHAPE, "args.x.shape", "an even last dimension for int4", core::number(p.n));
  set_scale(a, p, outputs);
  if (!int4) return outputs.like(a.y, x, i8);
  if (a.y != nullptr && a.y->dtype == i4) return outputs.like(a.y, x, i4);
  std::int64_t sizes[max_rank];
  std::copy_n(x.shape, x.ndim, sizes);
  sizes[x.ndim - 1] /= 2;
  outputs.set(a.y, u8, x.ndim, sizes);
}

template <class T>
class quantizer {
 public:
  quantizer(const velo_quantize_args& a, const quantize_problem& p, const quantize_kernels& kernels,
            core::execution& on)
      : p_(p),
        kernels_(kernels),
        on_(on),
        x_(data<const T>(a.x)),
        y_(data<char>(a.y)),
        kept_(data<float>(a.scale)),
        int4_(a.format == VELO_QUANTIZED_FORMAT_INT4),
        bypass_(!int4_ && p.n % 64 == 0 && bypass_cache(y_, p.rows, p.n * bytes_moved, on)) {}

  void whole() const {
    const std::int64_t count = p_.rows * p_.n;
    const row_slices blocks = slice_elements(count);
    auto* partial = on_.scratch.take<float>(static_cast<std::size_t>(blocks.tasks()));
    on_.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
      partial[task] = largest(blocks.begin(task), blocks.count(task));
    });
    *kept_ = scale_of(kernels_.max_abs->run(max_abs_run<float>{partial, blocks.tasks()}));
    on_.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
      put(blocks.begin(task), blocks.count(task), kept_, false);
    });
  }

  void tokens() const {
    const row_slices slices = slice_rows(p_.rows, p_.n * static_cast<std::int64_t>(sizeof(T)));
    on_.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
      const std::int64_t first = slices.begin(task);
      for (std::int64_t r = first; r < first + slices.count(task); ++r) {
        kept_[r] = scale_of(largest(r * p_.n, p_.n));
        put(r * p_.n, p_.n, kept_ + r, false);
      }
    });
  }

  // Blocks of columns of the rows that share scales.
  void columns() const {
    constexpr std::int64_t most = 1024;
    const std::int64_t blocks = core::ceil_div(p_.n, most);
    on_.threads.slices(core::ceil_div(p_.rows * p_.n, std::int64_t{1} << 14), p_.groups * blocks,
                       [&](std::int64_t task, int) {
                         const std::int64_t group = task / blocks, first = task % blocks * most;
                         column_block(group, first, std::min(most, p_.n - first));
                       });
  }

 private:
  // Of an element: what is read pushes out of the cache what was written.
  static constexpr std::int64_t bytes_moved = sizeof(T) + sizeof(std::int8_t);

  float scale_of(float largest) const {
    const float scale = largest / (int4_ ? 7.0f : 127.0f);
    return scale == 0 ? 1 : scale;
  }
  float largest(std::int64_t first, std::int64_t count) const {
    return kernels_.max_abs->run(max_abs_run<T>{x_ + first, count});
  }
  void put(std::int64_t first, std::int64_t count, const float* scale, bool each) const {
    const std::int64_t end = first + count;
    kernels_.run(quantized_run<T>{x_ + first, x_ + (end < p_.rows * p_.n ? end : first), scale,
                                  each, int4_, bypass_, y_ + (int4_ ? first / 2 : first), count});
  }
  void column_block(std::int64_t group, std::int64_t first, std::int64_t count) const {
    float* scale = kept_ + group * p_.n + first;
    std::memset(scale, 0, static_cast<std::size_t>(count) * sizeof(float));
    const std::int64_t begin = group * p_.group * p_.n + first;
    for (std::int64_t r = 0; r < p_.group; ++r)
      kernels_.max_abs->columns(max_abs_row<T>{x_ + begin + r * p_.n, scale, count});
    for (std::int64_t i = 0; i < count; ++i) scale[i] = scale_of(scale[i]);
    for (std::int64_t r = 0; r < p_.group; ++r) put(begin + r * p_.n, count, scale, true);
  }

  const quantize_problem& p_;
  const quantize_kernels& kernels_;
  core::execution& on_;
  const T* x_;
  char* y_;
  float* kept_;
  const bool int4_, bypass_;
};

template <class T>
void run(const velo_quantize_args& a, const quantize_problem& p, const quantize_kernels& kernels,
         core::execution& on) {
  const quantizer<T> quantizer(a, p, kernels, on);
  if (a.over == VELO_QUANTIZED_OVER_TENSOR)
    quantizer.whole();
  else if (a.over == VELO_QUANTIZED_OVER_TOKEN)
    quantizer.tokens();
  else
    quantizer.columns();
}

}  // namespace

extern const operator_def quantize_operator =
    define<infer, by_dtype<&velo_quantize_args::x, run<float>, run<simd::bf16>, run<simd::f16>>>(
        quantize_kernel_list);

}  // namespace velo::ops
