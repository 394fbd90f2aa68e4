// How tensors fold into matrices, what a candidate runs at, and the calls of the engine.
#include "ops/matmul/operands.hpp"

#include <algorithm>
#include <new>

#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/gemm/gemm_groups.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {

using core::fail;
using core::text;

namespace {

[[noreturn]] void refuse_strides(const velo_tensor& t, const char* field, const char* wanted) {
  fail(VELO_ERR_LAYOUT, text("args.%s.strides", field), wanted, shape_name(t.ndim, t.strides));
}

}  // namespace

// Strides of dimensions with one element or none have no meaning, so they are not read.
folded fold(const velo_tensor& t, const char* field) {
  folded f;
  const int last = t.ndim - 1;
  f.columns = t.shape[last];
  f.rows = row_count(t);
  f.ld = f.columns;
  if (t.strides == nullptr || numel(t) == 0) return f;
  if (f.columns > 1 && t.strides[last] != 1) {
    refuse_strides(t, field, "unit stride in the last dimension");
  }
  std::int64_t span = 0;  // elements that the inner dimensions span
  for (int d = last - 1; d >= 0; --d) {
    if (t.shape[d] == 1) continue;
    if (span == 0) {
      f.ld = t.strides[d];
    } else if (t.strides[d] != span) {
      refuse_strides(t, field, "leading dimensions that fold into rows at one distance");
    }
    span = t.strides[d] * t.shape[d];
    if (f.ld == 0) refuse_strides(t, field, "rows at a distance from each other");
  }
  return f;
}

void require_below_2_31(std::int64_t size, const char* field) {
  if (size < (std::int64_t{1} << 31)) return;
  fail(VELO_ERR_SHAPE, text("args.%s.shape", field), "sizes below 2^31", core::number(size));
}

// Kernels of one vector width are the same for all
// types but bfloat16, and the highest ISA may have larger caches to plan for.
core::isa isa_for(const gemm_kernels& candidate, element_type type, core::isa highest) {
  const bool same =
      type != element_type::bf16 && candidate.width == gemm_kernels_for(highest).width;
  return same ? highest : std::min(candidate.isa, highest);
}

const char* reject_product(const kernel_entry& candidate, element_type type) {
  const auto& kernels = *static_cast<const gemm_kernels*>(candidate.kernels);
  if (kernels.plain()) return nullptr;
  if (kernels.repeats(type))
    return "the kernels for this dtype are those of an instruction set below";
  if (kernels.multiply_pairs != nullptr && kernels.tiles == nullptr && !dot_product_pays())
    return "the bfloat16 dot product is slower than float32 on this processor";
  return nullptr;
}

double flops_of(const gemm_problem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

void multiply(const gemm_problem& p, const gemm_kernels& kernels, core::execution& on) {
  if (kernels.plain()) return gemm_reference(p, on.threads);
  const core::isa isa = isa_for(kernels, p.type, on.isa);
  void* scratch = on.scratch.take(gemm_scratch_bytes(p, on.threads.threads(), isa));
  gemm(p, on.threads, scratch, isa);
}

void multiply_groups(const gemm_problem* problems, std::int64_t count, const gemm_kernels& kernels,
                     core::execution& on) {
  if (kernels.plain()) {
    for (std::int64_t i = 0; i < count; ++i) gemm_reference(problems[i], on.threads);
  } else if (count != 0) {
    gemm_groups(problems, count, on.threads, on.scratch, isa_for(kernels, problems->type, on.isa));
  }
}

gemm_problem column_sums(element_type type, const void* ones, const void* x, std::int64_t rows,
                         std::int64_t columns, std::int64_t ld) {
  gemm_problem p;
  p.m = 1;
  p.n = columns;
  p.k = rows;
  p.type = type;
  p.a = ones;
  p.lda = std::max<std::int64_t>(rows, 1);
  p.b = x;
  p.ldb = ld;
  p.ldc = columns;
  return p;
}

const void* take_ones(element_type type, std::int64_t count, core::arena& scratch) {
  const auto n = static_cast<std::size_t>(count);
  const void* all = nullptr;
  with_element_type(dtype_of(type), [&](auto element) {
    auto* ones = scratch.take<decltype(element)>(n);
    for (std::size_t i = 0; i < n; ++i) simd::assign(ones[i], 1);
    all = ones;
  });
  return all;
}

}  // namespace velo::ops
