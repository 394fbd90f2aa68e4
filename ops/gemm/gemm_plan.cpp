// The choice of panels, passes and tiles, and the packing of op(B) into panels.
#include "ops/gemm/gemm_plan.hpp"

#include <algorithm>
#include <cstring>

#include "ops/gemm/gemm_kernels.hpp"

namespace velo::ops {
namespace {

struct tile_rule {
  int pass, rows, columns;
};

tile_rule rule_for(const packed_form& form, const gemm_target& target) {
  // Tiles: a panel of 32 KiB lives in the first cache; 512 KiB of A and 1 MiB of sums share the
  // second.
  if (form.on_tiles(target)) return {512, 512, 512};
  // FMA and dot product: panels of three vectors, eight rows against them in registers. Few passes
  // are worth more than a small A, until A comes from the third cache for every panel. Processors
  // with tiles have 2 MiB of second cache, others 1.
  const int pass = form.compute == element_type::bf16 ? 1024 : form.k <= 2048 ? 1024 : 512;
  return {pass, gemm_kernels_for(target.isa).tiles != nullptr ? 512 : 256, 480};
}

// Of a panel, packed, over the whole depth.
std::int64_t panel_bytes(const packed_form& form) {
  return form.padded_k() / form.per_word() * form.panel * 4;
}

grid_request request_for(const gemm_problem& p, const packed_form& form, bool packed, bool on_tiles,
                         int threads, const tile_rule& rule) {
  const auto size = [](std::int64_t x) { return static_cast<double>(x); };
  grid_request r{};
  r.m = p.m;
  r.panels = form.panels();
  r.panel = form.panel;
  r.least_unit = on_tiles ? tile_side : micro_rows;
  r.panel_bytes = panel_bytes(form);
  r.packed = packed;
  r.on_tiles = on_tiles;
  r.work = size(p.m) * size(p.n) * size(p.k);
  r.most_rows = rule.rows;
  r.most_columns = rule.columns;
  r.threads = threads;
  return r;
}

// The most of A that is packed for all tasks.
constexpr std::int64_t shared_a_bytes = std::int64_t{64} << 20;

// Whether A is read in place: nothing has to be transposed, widened or filled up, and its rows do
// not fall on few sets of the caches. Tiles read sixteen rows at once and want them close
// together; others gain where few panels would share the cost of packing.
bool readable(const gemm_problem& p, const packed_form& form, bool on_tiles) {
  if (p.transpose_a || form.type != form.compute) return false;
  if (on_tiles) return p.k % 32 == 0 && p.lda % 2 == 0 && p.m % 32 == 0 && p.lda <= 1024;
  const std::int64_t words = p.lda / form.per_word();
  const bool whole_words = p.k % form.per_word() == 0 && p.lda % form.per_word() == 0 &&
                           reinterpret_cast<std::uintptr_t>(p.a) % 4 == 0;
  return whole_words && p.n <= 1024 && (words % 1024 != 0 || words <= 2048);
}

}  // namespace

packed_form::packed_form(std::int64_t k_, std::int64_t n_, element_type type_,
                         const gemm_target& target)
    : type(type_), compute(target.dot ? type_ : element_type::f32), k(k_), n(n_) {
  panel = panel_columns(on_tiles(target));
  const tile_rule rule = rule_for(*this, target);
  // Passes of nearly equal depth.
  const std::int64_t count = std::max<std::int64_t>((k + rule.pass - 1) / rule.pass, 1);
  const std::int64_t depth = std::max<std::int64_t>((k + count - 1) / count, 1);
  pass = static_cast<int>(round_up(depth, 64));
}

gemm_plan::gemm_plan(const gemm_problem& p, bool packed, int threads, const gemm_target& target)
    : form(p.k, p.n, p.type, target), on_tiles(form.on_tiles(target) && p.k > 0) {
  grid = choose_grid(request_for(p, form, packed, on_tiles, threads, rule_for(form, target)));
  reads_a = readable(p, form, on_tiles);
  pack_inside = !packed && grid.row_tiles == 1;
  // Few rows read a panel too fast for the next one to be packed meanwhile.
  feeds = pack_inside && !on_tiles && p.m > 2 * micro_rows;
  inside_panels = on_tiles ? grid.tile_panels() : 2;

  const std::int64_t phase_panels = grid.phase_columns * grid.tile_panels();
  const std::int64_t deepest = form.passes() == 0 ? 0 : form.padded_depth(0) / form.per_word();
  const auto area = [](std::int64_t bytes) {  // a line more: areas begin on different sets
    return static_cast<std::size_t>(round_up(bytes, 4096) + 64);
  };
  shared_b = packed || pack_inside ? 0 : area(phase_panels * panel_bytes(form));
  // Tiles want their rows in the second cache anyway, and a copy brings them there; only
  // transposing is worth saving, and copying for few columns.
  constexpr int few_panels = 4;
  const bool copies_cheaply = on_tiles && !p.transpose_a && grid.tile_panels() > few_panels;
  const std::int64_t a_words = round_up(p.m, 32) * form.passes() * form.pass / form.per_word();
  packs_a_once =
      !reads_a && grid.column_tiles > 1 && a_words * 4 <= shared_a_bytes && !copies_cheaply;
  shared_a = packs_a_once ? area(a_words * 4) : 0;
  own_a = reads_a || packs_a_once
              ? 0
              : area(grid.tile_rows() * (form.pass / form.per_word()) * std::int64_t{4});
  own_b = pack_inside ? area(deepest * inside_panels * form.panel * 4) : 0;
  // Sums of a single pass stay in registers, or in two squares.
  constexpr std::int64_t two_squares = 2 * 32 * 32 * 4;
  const std::int64_t all_sums = std::int64_t{grid.tile_rows()} * sums_stride() * 4;
  own_sums = area(form.passes() > 1 ? all_sums : on_tiles ? two_squares : 0);
  own = own_a + own_b + own_sums;
}

std::int64_t packed_form::place(const source_matrix& b, std::int64_t p, std::int64_t q) const {
  const std::int64_t row = p * pass, column = q * panel;
  return b.transposed ? column * b.ld + row : row * b.ld + column;
}

void pack_strip(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
                int begin, int end, std::uint32_t* to, const gemm_kernels& kernels) {
  const word_moves& moves = kernels.moves(form.type, form.compute);
  const std::int64_t bytes = form.type == element_type::bf16 ? 2 : 4;
  const int width = form.width(q), columns = form.columns(q), rows = end - begin;
  const std::int64_t place = form.place(b, p, q) + begin * (b.transposed ? 1 : b.ld);
  const void* from = static_cast<const char*>(b.data) + place * bytes;
  std::uint32_t* target = to + std::int64_t{begin} / form.per_word() * width;
  if (b.transposed) {
    const move m{from, b.ld, columns, rows, target, width, width};
    moves.transpose(m);
  } else {
    const move m{from, b.ld, rows, columns, target, width, width};
    moves.rows(m);
  }
}

void pack_panels(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
                 std::int64_t first, std::int64_t end, const packed_target& to,
                 const gemm_kernels& kernels) {
  constexpr int strip = 32;  // rows of a strip stay in the TLB while its panels are packed
  const int step = b.transposed ? steps.end - steps.begin : strip;
  for (int k = steps.begin; k < steps.end; k += step) {
    for (std::int64_t q = first; q < end; ++q) {
      pack_strip(form, b, p, q, k, std::min(k + step, steps.end), to.panel(q), kernels);
    }
  }
  const int depth = form.depth(p);
  const int used = (depth + form.per_word() - 1) / form.per_word();
  const int all = form.padded_depth(p) / form.per_word();
  if (steps.end < depth || used == all) return;
  for (std::int64_t q = first; q < end; ++q) {
    const int width = form.width(q);
    std::memset(to.panel(q) + std::int64_t{used} * width, 0,
                static_cast<std::size_t>(all - used) * static_cast<std::size_t>(width) * 4);
  }
}

}  // namespace velo::ops
