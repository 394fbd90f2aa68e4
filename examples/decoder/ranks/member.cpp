// Collectives on the inline stream, which are complete when the call returns.
#include "examples/decoder/ranks/member.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "examples/decoder/ranks/context.hpp"

namespace decoder {
namespace {

memory_settings without_records(memory_settings all) {
  all.memory_trace.clear();
  all.memory_snapshot.clear();
  return all;
}

}  // namespace

member::member(const settings& values, bool leads)
    : threads_(values.run.threads),
      memory_(leads ? values.memory : without_records(values.memory)),
      context_(make_context(values.run, memory_)) {}

void member::join(velo::group group) {
  group_ = std::move(group);
  const velo_group_info about = group_.info();
  rank_ = about.rank;
  ranks_ = data_parallel_ranks_ = about.size;
  leads_data_parallel_ = leads();
  if (ranks_ == 1) return;
  link_ = velo::stream::create(context_);
  if (threads_ != 0) return;
  const int mine = std::max(1, threads_of(context_) / ranks_);
  context_.set("threads", std::to_string(mine).c_str());
}

void member::split(int stages, bool both_ways) {
  stages_ = stages;
  std::vector<std::int32_t> copy_ranks, sharing;
  for (int i = 0; i < stages; ++i) copy_ranks.push_back(i * copies() + copy());
  for (int i = 0; i < ranks_; ++i) {
    const int other = i / copies();
    if (other == stage() || (both_ways && other == stages - 1 - stage())) sharing.push_back(i);
  }
  const auto part = [&](const std::vector<std::int32_t>& of) {
    return group_.part(of.data(), static_cast<std::int32_t>(of.size()));
  };
  data_parallel_ranks_ = static_cast<int>(sharing.size());
  leads_data_parallel_ = sharing[0] == rank_;
  pipeline_ = part(copy_ranks);
  data_parallel_group_ = part(sharing);
}

void member::barrier() const {
  if (ranks_ > 1) group_.barrier(stream());
}

// Gathers by rank and adds in rank order, as post_validation.hpp does, on any hosts.
double member::sum(double mine) const {
  if (ranks_ == 1) return mine;
  std::vector<double> all(static_cast<std::size_t>(ranks_));
  group_.all_gather(stream(), velo::tensor_view(&mine, {}),
                    velo::tensor_view(all.data(), {ranks_}));
  return std::accumulate(all.begin() + 1, all.end(), all[0]);
}

int member::max(int mine) const {
  const velo::tensor_view one(&mine, {});
  if (ranks_ > 1) group_.all_reduce(stream(), one, one, VELO_REDUCE_MAX);
  return mine;
}

void member::sum_data_parallel(double* values, std::int64_t count) const {
  const velo::tensor_view all(values, {count});
  if (is_data_parallel())
    (data_parallel_group_ ? data_parallel_group_ : group_).all_reduce(stream(), all, all);
}

// Sums integers: adding zeros keeps every bit.
void member::collect(float* pieces, std::int64_t count) const {
  const velo::tensor_view all(reinterpret_cast<std::int32_t*>(pieces), {count});
  if (ranks_ > 1) group_.reduce(stream(), 0, all, all.get());
}

void member::abort() const noexcept {
  for (const velo::group* each : {&group_, &pipeline_, &data_parallel_group_})
    if (*each) velo_group_abort(*each);
}

}  // namespace decoder
