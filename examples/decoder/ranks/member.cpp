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

// A part of a group, by its ranks; empty where this rank is alone, unless `is_made` then, too.
// desc: the whole's.
velo::group part_of(const velo::group& whole, velo_group_desc desc, const char* label,
                    const std::vector<std::int32_t>& ranks, bool is_made = false) {
  desc.label = label;
  const auto count = static_cast<std::int32_t>(ranks.size());
  return count == 1 && !is_made ? velo::group() : whole.part(ranks.data(), count, &desc);
}

// This rank's parts of a job, by the names that velo topology gives to families of ranks.
class families {
 public:
  families(const velo::group& whole, const velo_group_desc& desc_of_whole,
           const parallel_settings& how, int copies)
      : whole_(whole), desc_(desc_of_whole), rank_(velo_group_info(whole.info()).rank) {
    velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
    desc.tp = how.tp, desc.cp = how.cp, desc.pp = how.pp, desc.dp = copies;
    desc.tp_x = how.tp_x;
    desc.ep = how.ep, desc.etp = how.ranks_of_expert();
    topology_ = velo::topology::create(desc);
  }

  // The ranks of this rank's group; it is in one.
  std::vector<std::int32_t> ranks(const char* family) const {
    const std::int32_t most = velo_group_info(whole_.info()).size;
    std::vector<std::int32_t> all(static_cast<std::size_t>(most));
    const std::int64_t group = topology_.place(family, rank_).group;
    all.resize(static_cast<std::size_t>(topology_.group(family, group, all.data(), most)));
    return all;
  }

  // Alone where the family has no group with this rank.
  member::part part(const char* family, bool is_made = false) const {
    const velo_topology_place at = topology_.place(family, rank_);
    if (at.group < 0) return {};
    const std::vector<std::int32_t> all = ranks(family);
    return {part_of(whole_, desc_, family, all, is_made), static_cast<int>(at.position),
            static_cast<int>(all.size())};
  }

  // This rank and its neighbors in the family's group, which is cut into runs of `count` ranks.
  member::part neighbors(const char* family, std::int64_t count) const {
    const std::int64_t position = topology_.place(family, rank_).position;
    const std::vector<std::int32_t> all = ranks(family);
    const auto first = all.begin() + position / count * count;
    return {part_of(whole_, desc_, "copies", {first, first + count}),
            static_cast<int>(position % count), static_cast<int>(count)};
  }

 private:
  const velo::group& whole_;
  const velo_group_desc desc_;
  const int rank_;
  velo::topology topology_;
};

}  // namespace

