// Reads a velo_schedule_desc: checks every field and fills in defaults.
#include "sched/pipeline/request.hpp"

#include <algorithm>
#include <utility>

#include "core/failure.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/schedule/kind_name.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

std::int32_t in_range(std::int32_t value, std::int32_t most, const char* field) {
  if (value < 1 || value > most)
    fail(VELO_ERR_ARGUMENT, field, text("1 to %d", most), text("%d", value));
  return value;
}

// Refuses a field that the kind would ignore.
void require_none(bool given, const char* field, std::int32_t value) {
  if (given) fail(VELO_ERR_ARGUMENT, field, "0 for this kind", text("%d", value));
}

// Refuses sizes that exceed indices or memory.
void require_size(const request& wanted, const kind_row& kind) {
  const std::int32_t chunks = wanted.chunks == 0 ? kind.most_chunks : wanted.chunks;
  const std::int64_t stages = std::int64_t{wanted.ranks} * chunks;
  const std::int64_t units = std::int64_t{wanted.microbatches} * wanted.splits;
  const std::int64_t most = kind.has(stores_actions) ? most_listed / 8 : most_cells;
  if (stages > most_index || units > most_index || stages * units > most)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches",
         core::concat("at most ", most, " pairs of a stage and a micro-batch"),
         core::concat(wanted.ranks, " ranks of ", chunks, " stages, ", units, " micro-batches"));
}

// A caller's own schedule is empty until its text is read.
void require_empty(const velo_schedule_desc& desc) {
  require_none(desc.ranks != 0, "desc.ranks", desc.ranks);
  require_none(desc.microbatches != 0, "desc.microbatches", desc.microbatches);
  require_none(desc.chunks != 0, "desc.chunks", desc.chunks);
  require_none(desc.group != 0, "desc.group", desc.group);
  require_none(desc.splits != 0, "desc.splits", desc.splits);
  require_none(desc.flags != 0, "desc.flags", static_cast<std::int32_t>(desc.flags));
  if (desc.cap != 0) fail(VELO_ERR_ARGUMENT, "desc.cap", "0 for this kind", text("%g", desc.cap));
  require_none(desc.layers != 0, "desc.layers", desc.layers);
  if (desc.layout != nullptr)
    fail(VELO_ERR_ARGUMENT, "desc.layout", "NULL for this kind", desc.layout);
  require_none(desc.noop_count != 0, "desc.noop_count", desc.noop_count);
}

// The model's layers, if the desc states them, else null. stages: the number of stages of a chain.
std::shared_ptr<const layout> read_layers(const velo_schedule_desc& desc, const request& wanted,
                                          std::int32_t stages) {
  if (desc.noop_count < 0 || (desc.noop_count > 0 && desc.noop_layers == nullptr))
    fail(VELO_ERR_ARGUMENT, "desc.noop_count", "as many as noop_layers has",
         text("%d", desc.noop_count));
  if (desc.layers < 0 || desc.layers > most_symbols)
    fail(VELO_ERR_ARGUMENT, "desc.layers", text("0 to %d", most_symbols), text("%d", desc.layers));
  if (desc.layout == nullptr && desc.layers == 0) {
    require_none(desc.noop_count != 0, "desc.noop_count", desc.noop_count);
    return nullptr;
  }
  layout result;
  if (desc.layout == nullptr) {
    result = even_layout(desc.layers, stages, "desc.layers");
  } else {
    result = parse_layout(desc.layout, "desc.layout");
    require_fits(result, desc.layout, "desc.layout", wanted.ranks, stages,
                 row_of(wanted.kind).goes_up(wanted.chunks));
    if (desc.layers != 0 && desc.layers != result.layers())
      fail(VELO_ERR_ARGUMENT, "desc.layers", text("the %d of the layout", result.layers()),
           text("%d", desc.layers));
  }
  if (desc.noop_count > 0)
    add_noops(result, {desc.noop_layers, desc.noop_layers + desc.noop_count}, "desc.noop_layers");
  return std::make_shared<const layout>(std::move(result));
}

// The stages of a rank, if the layout alone determines them; else 0.
std::int32_t chunks_of_layout(const velo_schedule_desc& desc, const kind_row& kind) {
  if (desc.layout == nullptr || desc.chunks != 0 || kind.one_size()) return 0;
  const auto stages =
      static_cast<std::int32_t>(parse_layout(desc.layout, "desc.layout").stages.size());
  return stages % desc.ranks == 0 ? std::min(stages / desc.ranks, kind.most_chunks) : 0;
}

