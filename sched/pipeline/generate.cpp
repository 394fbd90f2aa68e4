// The kinds: what each may be asked for, and who makes it.
#include "sched/pipeline/generate.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sched/simulate/simulate.hpp"

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
    {VELO_SCHEDULE_INTERLEAVED, 2, any, group, VELO_SCHEDULE_EXTRA_WARMUP | VELO_SCHEDULE_OVERLAP,
     &make_interleaved},
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
    {VELO_SCHEDULE_NANOPIPE, 2, any, 0, VELO_SCHEDULE_SWAP, &make_nanopipe},
    {VELO_SCHEDULE_RIPIPE, 2, any, by_search, VELO_SCHEDULE_IN_ADVANCE, &make_ripipe},
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

const char* noun_of(double count) {
  return count == 1 ? "micro-batch" : "micro-batches";
}

// Searches count stages; what they hold, where stages are not alike, is known only behind them.
void require_cap(const request& wanted, const schedule& made) {
  const ticks scale = ticks_of(wanted.costs, made.what(), made.actions());
  std::vector<stuck_rank> stuck;
  std::int64_t peak = 0;
  for (const rank_times& rank : simulate(made, scale, stuck).ranks)
    peak = std::max(peak, rank.peak);
  const double holds = scale.in_microbatches(peak, made.what());
  if (holds > wanted.cap)
    fail(VELO_ERR_ARGUMENT, "desc.cap",
         text("room in which an order is found; the one found holds %g %s", holds, noun_of(holds)),
         text("%g", wanted.cap));
}

schedule make_custom(const velo_schedule_desc& desc) {
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
  return {};
}

// Kinds whose second half of stages goes up the ranks.
bool goes_up(velo_schedule_kind kind, std::int32_t chunks) {
  return kind == VELO_SCHEDULE_ZBV || kind == VELO_SCHEDULE_ZBV_GREEDY ||
         kind == VELO_SCHEDULE_VHALF || kind == VELO_SCHEDULE_VMIN ||
         kind == VELO_SCHEDULE_1F1B_V || kind == VELO_SCHEDULE_DUALPIPE ||
         kind == VELO_SCHEDULE_DUALPIPEV || (kind == VELO_SCHEDULE_AUTO && chunks != 1);
}

// What a desc says of the model's layers; null: nothing. stages: of a chain.
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
  layout made;
  if (desc.layout == nullptr) {
    made = even_layout(desc.layers, stages, "desc.layers");
  } else {
    made = parse_layout(desc.layout, "desc.layout");
    require_fits(made, desc.layout, "desc.layout", wanted.ranks, stages,
                 goes_up(wanted.kind, wanted.chunks));
    if (desc.layers != 0 && desc.layers != made.layers())
      fail(VELO_ERR_ARGUMENT, "desc.layers", text("the %d of the layout", made.layers()),
           text("%d", desc.layers));
  }
  if (desc.noop_count > 0)
    add_noops(made, {desc.noop_layers, desc.noop_layers + desc.noop_count}, "desc.noop_layers");
  return std::make_shared<const layout>(std::move(made));
}

// Rows that end with OPTIMIZER.
schedule with_updates(const schedule& what) {
  if (what.actions() > most_listed)
    fail(VELO_ERR_ARGUMENT, "desc.flags",
         text("OPTIMIZER behind at most %lld actions", static_cast<long long>(most_listed)),
         text("%lld", static_cast<long long>(what.actions())));
  std::vector<std::vector<std::int32_t>> stages;
  std::vector<row> rows;
  for (std::int32_t rank = 0; rank < what.what().ranks; ++rank) {
    stages.push_back(what.stages_of(rank));
    const std::int64_t length = what.length(rank);
    std::vector<action> all(static_cast<std::size_t>(length));
    what.read(rank, 0, length, all.data());
    for (const std::int32_t stage : stages.back())
      all.push_back(make_action(VELO_ACTION_OPTIMIZER, stage, -1));
    rows.emplace_back(std::move(all));
  }
  schedule made(what.what(), std::move(stages), std::move(rows));
  made.set_layers(what.shared_layers());
  return made;
}

