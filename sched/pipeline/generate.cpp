// The kinds: what each may be asked for, and who makes it.
#include "sched/pipeline/generate.hpp"

#include <iterator>

namespace velo::sched {
namespace {

using core::fail;
using core::text;

// What a kind takes beyond ranks and micro-batches; by_search: its rows are lists, and found.
enum takes : unsigned { group = 1, splits = 2, cap = 4, by_search = 8 };

struct kind_row {
  velo_schedule_kind kind;
  std::int32_t chunks, most_chunks;  // V: where none is given (0: the generator's), and at most
  unsigned takes;
  std::uint32_t flags;  // that mean something
  schedule (*make)(const request& wanted);
};
constexpr std::int32_t any = 1024;
constexpr kind_row kinds[] = {
    {VELO_SCHEDULE_GPIPE, 1, 1, 0, 0, &make_gpipe},
    {VELO_SCHEDULE_1F1B, 1, 1, 0, 0, &make_1f1b},
    {VELO_SCHEDULE_INTERLEAVED, 2, any, group, VELO_SCHEDULE_EXTRA_WARMUP, &make_interleaved},
    {VELO_SCHEDULE_LOOPED_BFS, 2, any, 0, 0, &make_looped_bfs},
    {VELO_SCHEDULE_ZBH1, 1, 1, 0, 0, &make_zb1p},
    {VELO_SCHEDULE_ZBH2, 1, 1, cap | by_search, 0, &make_zbh2},
    {VELO_SCHEDULE_ZB1P, 2, any, 0, 0, &make_zb1p},
    {VELO_SCHEDULE_ZBV, 2, 2, 0, 0, &make_zbv},
    {VELO_SCHEDULE_ZBV_GREEDY, 2, 2, cap | by_search, 0, &make_zbv_greedy},
    {VELO_SCHEDULE_VHALF, 2, 2, by_search, 0, &make_vhalf},
    {VELO_SCHEDULE_VMIN, 2, 2, by_search, 0, &make_vmin},
    {VELO_SCHEDULE_1F1B_V, 2, 2, by_search, 0, &make_1f1b_v},
    {VELO_SCHEDULE_DUALPIPE, 2, 2, 0, VELO_SCHEDULE_NO_DW_DETACH, &make_dualpipe},
    {VELO_SCHEDULE_DUALPIPEV, 2, 2, 0, VELO_SCHEDULE_NO_DW_DETACH, &make_dualpipev},
    {VELO_SCHEDULE_SEQ1F1B, 1, 1, splits, 0, &make_seq1f1b},
    {VELO_SCHEDULE_AUTO, 0, 2, cap | by_search, 0, &make_auto},
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

// Sizes that indices can count, and that memory has room for.
void require_size(const request& wanted, const kind_row& kind) {
  const std::int32_t chunks = wanted.chunks == 0 ? kind.most_chunks : wanted.chunks;
  const std::int64_t stages = std::int64_t{wanted.ranks} * chunks;
  const std::int64_t units = std::int64_t{wanted.microbatches} * wanted.splits;
  const std::int64_t most = kind.takes & by_search ? most_listed / 8 : most_cells;
  if (stages > most_index || units > most_index || stages * units > most)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches",
         text("at most %lld pairs of a stage and a micro-batch", static_cast<long long>(most)),
         text("%d ranks of %d stages, %lld micro-batches", wanted.ranks, chunks,
              static_cast<long long>(units)));
}

schedule make_custom(const velo_schedule_desc& desc) {
  require_none(desc.ranks != 0, "desc.ranks", desc.ranks);
  require_none(desc.microbatches != 0, "desc.microbatches", desc.microbatches);
  require_none(desc.chunks != 0, "desc.chunks", desc.chunks);
  require_none(desc.group != 0, "desc.group", desc.group);
  require_none(desc.splits != 0, "desc.splits", desc.splits);
  require_none(desc.flags != 0, "desc.flags", static_cast<std::int32_t>(desc.flags));
  require_none(desc.cap != 0, "desc.cap", 1);
  return {};
}

}  // namespace

shape shape_of(const request& wanted) {
  shape what;
  what.kind = wanted.kind;
  what.ranks = wanted.ranks;
  what.stages = wanted.ranks * wanted.chunks;
  what.chains = wanted.kind == VELO_SCHEDULE_DUALPIPE ? 2 : 1;
  what.microbatches = wanted.microbatches;
  what.splits = wanted.splits;
  return what;
}

schedule generate(const velo_schedule_desc& desc, const costs& given) {
  if (desc.kind == VELO_SCHEDULE_CUSTOM) return make_custom(desc);
  const kind_row* kind = nullptr;
  for (const kind_row& row : kinds)
    if (row.kind == desc.kind) kind = &row;
  if (kind == nullptr)
    fail(VELO_ERR_ARGUMENT, "desc.kind", text("0 to %d", std::prev(std::end(kinds))->kind),
         text("%d", desc.kind));

  request wanted;
  wanted.kind = desc.kind;
  wanted.costs = given;
  wanted.ranks = in_range(desc.ranks, most_ranks, "desc.ranks");
  wanted.microbatches = in_range(desc.microbatches, most_index, "desc.microbatches");
  wanted.chunks =
      desc.chunks == 0 ? kind->chunks : in_range(desc.chunks, kind->most_chunks, "desc.chunks");
  if (desc.chunks > 0 && desc.chunks < kind->chunks && kind->chunks == kind->most_chunks)
    fail(VELO_ERR_ARGUMENT, "desc.chunks", text("%d for this kind", kind->chunks),
         text("%d", desc.chunks));
  require_none(desc.group != 0 && (kind->takes & group) == 0, "desc.group", desc.group);
  wanted.group = desc.group == 0 ? wanted.ranks : in_range(desc.group, most_index, "desc.group");
  require_none(desc.splits != 0 && (kind->takes & splits) == 0, "desc.splits", desc.splits);
  wanted.splits = desc.splits == 0 ? 1 : in_range(desc.splits, most_index, "desc.splits");
  require_none((desc.flags & ~kind->flags) != 0, "desc.flags",
               static_cast<std::int32_t>(desc.flags));
  wanted.extra_warmup = (desc.flags & VELO_SCHEDULE_EXTRA_WARMUP) != 0;
  wanted.detach = (desc.flags & VELO_SCHEDULE_NO_DW_DETACH) == 0;
  if (desc.cap != 0 && (kind->takes & cap) == 0)
    fail(VELO_ERR_ARGUMENT, "desc.cap", "0 for this kind", text("%g", desc.cap));
  if (!(desc.cap >= 0) || desc.cap > most_index)
    fail(VELO_ERR_ARGUMENT, "desc.cap", text("0 to %d", most_index), text("%g", desc.cap));
  wanted.cap = desc.cap;
  require_size(wanted, *kind);
  return kind->make(wanted);
}

}  // namespace velo::sched