member::member(const settings& values, bool leads, velo_pool_kind kind)
    : threads_(values.run.threads),
      timeout_ns_(values.run.timeout * 1'000'000'000),
      memory_(leads ? values.memory : without_records(values.memory), kind),
      context_(make_context(values.run, memory_)) {
  if (values.parallel.tp_slices > 0)
    context_.set("overlap.slices", ("*:" + std::to_string(values.parallel.tp_slices)).c_str());
}

velo_group_desc member::group_desc() const {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.label = "job";
  desc.timeout_ns = timeout_ns_;
  return desc;
}

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

void member::split(const parallel_settings& how, std::int64_t ranks_of_key, bool ties_ends,
                   bool has_experts) {
  ranks_of_copy_ = static_cast<int>(how.ranks_of_copy());
  const families all(group_, group_desc(), how, copies());
  stages_ = all.part("pp");
  tensor_ = all.part("tp");
  context_ranks_ = all.part("cp");
  if ((in_two_ = how.in_two())) {
    tensor_x_ = all.part("nd1-dim1");
    tensor_y_ = all.part("nd1-dim2");
    attention_ = all.part("tp-y-cp");
  }
  if (ranks_of_key > 1) key_ranks_ = all.neighbors(in_two_ ? "nd1-dim1" : "tp", ranks_of_key);
  if (ties_ends) tied_ends_ = all.part("embedding");
  if (has_experts) {
    expert_ranks_ = all.part("ep");
    expert_copies_ = all.part("edp", true);
    stage_ranks_ = all.part("tp-dp-cp");
  }
  share_weights(all.ranks("dp-cp"), how.pipeline == "dualpipe");
}

void member::share_weights(std::vector<std::int32_t> ranks, bool with_mirror) {
  const int mirror = (stages() - 1 - 2 * stage()) * ranks_of_stage();
  const std::size_t here = ranks.size();
  for (std::size_t i = 0; with_mirror && mirror != 0 && i < here; ++i)
    ranks.push_back(ranks[i] + mirror);
  std::sort(ranks.begin(), ranks.end());
  data_parallel_ranks_ = static_cast<int>(ranks.size());
  leads_data_parallel_ = ranks[0] == rank_;
  data_parallel_group_ = part_of(group_, group_desc(), "dp-cp", ranks);
}

void member::barrier() const {
  if (ranks_ > 1) group_.barrier(stream());
}

// A number of each of several ranks, in rank order.
template <class T>
std::vector<T> member::gathered(T mine) const {
  std::vector<T> all(static_cast<std::size_t>(ranks_));
  group_.all_gather(stream(), velo::tensor_view(&mine, {}),
                    velo::tensor_view(all.data(), {ranks_}));
  return all;
}

// Adds in rank order, as post_validation.hpp does, on any hosts.
double member::sum(double mine) const {
  if (ranks_ == 1) return mine;
  const std::vector<double> all = gathered(mine);
  return std::accumulate(all.begin() + 1, all.end(), all[0]);
}

std::int64_t member::max(std::int64_t mine) const {
  if (ranks_ == 1) return mine;
  const std::vector<std::int64_t> all = gathered(mine);
  return *std::max_element(all.begin(), all.end());
}

void member::sum_at_leader(std::int64_t* values, std::int64_t count) const {
  const velo::tensor_view all(values, {count});
  if (ranks_ > 1) group_.reduce(stream(), 0, all, all.get());
}

void member::sum_stage(double* values, std::int64_t count) const {
  const velo::tensor_view all(values, {count});
  if (is_data_parallel())
    (data_parallel_group_ ? data_parallel_group_ : group_).all_reduce(stream(), all, all);
  if (tensor_.group) tensor_.group.all_reduce(stream(), all, all);
}

// Sums integers: adding zeros keeps every bit.
void member::collect(float* pieces, std::int64_t count) const {
  const velo::tensor_view all(reinterpret_cast<std::int32_t*>(pieces), {count});
  if (ranks_ > 1) group_.reduce(stream(), 0, all, all.get());
}

std::vector<std::string> member::collect_texts(const std::string& mine) const {
  if (ranks_ == 1) return {mine};
  const auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks_));
  group_.all_gather(stream(), velo::tensor_view(&size, {}),
                    velo::tensor_view(sizes.data(), {ranks_}));
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::string all(leads() ? static_cast<std::size_t>(total) : 0, ' ');
  const velo_dtype bytes = velo::dtype<std::uint8_t>;
  const velo::tensor_view from(mine.data(), bytes, {size}),
      to(all.data(), bytes, {static_cast<std::int64_t>(all.size())});
  group_.gather(stream(), 0, from, sizes.data(), nullptr, leads() ? to.get() : nullptr);
  std::vector<std::string> texts;
  for (std::size_t i = 0, at = 0; leads() && i < sizes.size(); ++i) {
    texts.push_back(all.substr(at, static_cast<std::size_t>(sizes[i])));
    at += static_cast<std::size_t>(sizes[i]);
  }
  return texts;
}

void member::abort() const noexcept {
  for (const velo::group* each :
       {&group_, &stages_.group, &tensor_.group, &tensor_x_.group, &tensor_y_.group,
        &context_ranks_.group, &attention_.group, &key_ranks_.group, &tied_ends_.group,
        &expert_ranks_.group, &expert_copies_.group, &stage_ranks_.group, &data_parallel_group_})
    if (*each) velo_group_abort(*each);
}

}  // namespace decoder
