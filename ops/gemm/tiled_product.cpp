// The loops of a product: phases of packing and products, tasks over tiles, passes over the depth,
// panels, kernel calls.
#include "ops/gemm/tiled_product.hpp"

#include <algorithm>
#include <optional>

#include "core/round_up.hpp"

namespace velo::ops {

void tiled_product::run(const core::parallel& threads) const {
  if (plan_.packs_a_once) a_.pack_all(threads, scratch_.own, scratch_.own_step);
  for (std::int64_t first = 0; first < grid_.column_tiles; first += grid_.phase_columns) {
    const std::int64_t end = std::min(first + grid_.phase_columns, grid_.column_tiles);
    if (plan_.shared_b != 0) {
      pack_in_parallel(form_, source_of_b(), plan_.first_panel(first), plan_.first_panel(end),
                       reinterpret_cast<std::uint32_t*>(scratch_.shared), threads, kernels_);
    }
    const std::int64_t columns = end - first;
    threads(grid_.row_tiles * columns, [&](std::int64_t task, int thread) {
      multiply(task / columns, first + task % columns, first, thread);
    });
  }
}

// Pass `p` of panel `q` of B, packed or to be packed.
std::uint32_t* tiled_product::own_panel(const tile& t, std::int64_t p, std::int64_t q) const {
  std::int64_t slot = q - t.first;
  if (plan_.packs_ahead) slot += p * (t.end - t.first);  // round robin, on into the next pass
  slot %= plan_.inside_panels;
  return t.own_b + slot * slot_words();
}

const std::uint32_t* tiled_product::panel_of_b(const tile& t, std::int64_t p,
                                               std::int64_t q) const {
  if (plan_.pack_inside) return own_panel(t, p, q);
  const std::uint32_t* base = p_.packed_b != nullptr
                                  ? p_.packed_b->words()
                                  : reinterpret_cast<const std::uint32_t*>(scratch_.shared);
  const std::int64_t place = p_.packed_b != nullptr ? form_.place_in_weight(q) : q - t.packed_panel;
  return base + place * form_.panel_words() + p * form_.pass / form_.per_word() * form_.width(q);
}

// Packs the next panels for this task alone.
void tiled_product::pack_inside(const tile& t, std::int64_t p, std::int64_t q) const {
  const std::int64_t end = std::min(q + plan_.inside_panels, t.end);
  pack_panels(form_, source_of_b(), p, {0, form_.depth(p)}, q, end, {t.own_b, slot_words(), q},
              kernels_);
}

// Returns the panel that is read after pass p of panel q.
next_panel tiled_product::next_after(const tile& t, std::int64_t p, std::int64_t q) const {
  // Products of one or two rows wait for memory anyway, and the hardware prefetches a single stream
  // faster.
  if (t.rows <= 2 || (plan_.pack_inside && !plan_.packs_ahead)) return {};
  if (q + 1 < t.end) return next_at(t, p, q + 1);
  return p + 1 < form_.passes() ? next_at(t, p + 1, t.first) : next_panel();
}

next_panel tiled_product::next_at(const tile& t, std::int64_t p, std::int64_t q) const {
  const int calls = core::ceil_div(t.rows, micro_rows);
  if (plan_.pack_inside) {
    return next_panel(form_, source_of_b(), p, q, own_panel(t, p, q), kernels_, calls);
  }
  return next_panel(panel_of_b(t, p, q), form_.depth_words(p), form_.width(q), calls);
}

void tiled_product::multiply_micro_panels(const tile& t, std::int64_t p, std::int64_t q,
                                          const std::uint32_t* a) const {
  const bool keeps = plan_.gated() || last_pass() > 0;  // sums for later
  micro_args x{};
  x.a = a;
  x.a_row = plan_.reads_a ? p_.lda / form_.per_word() : 1;
  x.a_step = plan_.reads_a ? 1 : micro_rows;
  x.b = panel_of_b(t, p, q);
  x.words = form_.depth_words(p);
  x.b_step = x.width = form_.width(q);
  x.first = p == 0;
  x.last = finishes(p);
  x.ld_sums = plan_.sums_stride();
  x.next_sums = keeps ? sums_of(t, q) : t.sums;
  x.output = output_at(t, q);
  const std::int64_t a_next = micro_rows * (plan_.reads_a ? x.a_row : x.words);
  const std::int64_t sums_step = keeps ? micro_rows * x.ld_sums : 0;
  next_panel next = next_after(t, p, q);
  const micro_kernel multiply = kernels_.multiply(form_.compute);
  for (int call = 0; x.output.rows > 0; ++call) {
    x.fetch = next.fetch(call);
    if (t.copies != nullptr) x.copies = t.copies->next();
    x.sums = x.next_sums;
    x.next_sums += sums_step;
    multiply(x);
    next.pack_after(call);
    x.a += a_next;
    x.output.skip_rows(micro_rows);
  }
  next.finish();
}

void tiled_product::multiply_tiles(const tile& t, std::int64_t p, std::int64_t q,
                                   const char* a) const {
  const int steps = form_.padded_depth(p) / tile_side;
  tile_panel panel{};
  panel.a = a;
  panel.a_row = plan_.reads_a ? p_.lda * 2 : 64;
  panel.a_step = plan_.reads_a ? 64 : tile_side * 64;
  panel.a_strip = tile_side * (plan_.reads_a ? p_.lda * 2 : std::int64_t{steps} * 64);
  panel.b = reinterpret_cast<const char*>(panel_of_b(t, p, q));
  const bool next_known = q + 1 < t.end || (p + 1 < form_.passes() && !plan_.pack_inside);
  const std::uint32_t* next =
      q + 1 < t.end ? panel_of_b(t, p, q + 1) : panel_of_b(t, p + 1, t.first);
  panel.next_b = next_known ? reinterpret_cast<const char*>(next) : nullptr;
  panel.width = form_.width(q);
  panel.rows = t.rows;
  panel.steps = steps;
  panel.first = p == 0;
  panel.last = finishes(p);
  // A single pass stores its sums at once from two squares.
  const bool kept = plan_.gated() || last_pass() > 0;
  panel.sums = kept ? sums_of(t, q) : t.sums;
  panel.ld_sums = tile_side;
  panel.square = kept ? tile_side * tile_side : 0;
  panel.output = output_at(t, q);
  kernels_.tiles->multiply(panel);
}

// Finishes the sums of panel `q` of the second half and of its partner before it.
void tiled_product::finish_gated(const tile& t, std::int64_t q) const {
  gated_block sums = gated_output(p_, t.row, form_.column_in_half(q));
  sums.gate = sums_of(t, q - 1);
  sums.factor = sums_of(t, q);
  sums.ld = plan_.on_tile_registers ? tile_side : plan_.sums_stride();
  sums.rows = t.rows;
  sums.columns = form_.columns(q);
  p_.epilogue.gate.finish(sums);
}

void tiled_product::multiply(std::int64_t row_tile, std::int64_t column_tile,
                             std::int64_t phase_first, int thread) const {
  const tile_session session(plan_.on_tile_registers ? kernels_.tiles : nullptr);
  tile t;
  t.row = grid_.first_row(row_tile);
  t.rows = static_cast<int>(grid_.first_row(row_tile + 1) - t.row);
  t.first = plan_.first_panel(column_tile);
  t.end = plan_.first_panel(column_tile + 1);
  t.packed_panel = plan_.first_panel(phase_first);
  t.own_a = scratch_.own + static_cast<std::size_t>(thread) * scratch_.own_step;
  t.own_b = reinterpret_cast<std::uint32_t*>(t.own_a + plan_.own_a);
  t.sums = reinterpret_cast<float*>(t.own_a + plan_.own_a + plan_.own_b);

  if (plan_.packs_ahead) next_at(t, 0, t.first).finish();
  const std::int64_t passes = std::max<std::int64_t>(form_.passes(), 1);  // one for an empty depth
  std::optional<copy_share> copies;
  if (p_.epilogue.copies != nullptr) {
    const std::int64_t calls = passes * (t.end - t.first) * core::ceil_div(t.rows, micro_rows);
    copies.emplace(*p_.epilogue.copies, row_tile * grid_.column_tiles + column_tile,
                   grid_.row_tiles * grid_.column_tiles, calls);
  }
  t.copies = copies ? &*copies : nullptr;
  for (std::int64_t p = 0; p < passes; ++p) {
    const char* a = a_.rows(t.row, t.rows, p, t.own_a);
    if (plan_.reads_b) {
      multiply_strips(t, p, reinterpret_cast<const std::uint32_t*>(a));
      continue;
    }
    for (std::int64_t q = t.first; q < t.end; ++q) {
      const bool next_group = (q - t.first) % plan_.inside_panels == 0;
      if (plan_.pack_inside && !plan_.packs_ahead && next_group) pack_inside(t, p, q);
      if (plan_.on_tile_registers) {
        multiply_tiles(t, p, q, a);
      } else {
        multiply_micro_panels(t, p, q, reinterpret_cast<const std::uint32_t*>(a));
      }
      if (plan_.gated() && p >= last_pass() && q % 2 == 1) finish_gated(t, q);
    }
  }
  if (copies) copies->finish();
  if (stores_around_cache(p_)) kernels_.fence();
}

}  // namespace velo::ops
