// The names of dispatchers, and those of a layer.
#include "examples/decoder/parallel/expert_parallel.hpp"

#include <array>
#include <utility>
#include <vector>

namespace decoder {
namespace {

constexpr std::array<std::pair<const char*, velo_dispatch_kind>, 4> kinds = {
    {{"all_to_all", VELO_DISPATCH_ALL_TO_ALL},
     {"all_gather", VELO_DISPATCH_ALL_GATHER},
     {"all_to_all_sequence", VELO_DISPATCH_ALL_TO_ALL_SEQUENCE},
     {"hierarchical", VELO_DISPATCH_HIERARCHICAL}}};

std::shared_ptr<const velo::group> group_of_one(const velo::context& context) {
  const velo_context only = context.get();
  auto all = velo::group::create_local<std::vector<velo::group>>(&only, 1);
  return std::make_shared<const velo::group>(std::move(all[0]));
}

const member::part* part_or_null(const member::part& of) {
  return of.ranks == 1 ? nullptr : &of;
}

}  // namespace

std::optional<velo_dispatch_kind> dispatcher_kind(const std::string& name) {
  for (const auto& [each, kind] : kinds)
    if (name == each) return kind;
  return std::nullopt;
}

std::string dispatcher_names() {
  std::string all = kinds[0].first;
  for (std::size_t i = 1; i < kinds.size(); ++i)
    all += (i + 1 < kinds.size() ? ", " : " or ") + std::string(kinds[i].first);
  return all;
}

expert_parallel::expert_parallel(const member& rank, const settings& values)
    : ranks_(part_or_null(rank.expert_ranks())),
      stage_(part_or_null(rank.stage_ranks())),
      kind_(*dispatcher_kind(values.parallel.dispatcher)),
      batch_(stage_ == nullptr ? nullptr : velo_group(stage_->group)),
      means_(rank.data_parallel_ranks()),
      cuts_experts_(values.parallel.cuts_experts()) {
  if (cuts_experts_) batch_ = means_ > 1 ? rank.data_parallel_group() : nullptr;
  if (ranks_ == nullptr && values.model.has_capacity()) alone_ = group_of_one(rank.context());
}

velo_group expert_parallel::group() const {
  return ranks_ != nullptr ? ranks_->group : *alone_;
}

velo_dispatcher_desc expert_parallel::desc_of(const model_settings& m) const {
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = m.experts;
  desc.top_k = static_cast<std::int32_t>(m.experts_per_token);
  desc.kind = kind_;
  return desc;
}

velo::dispatcher expert_parallel::dispatcher(const model_settings& m) const {
  if (is_alone()) return {};
  return velo::dispatcher::create(group(), desc_of(m));
}

velo::dispatcher expert_parallel::limited_dispatcher(const model_settings& m) const {
  if (!m.has_capacity() || (is_alone() && alone_ == nullptr)) return {};
  velo_dispatcher_desc desc = desc_of(m);
  desc.capacity_rule = VELO_CAPACITY_FACTOR;
  desc.capacity_factor = m.capacity_factor;
  desc.drop_policy =
      m.capacity_drop == "position" ? VELO_DROP_POLICY_POSITION : VELO_DROP_POLICY_PROBABILITY;
  desc.pad = m.capacity_pad ? 1 : 0;
  desc.capacity_by_rank = m.capacity_by_rank ? 1 : 0;
  if (!m.capacity_by_rank) desc.batch_group = batch_;
  return velo::dispatcher::create(group(), desc);
}

}  // namespace decoder