std::int32_t read_chunks(const velo_schedule_desc& desc, const kind_row& kind, bool has_shares) {
  if (desc.chunks > 0 && desc.chunks != kind.chunks && kind.one_size())
    fail(VELO_ERR_ARGUMENT, "desc.chunks", text("%d for this kind", kind.chunks),
         text("%d", desc.chunks));
  std::int32_t chunks = desc.chunks == 0 ? chunks_of_layout(desc, kind)
                                         : in_range(desc.chunks, kind.most_chunks, "desc.chunks");
  if (chunks == 0) chunks = kind.chunks;
  if (chunks == 0 && (desc.layers != 0 || has_shares))
    fail(VELO_ERR_ARGUMENT, "desc.chunks", "1 or 2 where stages are not alike", "0");
  return chunks;
}

void read_flags(const velo_schedule_desc& desc, const kind_row& kind, request& wanted) {
  require_none((desc.flags & ~(kind.flags | VELO_SCHEDULE_OPTIMIZER)) != 0, "desc.flags",
               static_cast<std::int32_t>(desc.flags));
  wanted.extra_warmup = (desc.flags & VELO_SCHEDULE_EXTRA_WARMUP) != 0;
  wanted.detach = (desc.flags & VELO_SCHEDULE_NO_DW_DETACH) == 0;
  wanted.overlap = (desc.flags & VELO_SCHEDULE_OVERLAP) != 0;
  wanted.in_advance = (desc.flags & VELO_SCHEDULE_IN_ADVANCE) != 0;
  wanted.swap = (desc.flags & VELO_SCHEDULE_SWAP) != 0;
  wanted.updates = (desc.flags & VELO_SCHEDULE_OPTIMIZER) != 0;
}

double read_cap(const velo_schedule_desc& desc, const kind_row& kind) {
  if (desc.cap != 0 && !kind.has(takes_cap))
    fail(VELO_ERR_ARGUMENT, "desc.cap", "0 for this kind", text("%g", desc.cap));
  if (!(desc.cap >= 0) || desc.cap > most_index)
    fail(VELO_ERR_ARGUMENT, "desc.cap", text("0 to %d", most_index), text("%g", desc.cap));
  return desc.cap;
}

}  // namespace

shape shape_of(const request& wanted) {
  shape sizes;
  sizes.kind = wanted.kind;
  sizes.ranks = wanted.ranks;
  sizes.stages = wanted.ranks * wanted.chunks;
  sizes.chains = row_of(wanted.kind).path == stage_path::both_ways ? 2 : 1;
  sizes.microbatches = wanted.microbatches;
  sizes.splits = wanted.splits;
  return sizes;
}

request read_request(const velo_schedule_desc& desc, const costs& given) {
  if (desc.kind < 0 || desc.kind > last_schedule_kind)
    fail(VELO_ERR_ARGUMENT, "desc.kind", text("0 to %d", last_schedule_kind),
         text("%d", desc.kind));
  request wanted;
  if (desc.kind == VELO_SCHEDULE_CUSTOM) {
    require_empty(desc);
    return wanted;
  }
  const kind_row& kind = row_of(desc.kind);
  wanted.kind = desc.kind;
  wanted.costs = given;
  wanted.ranks = in_range(desc.ranks, most_ranks, "desc.ranks");
  wanted.microbatches = in_range(desc.microbatches, most_index, "desc.microbatches");
  wanted.chunks = read_chunks(desc, kind, !given.shares.empty());
  require_none(desc.group != 0 && !kind.has(takes_group), "desc.group", desc.group);
  wanted.group = desc.group == 0 ? wanted.ranks : in_range(desc.group, most_index, "desc.group");
  require_none(desc.splits != 0 && !kind.has(takes_splits), "desc.splits", desc.splits);
  wanted.splits = desc.splits == 0 ? 1 : in_range(desc.splits, most_index, "desc.splits");
  read_flags(desc, kind, wanted);
  wanted.cap = read_cap(desc, kind);
  require_size(wanted, kind);
  const std::int32_t chunks = wanted.chunks == 0 ? kind.most_chunks : wanted.chunks;
  wanted.layers = read_layers(desc, wanted, wanted.ranks * chunks / shape_of(wanted).chains);
  if (wanted.chunks > 0)
    wanted.costs = with_shares(given, shape_of(wanted), wanted.layers.get(), "desc.costs");
  return wanted;
}

}  // namespace velo::sched
