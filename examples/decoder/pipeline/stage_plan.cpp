// Assigns layers to stages, and stages to ranks as the schedule has them.
#include "examples/decoder/pipeline/stage_plan.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <utility>

namespace decoder {

namespace {

velo_schedule_kind kind_of(const std::string& name) {
  const char* each = nullptr;
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE;
       velo_schedule_kind_name(kind, &each) == VELO_OK; ++kind)
    if (name == each) return kind;
  return VELO_SCHEDULE_CUSTOM;
}

velo::schedule schedule_of(const parallel_settings& how, std::int64_t microbatches,
                           std::uint32_t flags) {
  if (how.in_advance) flags |= VELO_SCHEDULE_IN_ADVANCE;
  if (!how.dw_detach) flags |= VELO_SCHEDULE_NO_DW_DETACH;
  if (how.expert_overlap == "fused" && how.pipeline == "interleaved")
    flags |= VELO_SCHEDULE_OVERLAP;
  if (how.nanopipe_swap) flags |= VELO_SCHEDULE_SWAP;
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind_of(how.pipeline);
  desc.ranks = static_cast<std::int32_t>(how.pp);
  desc.microbatches = static_cast<std::int32_t>(microbatches);
  desc.chunks = static_cast<std::int32_t>(how.vpp);
  if (how.sequence_splits > 1) desc.splits = static_cast<std::int32_t>(how.sequence_splits);
  desc.flags = flags;
  return velo::schedule::create(desc);
}

std::vector<std::int64_t> empty_places(const settings& values) {
  return places_in(values.parallel.noop_layers).value_or(std::vector<std::int64_t>());
}

std::int64_t places_of(const settings& values) {
  return values.model.layers + static_cast<std::int64_t>(empty_places(values).size());
}

command::stage_list::result listed_in(const settings& values, const velo::schedule& order,
                                      int stages) {
  if (values.parallel.stage_layers.empty()) return {};
  const auto list = command::stage_list::read(values.parallel.stage_layers);
  if (!list) return {{}, command::stage_list::form, ""};
  std::vector<std::int64_t> rank_of;
  for (int stage = 0; stage < stages; ++stage) rank_of.push_back(order.stage(stage).rank);
  return list->of(rank_of, places_of(values));
}

}  // namespace

std::vector<std::string> pipelines() {
  std::vector<std::string> names;
  const char* each = nullptr;
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE;
       velo_schedule_kind_name(kind, &each) == VELO_OK; ++kind)
    names.emplace_back(each);
  return names;
}

std::optional<std::vector<std::int64_t>> places_in(const std::string& list) {
  std::vector<std::int64_t> all;
  std::istringstream from(list);
  for (std::string each; std::getline(from, each, ',');) {
    const bool digits =
        std::all_of(each.begin(), each.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (each.empty() || each.size() > 4 || !digits) return std::nullopt;
    all.push_back(std::stoll(each));
  }
  if (!list.empty() && list.back() == ',') return std::nullopt;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

stage_plan::stage_plan(const settings& values)
    : model_(values.model), order_(schedule_of(values.parallel, values.data.accumulation, 0)) {
  if (values.parallel.post_validation)
    order_of_step_ =
        schedule_of(values.parallel, values.data.accumulation, VELO_SCHEDULE_OPTIMIZER);
  const velo_schedule_info info = order_.info();
  stages_ = info.stages;
  chains_ = info.kind == VELO_SCHEDULE_DUALPIPE ? 2 : 1;
  splits_ = static_cast<int>(values.parallel.sequence_splits);
  units_ = info.microbatches / chains_ * splits_;
  listed_ = listed_in(values, order_, length());
  std::vector<std::int64_t> places = listed_.counts;
  if (places.empty())
    places = command::even_layers(places_of(values), static_cast<std::size_t>(length()));
  counts_ = command::without_places(std::move(places), empty_places(values));
}

std::vector<int> stage_plan::stages_of(int rank) const {
  std::vector<int> all;
  for (int stage = 0; stage < stages_; ++stage)
    if (order_.stage(stage).rank == rank) all.push_back(stage);
  return all;
}

stage_range stage_plan::layers_of(int stage) const {
  const auto number = stage % length();
  const auto at = counts_.begin() + number;
  const auto first =
      static_cast<std::size_t>(std::accumulate(counts_.begin(), at, std::int64_t{0}));
  return {first, first + static_cast<std::size_t>(*at), number == 0, number + 1 == length()};
}

std::vector<velo_action> stage_plan::made_again_by(int rank) const {
  std::vector<velo_action> row(static_cast<std::size_t>(order_.length(rank)));
  order_.actions(rank, 0, static_cast<std::int64_t>(row.size()), row.data());
  row.erase(std::remove_if(row.begin(), row.end(),
                           [](const velo_action& a) { return a.kind != VELO_ACTION_RECOMPUTE; }),
            row.end());
  return row;
}

holding stage_plan::held_by(int rank) const {
  holding held{std::vector<bool>(static_cast<std::size_t>(model_.layers)), false, false};
  for (const int stage : stages_of(rank)) {
    const stage_range range = layers_of(stage);
    for (std::size_t i = range.first; i < range.last; ++i) held.layers[i] = true;
    held.embedding |= range.begins;
    held.head |= range.ends;
  }
  return held;
}

bool stage_plan::ties_ends() const {
  if (!model_.tied) return false;
  const holding first = held_by(order_.stage(0).rank);
  return first.embedding && !first.head;
}

void split(member& rank, const settings& values) {
  const parallel_settings& how = values.parallel;
  const bool has_experts = values.model.has_experts() && rank.ranks() > 1;
  if (how.ranks_of_copy() > 1 || has_experts)
    rank.split(how, values.model.ranks_of_key(how.ranks_x()),
               values.model.tied && how.pp > 1 && stage_plan(values).ties_ends(), has_experts);
}

}  // namespace decoder
