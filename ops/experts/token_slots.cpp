// The lists of rows from sorted indices, and from padded ones by a counting sort.
#include "ops/experts/token_slots.hpp"

#include <algorithm>
#include <cstring>

#include "ops/operator/indices.hpp"

namespace velo::ops {
namespace {

std::size_t places(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// Refuses anything but a permutation of [0, count).
void require_permutation(const velo_tensor& indices, const char* field, std::int64_t count,
                         core::arena& scratch) {
  require_indices(indices, field, count);
  const index_reader at(indices);
  auto* seen = scratch.take<char>(places(count));
  std::fill_n(seen, count, char{0});
  for (std::int64_t i = 0; i < count; ++i) {
    if (seen[at[i]]++ == 0) continue;
    core::fail(VELO_ERR_ARGUMENT, core::text("args.%s", field), "each row once",
               core::concat(at[i], " again in element ", i));
  }
}

}  // namespace

token_slots read_slots(const velo_tensor& indices, const char* field, const slot_form& form,
                       core::arena& scratch) {
  const std::int64_t all = numel(indices), tokens = form.tokens;
  if (form.padded) {
    require_indices(indices, field, tokens);
  } else {
    require_permutation(indices, field, all, scratch);
  }
  const index_reader at(indices);
  token_slots slots;
  slots.tokens = tokens;
  slots.start = scratch.take<std::int64_t>(places(tokens) + 2);
  slots.rows = scratch.take<std::int32_t>(places(all));
  slots.places = scratch.take<std::int64_t>(places(all));
  std::memset(slots.start, 0, sizeof(std::int64_t) * (places(tokens) + 2));
  if (!form.padded) {
    const std::int64_t choices = tokens == 0 ? 0 : all / tokens;
    std::int64_t entry = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t f = t * choices; f < (t + 1) * choices; ++f) {
        if (at[f] >= form.rows) continue;
        slots.rows[entry] = static_cast<std::int32_t>(at[f]);
        slots.places[entry++] = f;
      }
      slots.start[t + 1] = entry;
    }
    return slots;
  }
  // Counts are stored one element ahead, so that filling a list advances it to its final index.
  for (std::int64_t i = 0; i < all; ++i) ++slots.start[at[i] + 2];
  for (std::int64_t t = 2; t < tokens + 2; ++t) slots.start[t] += slots.start[t - 1];
  const std::int64_t capacity = indices.shape[1];
  for (std::int64_t i = 0; i < all; ++i) {
    const std::int64_t entry = slots.start[at[i] + 1]++;
    slots.rows[entry] = static_cast<std::int32_t>(i);
    slots.places[entry] = at[i] * form.experts + i / capacity;
  }
  return slots;
}

}  // namespace velo::ops
