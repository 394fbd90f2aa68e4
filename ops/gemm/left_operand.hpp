// The rows of A as kernels read them: in place, packed once for all tasks, or packed by each task
// (gemm_plan.hpp decides). Rows of a row_source are packed once, from the thread's own scratch.
//
// Packed rows lie in micro-panels of eight; for tile registers in strips of 32. Cost: memory speed.
#pragma once

#include "ops/gemm/gemm_plan.hpp"

namespace velo::ops {

class left_operand {
 public:
  // `shared`: plan.shared_a bytes.
  left_operand(const gemm_problem& problem, const gemm_plan& plan, const gemm_kernels& kernels,
               void* shared)
      : p_(problem),
        plan_(plan),
        form_(plan.form),
        kernels_(kernels),
        reorders_(kernels.reorders(form_.type, form_.compute)),
        shared_(static_cast<std::uint32_t*>(shared)) {}

  // Where the plan packs A once: all of it, or task by task, each some rows in one pass.
  static constexpr std::int64_t task_rows = 128;
  // `own`: plan.own_a bytes of each thread, `own_step` apart.
  void pack_all(const core::parallel& threads, char* own, std::size_t own_step) const;
  std::int64_t packing_tasks(std::int64_t rows = task_rows) const;
  void pack_task(std::int64_t task, std::int64_t rows = task_rows) const;

  // Rows from `row` on, which is where a tile begins, in pass `p`. `own`: plan.own_a bytes of the
  // task, to which they are packed where the plan says so.
  const char* rows(std::int64_t row, int count, std::int64_t p, void* own) const;

 private:
  const char* source(std::int64_t row, std::int64_t p) const;
  std::uint32_t* shared_rows(std::int64_t row, std::int64_t p) const;
  void write_and_pack(std::int64_t row, void* rows) const;
  void pack(std::int64_t row, int rows, std::int64_t p, std::uint32_t* to) const {
    pack_from(source(row, p), p_.lda, rows, p, to);
  }
  void pack_from(const char* from, std::int64_t ld, int rows, std::int64_t p,
                 std::uint32_t* to) const;
  void pack_strips(const char* from, std::int64_t ld, int rows, std::int64_t p,
                   std::uint32_t* to) const;

  const gemm_problem& p_;
  const gemm_plan& plan_;
  const packed_form& form_;
  const gemm_kernels& kernels_;
  const reorder_kernels& reorders_;
  std::uint32_t* const shared_;
};

}  // namespace velo::ops
