// The choice of tiles, of what is packed when, and of the areas of scratch.
#include "ops/gemm/gemm_plan.hpp"

#include <algorithm>

namespace velo::ops {
namespace {

// The largest tile that suits the caches.
struct tile_limits {
  int rows, columns;
};

tile_limits limits_for(const packed_form& form, std::int64_t m, const gemm_target& target) {
  // Tile registers: 512 KiB of A and 1 MiB of sums share L2. A gated product of few rows, whose
  // time goes into packing, packs runs of both halves as long as others do of one.
  if (form.on_tile_registers(target)) return {512, form.halves == 2 && m <= 128 ? 1024 : 512};
  // Panels of three vectors, eight rows against them in registers. Processors with tile registers
  // have 2 MiB of L2, others 1.
  return {gemm_kernels_for(target.isa).tiles != nullptr ? 512 : 256, 480};
}

grid_request request_for(const gemm_problem& p, const packed_form& form, bool on_tile_registers,
                         int threads, const tile_limits& most) {
  const auto size = [](std::int64_t x) { return static_cast<double>(x); };
  grid_request r{};
  r.m = p.m;
  r.panels = form.panels() / form.halves;
  r.panel = form.panel * form.halves;
  r.least_unit = on_tile_registers ? tile_side : micro_rows;
  r.panel_bytes = form.panel_words() * 4 * form.halves;
  r.packed = p.packed_b != nullptr;
  r.on_tile_registers = on_tile_registers;
  r.work = size(p.m) * size(p.n) * size(p.k);
  r.most_rows = most.rows;
  r.most_columns = most.columns;
  r.threads = threads;
  return r;
}

// Whether A is read in place: it needs no transposition, widening or padding, and its rows do not
// fall on few sets of the caches. Tile registers load sixteen rows at once, which have to lie close
// together; the other kernels gain where few panels would share the cost of packing.
bool readable(const gemm_problem& p, const packed_form& form, bool on_tile_registers) {
  if (p.transpose_a || p.rows_of_a.write != nullptr || form.type != form.compute) return false;
  if (on_tile_registers) return p.k % 32 == 0 && p.lda % 2 == 0 && p.m % 32 == 0 && p.lda <= 1024;
  const std::int64_t words = p.lda / form.per_word();
  const bool whole_words = p.k % form.per_word() == 0 && p.lda % form.per_word() == 0 &&
                           reinterpret_cast<std::uintptr_t>(p.a) % 4 == 0;
  return whole_words && p.n <= 1024 && (words % 1024 != 0 || words <= 2048);
}

// Rows of B that L2 holds: those at a distance of a power of two fall on few of its sets.
std::int64_t rows_in_cache(std::int64_t row_bytes) {
  constexpr std::int64_t way = 128 << 10, ways = 8;
  std::int64_t power = 1;
  while (power < way && row_bytes % (2 * power) == 0) power *= 2;
  return way / power * ways;
}

// The words of a strip where B is read in place; 0 where it is packed.
//
// Packing costs as much as multiplying some 16 rows, and waits for memory meanwhile. Read in place,
// B is multiplied by eight rows while the strip after it is on its way, and the strip, packed by
// then, serves the other rows. That is faster up to 48 rows (Zen 4, 2048 x 2048: 8 rows take 0.4 of
// the time, 16 rows 0.55, 64 rows 1.02). More rows hide the packing of a panel behind the panel
// before it. Strips are plain rows, so a transposed B is packed, from long runs of memory. That
// takes 1.05 to 1.15 of the time of plain rows in f32 for 2 to 48 rows, and 0.7 to 1.1 in f16 for 4
// to 48 (Emerald Rapids, 2048 x 2048), so a transposition in registers has little to gain. Strips
// of two panels, and those after them, have to stay in L2; shorter ones would load and store sums
// too often.
int strip_for(const gemm_problem& p, const packed_form& form, bool on_tile_registers) {
  constexpr std::int64_t most_rows = 48, least_depth = 64, deepest = 128;
  const int per_word = form.per_word();
  if (on_tile_registers || p.transpose_b || p.m > most_rows || p.k < least_depth ||
      p.k % per_word != 0 || p.n / form.halves < form.panel)
    return 0;
  const std::int64_t depth =
      std::min(rows_in_cache(p.ldb * element_bytes(p.type)) / gemm_plan::strip_panels, deepest);
  return depth < least_depth / 2 * per_word ? 0 : static_cast<int>(depth / per_word);
}

}  // namespace

gemm_plan::gemm_plan(const gemm_problem& p, int threads, const gemm_target& target)
    : form(p.k, p.n, p.type, target, p.epilogue.gate.finish != nullptr),
      on_tile_registers(form.on_tile_registers(target) && p.k > 0) {
  grid =
      choose_grid(request_for(p, form, on_tile_registers, threads, limits_for(form, p.m, target)));
  pack_inside = p.packed_b == nullptr && grid.row_tiles == 1;
  place(p, shared_a_bytes);
}

gemm_plan::gemm_plan(const gemm_problem& p, double most_work, std::int64_t most_a,
                     const gemm_target& target)
    : form(p.k, p.n, p.type, target), on_tile_registers(form.on_tile_registers(target) && p.k > 0) {
  grid = grid_among_others(
      request_for(p, form, on_tile_registers, 1, limits_for(form, p.m, target)), most_work);
  pack_inside = p.packed_b == nullptr;
  place(p, most_a);
}

// What is packed when, and the areas of scratch.
void gemm_plan::place(const gemm_problem& p, std::int64_t most_a) {
  strip_ = pack_inside ? strip_for(p, form, on_tile_registers) : 0;
  reads_b = strip_ != 0;
  reads_a = !reads_b && readable(p, form, on_tile_registers);
  // Few rows read a panel too fast for the next one to be packed meanwhile.
  packs_ahead = pack_inside && !reads_b && !on_tile_registers && p.m > 2 * micro_rows;
  inside_panels = on_tile_registers ? tile_panels() : 2;

  const std::int64_t phase_panels = grid.phase_columns * tile_panels();
  const std::int64_t deepest = form.passes() == 0 ? 0 : form.padded_depth(0) / form.per_word();
  // Areas begin on different sets of a cache: each is a line longer than whole pages.
  const auto area = [](std::int64_t bytes) {
    return static_cast<std::size_t>(round_up(bytes, 4096) + 64);
  };
  shared_b = p.packed_b != nullptr || pack_inside ? 0 : area(phase_panels * form.panel_words() * 4);
  // Tile registers need their rows in L2 anyway, and a copy brings them there. Packing once saves
  // transpositions, and copies for few columns.
  constexpr int few_panels = 4;
  const bool copies_cheaply = on_tile_registers && !p.transpose_a && tile_panels() > few_panels;
  const std::int64_t a_words = round_up(p.m, 32) * form.passes() * form.pass / form.per_word();
  const bool from_source = p.rows_of_a.write != nullptr;
  packs_a_once = from_source ||
                 (!reads_a && grid.column_tiles > 1 && a_words * 4 <= most_a && !copies_cheaply);
  shared_a = packs_a_once ? area(a_words * 4) : 0;
  own_a = from_source ? area(source_rows * p.k * element_bytes(p.type))
          : reads_a || packs_a_once
              ? 0
              : area(grid.tile_rows() * (form.pass / form.per_word()) * std::int64_t{4});
  const std::int64_t packed_words = reads_b ? strip_ : deepest * inside_panels;
  own_b = pack_inside ? area(packed_words * form.panel * 4) : 0;
  // Sums of a single pass stay in registers, or in two squares, unless a gate follows.
  constexpr std::int64_t two_squares = 2 * 32 * 32 * 4;
  const std::int64_t all_sums = std::int64_t{grid.tile_rows()} * sums_stride() * 4;
  const bool keeps = reads_b || gated() || form.passes() > 1;
  own_sums = area(keeps ? all_sums : on_tile_registers ? two_squares : 0);
  own = own_a + own_b + own_sums;
}

}  // namespace velo::ops
