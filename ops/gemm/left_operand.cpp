// The packing of A into micro-panels and strips.
#include "ops/gemm/left_operand.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"

namespace velo::ops {

const char* left_operand::rows(std::int64_t row, int count, std::int64_t p, void* own) const {
  if (plan_.reads_a) return source(row, p);
  if (plan_.packs_a_once) return reinterpret_cast<const char*>(shared_rows(row, p));
  pack(row, count, p, static_cast<std::uint32_t*>(own));
  return static_cast<const char*>(own);
}

const char* left_operand::source(std::int64_t row, std::int64_t p) const {
  const std::int64_t k = p * form_.pass;
  const std::int64_t index = p_.transpose_a ? k * p_.lda + row : row * p_.lda + k;
  return static_cast<const char*>(p_.a) + index * element_bytes(form_.type);
}

// The address of rows packed for all tasks; `row` is the first of a tile or of a task of packing.
std::uint32_t* left_operand::shared_rows(std::int64_t row, std::int64_t p) const {
  const std::int64_t row_words =
      plan_.on_tile_registers ? form_.padded_depth(p) / form_.per_word() : form_.depth_words(p);
  const std::int64_t pass_words = round_up(p_.m, 32) * (form_.pass / form_.per_word());
  return shared_ + p * pass_words + row * row_words;
}

void left_operand::pack_all(const core::parallel& threads, char* own, std::size_t own_step) const {
  if (p_.rows_of_a.write != nullptr) {
    return threads(core::ceil_div(p_.m, source_rows), [&](std::int64_t task, int thread) {
      write_and_pack(task * source_rows, own + static_cast<std::size_t>(thread) * own_step);
    });
  }
  std::int64_t rows = task_rows;  // fewer where there are many threads
  while (rows > 32 && packing_tasks(rows) < 2 * threads.threads()) rows /= 2;
  threads(packing_tasks(rows), [&](std::int64_t task, int) { pack_task(task, rows); });
}

std::int64_t left_operand::packing_tasks(std::int64_t rows) const {
  return core::ceil_div(p_.m, rows) * form_.passes();
}

void left_operand::pack_task(std::int64_t task, std::int64_t rows) const {
  const std::int64_t groups = core::ceil_div(p_.m, rows);
  const std::int64_t row = task % groups * rows, p = task / groups;
  pack(row, static_cast<int>(std::min(rows, p_.m - row)), p, shared_rows(row, p));
}

// Rows of the source from `row` on, written whole, then packed pass by pass.
void left_operand::write_and_pack(std::int64_t row, void* rows) const {
  const std::int64_t count = std::min(source_rows, p_.m - row);
  p_.rows_of_a.write(p_.rows_of_a.self, row, count, rows);
  for (std::int64_t p = 0; p < form_.passes(); ++p) {
    const char* from = static_cast<const char*>(rows) + p * form_.pass * element_bytes(form_.type);
    pack_from(from, p_.k, static_cast<int>(count), p, shared_rows(row, p));
  }
}

void left_operand::pack_from(const char* from, std::int64_t ld, int rows, std::int64_t p,
                             std::uint32_t* to) const {
  const int depth = form_.depth(p), padded = static_cast<int>(round_up(rows, micro_rows));
  const std::int64_t micro_panel = std::int64_t{micro_rows} * form_.depth_words(p);
  if (plan_.on_tile_registers) {
    pack_strips(from, ld, rows, p, to);
  } else if (p_.transpose_a) {
    reorders_.micro_transpose({from, ld, depth, rows, to, micro_panel, padded});
  } else {
    reorders_.micro_rows({from, ld, rows, depth, to, micro_panel, padded});
  }
}

// A in strips of 32 rows for tile registers: every step of 32 of the depth is 2 KiB in one piece.
void left_operand::pack_strips(const char* from, std::int64_t ld, int rows, std::int64_t p,
                               std::uint32_t* to) const {
  constexpr int side = tile_side, step_words = side * side / 2;
  const int depth = form_.depth(p), steps = form_.padded_depth(p) / side;
  const int strips = core::ceil_div(rows, side);
  const int odd_rows = rows % side;
  if (odd_rows != 0) {
    std::memset(to + std::int64_t{strips - 1} * steps * step_words, 0,
                static_cast<std::size_t>(steps) * step_words * 4);
  }
  if (!p_.transpose_a) {
    kernels_.strips(
        {from, ld, rows, depth, to, std::int64_t{steps} * step_words, steps * side / 2});
    return;
  }
  for (int step = 0; step < steps; ++step) {
    for (int strip = 0; strip < strips; ++strip) {
      const char* square = from + (step * side * ld + strip * side) * 2;
      reorders_.transpose_rows(
          {square, ld, std::min(side, depth - step * side), std::min(side, rows - strip * side),
           to + (std::int64_t{strip} * steps + step) * step_words, side / 2, side / 2});
    }
  }
}

}  // namespace velo::ops
