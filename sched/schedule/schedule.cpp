// Reads rows from formulas or lists, and makes the usual placements.
#include "sched/schedule/schedule.hpp"

#include <algorithm>
#include <utility>

#include "core/index.hpp"

namespace velo::sched {

schedule::schedule(const shape& sizes, placement stages, std::vector<row> rows)
    : sizes_(sizes),
      stages_(std::move(stages)),
      rank_of_(sizes.stages, -1),
      rows_(std::move(rows)) {
  for (std::int32_t rank = 0; rank < sizes_.ranks; ++rank)
    for (const std::int32_t stage : stages_[rank]) rank_of_[stage] = rank;
  for (const row& of : rows_) {
    if (const auto* formula = std::get_if<program>(&of))
      kinds_ |= formula->kinds();
    else
      for (const action& a : std::get<std::vector<action>>(of)) kinds_ |= set_of(a.kind);
  }
}

std::int64_t schedule::length(std::int32_t rank) const {
  const row& of = rows_[rank];
  if (const auto* formula = std::get_if<program>(&of)) return formula->length();
  return static_cast<std::int64_t>(std::get<std::vector<action>>(of).size());
}

std::int64_t schedule::actions() const {
  std::int64_t all = 0;
  for (std::int32_t rank = 0; rank < sizes_.ranks; ++rank) all += length(rank);
  return all;
}

std::size_t schedule::bytes() const {
  std::size_t all = 0;
  for (const row& of : rows_) {
    if (const auto* formula = std::get_if<program>(&of))
      all += formula->bytes();
    else
      all += std::get<std::vector<action>>(of).capacity() * sizeof(action);
  }
  return all;
}

void schedule::read(std::int32_t rank, std::int64_t first, std::int64_t count, action* into) const {
  const row& of = rows_[rank];
  if (const auto* formula = std::get_if<program>(&of)) {
    formula->read(first, count, stages_[rank].data(), into);
  } else {
    const action* from = std::get<std::vector<action>>(of).data() + first;
    std::copy(from, from + count, into);
  }
}

placement loop_placement(std::int32_t ranks, std::int32_t chunks) {
  placement stages(ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    for (std::int32_t c = 0; c < chunks; ++c) stages[rank].push_back(c * ranks + rank);
  return stages;
}

placement v_placement(std::int32_t ranks, std::int32_t chunks) {
  placement stages(ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    for (std::int32_t c = 0; c < chunks; ++c)
      stages[rank].push_back(c % 2 == 0 ? c * ranks + rank : (c + 1) * ranks - 1 - rank);
  return stages;
}

velo_stage_info describe_stage(const schedule& of, std::int32_t stage) {
  velo_stage_info info{};
  info.rank = of.rank_of(stage);
  info.first_layer = -1;
  if (info.rank >= 0) {
    const std::vector<std::int32_t>& stages = of.stages_of(info.rank);
    info.chunk =
        static_cast<std::int32_t>(std::find(stages.begin(), stages.end(), stage) - stages.begin());
  }
  if (of.layers() == nullptr) return info;
  const stage_content& holds = of.layers()->stages[core::at(stage % of.sizes().chain_length())];
  info.first_layer = holds.first_layer;
  info.layers = holds.layers;
  info.noop_layers = holds.noops;
  info.predictors = holds.predictors;
  info.embedding = holds.embedding ? 1 : 0;
  info.loss = holds.loss ? 1 : 0;
  return info;
}

void row_reader::fill() {
  begin_ = index_;
  end_ = std::min(length_, begin_ + block);
  from_->read(rank_, begin_, end_ - begin_, block_);
}

bool says_sends(const schedule& pipeline, std::int32_t rank) {
  for (row_reader row(pipeline, rank); !row.done(); row.pass())
    if (is_send(row.next().kind)) return true;
  return false;
}

}  // namespace velo::sched