// Stages a rank has, where the layout alone says so; 0: it does not.
std::int32_t chunks_of_layout(const velo_schedule_desc& desc, const kind_row& kind) {
  if (desc.layout == nullptr || desc.chunks != 0 || kind.chunks == kind.most_chunks) return 0;
  const auto stages =
      static_cast<std::int32_t>(parse_layout(desc.layout, "desc.layout").stages.size());
  return stages % desc.ranks == 0 ? std::min(stages / desc.ranks, kind.most_chunks) : 0;
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

void refuse_cap(const request& wanted, double enough) {
  // Four decimals, rounded up, so that the number shown is itself enough.
  const double rounded = std::ceil(enough * 1e4) / 1e4;
  fail(VELO_ERR_ARGUMENT, "desc.cap",
       text("room in which an order is found, such as %.10g %s", rounded, noun_of(rounded)),
       text("%g", wanted.cap));
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
  if (desc.chunks > 0 && desc.chunks != kind->chunks && kind->chunks == kind->most_chunks)
    fail(VELO_ERR_ARGUMENT, "desc.chunks", text("%d for this kind", kind->chunks),
         text("%d", desc.chunks));
  wanted.chunks = desc.chunks == 0 ? chunks_of_layout(desc, *kind)
                                   : in_range(desc.chunks, kind->most_chunks, "desc.chunks");
  if (wanted.chunks == 0) wanted.chunks = kind->chunks;
  if (wanted.chunks == 0 && (desc.layers != 0 || !given.shares.empty()))
    fail(VELO_ERR_ARGUMENT, "desc.chunks", "1 or 2 where stages are not alike", "0");
  require_none(desc.group != 0 && (kind->takes & group) == 0, "desc.group", desc.group);
  wanted.group = desc.group == 0 ? wanted.ranks : in_range(desc.group, most_index, "desc.group");
  require_none(desc.splits != 0 && (kind->takes & splits) == 0, "desc.splits", desc.splits);
  wanted.splits = desc.splits == 0 ? 1 : in_range(desc.splits, most_index, "desc.splits");
  require_none((desc.flags & ~(kind->flags | VELO_SCHEDULE_OPTIMIZER)) != 0, "desc.flags",
               static_cast<std::int32_t>(desc.flags));
  wanted.extra_warmup = (desc.flags & VELO_SCHEDULE_EXTRA_WARMUP) != 0;
  wanted.detach = (desc.flags & VELO_SCHEDULE_NO_DW_DETACH) == 0;
  wanted.overlap = (desc.flags & VELO_SCHEDULE_OVERLAP) != 0;
  wanted.in_advance = (desc.flags & VELO_SCHEDULE_IN_ADVANCE) != 0;
  wanted.swap = (desc.flags & VELO_SCHEDULE_SWAP) != 0;
  if (desc.cap != 0 && (kind->takes & cap) == 0)
    fail(VELO_ERR_ARGUMENT, "desc.cap", "0 for this kind", text("%g", desc.cap));
  if (!(desc.cap >= 0) || desc.cap > most_index)
    fail(VELO_ERR_ARGUMENT, "desc.cap", text("0 to %d", most_index), text("%g", desc.cap));
  wanted.cap = desc.cap;
  require_size(wanted, *kind);
  const std::shared_ptr<const layout> layers = read_layers(
      desc, wanted,
      wanted.ranks * (wanted.chunks == 0 ? 2 : wanted.chunks) / shape_of(wanted).chains);
  if (wanted.chunks > 0)
    wanted.costs = with_shares(given, shape_of(wanted), layers.get(), "desc.costs");
  schedule made = kind->make(wanted);
  made.set_layers(layers);
  if (wanted.cap != 0 && !wanted.costs.shares.empty()) require_cap(wanted, made);
  if ((desc.flags & VELO_SCHEDULE_OPTIMIZER) != 0) made = with_updates(made);
  return made;
}

}  // namespace velo::sched
