// The entry of one product: in place where it is small, cut into tiles where it is not.
#include "ops/gemm/gemm.hpp"

#include <cassert>

#include "ops/gemm/small_product.hpp"
#include "ops/gemm/tiled_product.hpp"

namespace velo::ops {

std::size_t gemm_scratch_bytes(const gemm_problem& problem, int threads,
                               const gemm_target& target) {
  if (is_small(problem)) return 0;
  return gemm_plan(problem, threads, target).scratch_bytes(threads);
}

void gemm(const gemm_problem& problem, const core::parallel& threads, void* scratch,
          const gemm_target& target) {
  const gemm_epilogue& e = problem.epilogue;
  [[maybe_unused]] const packed_matrix* b = problem.packed_b;  // asserted below
  if (problem.m == 0 || problem.n == 0) {
    if (e.copies != nullptr) copy_share(*e.copies, 0, 1, 1).finish();
    return;
  }
  assert(b == nullptr || (b->serves(target) && b->type() == problem.type && b->k() == problem.k &&
                          b->n() == problem.n));
  assert(problem.c_type != element_type::f16 || problem.type != element_type::bf16);
  assert(e.copies == nullptr || b != nullptr);
  assert(e.gate.finish == nullptr ||
         (problem.n % 2 == 0 && !e.accumulate && e.residual.data == nullptr &&
          e.copies == nullptr && e.second.data == nullptr &&
          (b == nullptr || problem.n / 2 % b->panel() == 0)));
  assert((problem.c_layout == matrix_layout::rows && e.addends.matrices == nullptr) ||
         (b != nullptr && e.bias == nullptr && !e.accumulate && e.residual.data == nullptr));
  if (is_small(problem)) {
    multiply_small(problem, gemm_kernels_for(target.isa));
  } else {
    const gemm_plan plan(problem, threads.threads(), target);
    char* shared = static_cast<char*>(scratch);
    const product_scratch areas{shared, shared + plan.shared_b + plan.shared_a, plan.own};
    tiled_product(problem, plan, areas, target).run(threads);
  }
}

}  // namespace velo::ops
