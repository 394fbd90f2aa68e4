// Addresses and steps of each part of a result, in rows and in panels.
#include "ops/gemm/output.hpp"

namespace velo::ops {

output_block output_of(const gemm_problem& problem, const output_range& range) {
  const gemm_epilogue& e = problem.epilogue;
  const std::int64_t element = element_bytes(problem.c_type);
  const std::int64_t in_panels =
      range.column * e.panels.rows + (e.panels.first + range.row) * range.columns;
  const auto first_of = [&](matrix_layout layout, std::int64_t ld) {
    return layout == matrix_layout::panels ? in_panels : range.row * ld + range.column;
  };
  const auto step_of = [&](matrix_layout layout, std::int64_t ld) {
    return layout == matrix_layout::panels ? range.columns : ld;
  };
  // A narrow panel whose rows are not whole lines is faster through the cache.
  constexpr std::int64_t line = 64;
  const bool has_lines = range.whole_panel || range.columns * element % line == 0;

  output_block to{};
  to.bias = e.bias == nullptr ? nullptr : e.bias + range.column;
  to.c = static_cast<char*>(problem.c) + first_of(problem.c_layout, problem.ldc) * element;
  to.ldc = step_of(problem.c_layout, problem.ldc);
  to.rows = range.rows;
  to.columns = range.columns;
  to.type = problem.c_type;
  to.accumulate = e.accumulate;
  to.nontemporal = problem.c_layout == matrix_layout::panels && has_lines;
  if (e.residual.data != nullptr) {
    const residual_matrix& r = e.residual;
    const std::int64_t first =
        (r.rows != nullptr ? 0 : range.row * r.ld) + (r.one_column ? 0 : range.column);
    to.residual_in_f32 = r.in_f32;
    to.residual = static_cast<const char*>(r.data) + first * to.residual_bytes();
    to.ld_residual = r.ld;
    to.residual_rows = r.rows == nullptr ? nullptr : r.rows + range.row;
    to.one_column = r.one_column;
  }
  to.addends = e.addends.matrices;
  to.terms = e.addends.terms;
  to.position = e.addends.position;
  to.addend_first = in_panels;
  to.ld_addends = range.columns;
  if (e.second.data == nullptr) return to;
  to.second = static_cast<char*>(e.second.data) + first_of(e.second.layout, e.second.ld) * element;
  to.ld_second = step_of(e.second.layout, e.second.ld);
  to.second_nontemporal = has_lines;
  return to;
}

gated_block gated_output(const gemm_problem& problem, std::int64_t row, std::int64_t column) {
  const gemm_epilogue& e = problem.epilogue;
  const std::int64_t half = problem.n / 2, element = element_bytes(problem.c_type);
  gated_block to{};
  if (e.bias != nullptr) {
    to.gate_bias = e.bias + column;
    to.factor_bias = to.gate_bias + half;
  }
  to.y = static_cast<char*>(problem.c) + (row * problem.ldc + column) * element;
  to.ldy = problem.ldc;
  if (e.gate.before != nullptr) {
    char* before = static_cast<char*>(e.gate.before);
    to.gate_before = before + (row * e.gate.ld_before + column) * element;
    to.factor_before = static_cast<char*>(to.gate_before) + half * element;
    to.ld_before = e.gate.ld_before;
  }
  return to;
}

}  // namespace velo::ops
