// Rows of score terms by their place.
#include "ops/attention/engine/attention_tile.hpp"

namespace velo::ops {
// A row before the kept ones of a compressed pse is the first of those, shifted along the diagonal.
pse_row pse_row_of(const attention_terms& t, const attention_sequence& s, std::int64_t batch,
                   std::int64_t head, std::int64_t row) {
  const std::int64_t base = batch * t.pse.batch + head * t.pse.head;
  if (t.compressed == 0) return {base + row * t.pse.row, t.pse_keys};
  const std::int64_t aligned = t.pse_keys - s.skv;  // of sequences with other lengths
  const std::int64_t kept = row + aligned - (t.pse_keys - t.compressed);
  const std::int64_t shift = aligned + std::max<std::int64_t>(-kept, 0);
  return {base + std::max<std::int64_t>(kept, 0) * t.pse.row + shift, t.pse_keys - shift};
}

const std::uint8_t* mask_row_of(const attention_terms& t, std::int64_t batch, std::int64_t head,
                                std::int64_t row) {
  const std::int64_t first = batch * t.mask.batch + head * t.mask.head + row * t.mask.row;
  return static_cast<const std::uint8_t*>(t.mask.data) + first;
}

float slope_of(const attention_terms& t, std::int64_t batch, std::int64_t head) {
  return t.slopes == nullptr ? 0.0f : t.slopes[batch * t.slopes_batch + head * t.slopes_head];
}

std::uint64_t decision_of(const attention_problem& p, const attention_sequence& s,
                          std::int64_t batch, std::int64_t head, std::int64_t row,
                          std::int64_t key) {
  const dropout_place& at = p.terms->place;
  const bool lists = p.q_ends != nullptr;
  const std::int64_t indices[4] = {lists ? 0 : batch, head, lists ? s.q_first + row : row, key};
  std::uint64_t index = 0;
  for (int i = 0; i < 4; ++i) {
    index = index * static_cast<std::uint64_t>(at.extents[i]) +
            static_cast<std::uint64_t>(at.origin[i] + indices[i]);
  }
  return index;
}

namespace {

const attention_terms_kernels& kernels_for(core::isa isa) {
  const kernel_entry* entry = attention_terms_kernel_list.entries;
  while (entry->isa > isa) ++entry;
  return *static_cast<const attention_terms_kernels*>(entry->kernels);
}

}  // namespace

attention_tiles::attention_tiles(const attention_problem& problem, core::isa isa)
    : p_(problem),
      kernels_(kernels_for(isa)),
      addends_(problem.type == element_type::f32    ? kernels_.addends_f32
               : problem.type == element_type::bf16 ? kernels_.addends_bf16
                                                    : kernels_.addends_f16) {}

void attention_tiles::addends(const score_block& block, float* tile, std::int64_t ld) const {
  const attention_terms& t = *p_.terms;
  addend_row x{};
  x.factor = t.factor;
  x.slope = slope_of(t, block.batch, block.head);
  x.root = t.root;
  x.columns = block.keys;
  x.width = block.width;
  for (int i = 0; i < block.rows; ++i) {
    const std::int64_t row = block.row + i;
    if (t.mask.data != nullptr) x.mask = mask_row_of(t, block.batch, block.head, row) + block.key;
    if (t.pse.data != nullptr) {
      const pse_row from = pse_row_of(t, block.sequence, block.batch, block.head, row);
      x.pse =
          static_cast<const char*>(t.pse.data) + (from.first + block.key) * element_bytes(p_.type);
      x.pse_columns =
          static_cast<int>(std::clamp<std::int64_t>(from.columns - block.key, 0, block.keys));
    }
    x.distance = static_cast<float>(row + t.ahead - block.key);
    x.to = tile + i * ld;
    addends_(x);
  }
}

void attention_tiles::multipliers(const score_block& block, float* tile, std::int64_t ld) const {
  multiplier_row x{&p_.terms->dropout, 0, nullptr, block.width};
  for (int i = 0; i < block.rows; ++i) {
    x.index = decision_of(p_, block.sequence, block.batch, block.head, block.row + i, block.key);
    x.to = tile + i * ld;
    kernels_.multipliers(x);
  }
}

}  // namespace velo::ops
