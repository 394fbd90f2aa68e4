// The kinds: what each may be asked for, and who makes it.
#include "sched/pipeline/generate.hpp"

#include <iterator>

namespace velo::sched {
namespace {

using core::fail;
using core::text;

struct kind_row {
  velo_schedule_kind kind;
  std::int32_t chunks, most_chunks;  // V where none is given, and at most
  bool has_group;
  std::uint32_t flags;  // that mean something
  schedule (*make)(const request& wanted);
};
constexpr std::int32_t any_chunks = 127;  // of a slot's int8_t
constexpr kind_row kinds[] = {
    {VELO_SCHEDULE_GPIPE, 1, 1, false, 0, &make_gpipe},
    {VELO_SCHEDULE_1F1B, 1, 1, false, 0, &make_1f1b},
    {VELO_SCHEDULE_INTERLEAVED, 2, any_chunks, true, VELO_SCHEDULE_EXTRA_WARMUP, &make_interleaved},
};

std::int32_t in_range(std::int32_t value, std::int32_t most, const char* field) {
  if (value < 1 || value > most)
    fail(VELO_ERR_ARGUMENT, field, text("1 to %d", most), text("%d", value));
  return value;
}

// Nothing may be asked for that the kind would pass over.
void require_none(bool given, const char* field, std::int32_t value) {
  if (given) fail(VELO_ERR_ARGUMENT, field, "0 for this kind", text("%d", value));
}

schedule make_custom(const velo_schedule_desc& desc) {
  require_none(desc.ranks != 0, "desc.ranks", desc.ranks);
  require_none(desc.microbatches != 0, "desc.microbatches", desc.microbatches);
  require_none(desc.chunks != 0, "desc.chunks", desc.chunks);
  require_none(desc.group != 0, "desc.group", desc.group);
  require_none(desc.flags != 0, "desc.flags", static_cast<std::int32_t>(desc.flags));
  return {};
}

}  // namespace

schedule generate(const velo_schedule_desc& desc) {
  if (desc.kind == VELO_SCHEDULE_CUSTOM) return make_custom(desc);
  const kind_row* kind = nullptr;
  for (const kind_row& row : kinds)
    if (row.kind == desc.kind) kind = &row;
  if (kind == nullptr)
    fail(VELO_ERR_ARGUMENT, "desc.kind", text("0 to %d", std::prev(std::end(kinds))->kind),
         text("%d", desc.kind));

  request wanted;
  wanted.kind = desc.kind;
  wanted.ranks = in_range(desc.ranks, most_ranks, "desc.ranks");
  wanted.microbatches = in_range(desc.microbatches, most_index, "desc.microbatches");
  wanted.chunks =
      desc.chunks == 0 ? kind->chunks : in_range(desc.chunks, kind->most_chunks, "desc.chunks");
  require_none(desc.group != 0 && !kind->has_group, "desc.group", desc.group);
  wanted.group = desc.group == 0 ? wanted.ranks : in_range(desc.group, most_index, "desc.group");
  require_none((desc.flags & ~kind->flags) != 0, "desc.flags",
               static_cast<std::int32_t>(desc.flags));
  wanted.extra_warmup = (desc.flags & VELO_SCHEDULE_EXTRA_WARMUP) != 0;
  if (std::int64_t{wanted.ranks} * wanted.chunks * wanted.microbatches > most_cells)
    fail(
        VELO_ERR_ARGUMENT, "desc.microbatches",
        text("at most %lld pairs of a stage and a micro-batch", static_cast<long long>(most_cells)),
        text("%d stages, %d micro-batches", wanted.ranks * wanted.chunks, wanted.microbatches));
  return kind->make(wanted);
}

}  // namespace velo::sched
