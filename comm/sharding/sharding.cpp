// Parameters by index and name, the ranges of a sharded optimizer, and the proof of a sharding.
#include "comm/sharding/sharding.hpp"

#include <algorithm>
#include <set>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"
#include "core/text/utf8.hpp"

namespace velo::comm {

using core::concat;
using core::fail;
using core::text;

namespace {

constexpr std::int64_t grain = 16;  // ranges of a bucket begin at multiples of it
constexpr std::int64_t most_elements = std::int64_t{1} << 60;

const family* find_family(const topology& job, const char* name) {
  for (const family& one : job.families())
    if (one.name == name) return &one;
  return nullptr;
}

}  // namespace

std::int64_t sharding::add(const velo_sharding_parameter& desc) {
  if (desc.name == nullptr) fail(VELO_ERR_NULL, "parameter.name", "a name", "NULL");
  if (desc.name[0] == 0) fail(VELO_ERR_ARGUMENT, "parameter.name", "a name", "\"\"");
  core::require_text(desc.name, "parameter.name");
  if (find(desc.name) >= 0)
    fail(VELO_ERR_ARGUMENT, "parameter.name", "another name than those added before",
         text("%s", desc.name));
  parameter made(desc, job_);
  const std::int64_t index = size();
  bucket* const shared =
      made.bucket() < 0 ? nullptr : &buckets_[{made.of_experts(), made.bucket()}];
  const std::int64_t elements = made.elements();
  if (shared != nullptr && elements > most_elements - shared->elements)
    fail(VELO_ERR_ARGUMENT, "parameter.bucket", "one of at most 2^60 elements together",
         core::number(made.bucket()));
  const auto place = index_.emplace(made.name(), index).first;
  try {
    if (shared != nullptr) shared->parameters.push_back(index);
    parameters_.push_back(std::move(made));
  } catch (...) {
    index_.erase(place);
    if (shared != nullptr && !shared->parameters.empty() && shared->parameters.back() == index)
      shared->parameters.pop_back();
    throw;
  }
  if (shared != nullptr) shared->elements += elements;
  return index;
}

const parameter& sharding::at(std::int64_t index) const {
  if (index < 0 || index >= size())
    fail(VELO_ERR_ARGUMENT, "parameter",
         size() == 0 ? text("an index; no parameter was added") : concat("0 to ", size() - 1),
         core::number(index));
  return parameters_[core::at(index)];
}

std::int64_t sharding::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? -1 : found->second;
}

const family& sharding::updaters(const parameter& of) const {
  const char* const whole = of.of_experts() ? "edp" : "dp-cp";
  const family* const slice = find_family(job_, of.of_experts() ? "intra-edp" : "intra-dp-cp");
  return slice != nullptr ? *slice : *find_family(job_, whole);
}

std::vector<std::int64_t> sharding::bucket_of(std::int64_t index) const {
  const parameter& own = at(index);
  if (own.bucket() < 0) return {index};
  return buckets_.at({own.of_experts(), own.bucket()}).parameters;
}

std::vector<span> sharding::ranges(const std::vector<std::int64_t>& bucket,
                                   std::int64_t rank) const {
  if (!at(bucket.front()).has_gradient()) return {{0, 0}};  // it has a bucket of its own
  std::vector<span> all;
  std::int64_t total = 0;
  for (const std::int64_t index : bucket) {
    const std::int64_t elements = parameters_[core::at(index)].part_of(rank).elements();
    all.push_back({total, total + elements});
    total += elements;
  }
  const family& among = updaters(at(bucket.front()));
  const membership place = among.find(rank);
  const std::int64_t share =
      core::round_up(core::ceil_div(total, among.size_of(place.group)), grain);
  const std::int64_t begin = std::min(total, place.position * share),
                     end = std::min(total, begin + share);
  for (span& one : all) {
    const std::int64_t first = one.begin, elements = one.size();
    one.begin = std::clamp<std::int64_t>(begin - first, 0, elements);
    one.end = std::clamp<std::int64_t>(end - first, 0, elements);
  }
  return all;
}

span sharding::range(std::int64_t index, std::int64_t rank) const {
  const std::vector<std::int64_t> bucket = bucket_of(index);
  const auto place = std::find(bucket.begin(), bucket.end(), index) - bucket.begin();
  return ranges(bucket, rank)[core::at(place)];
}

std::vector<span> sharding::ranges(std::int64_t rank) const {
  std::vector<span> all(parameters_.size());
  for (std::int64_t i = 0; i < size(); ++i)
    if (parameters_[core::at(i)].bucket() < 0) all[core::at(i)] = ranges({i}, rank).front();
  for (const auto& [number, shared] : buckets_) {
    if (shared.parameters.empty()) continue;
    const std::vector<span> own = ranges(shared.parameters, rank);
    for (std::size_t i = 0; i < own.size(); ++i) all[core::at(shared.parameters[i])] = own[i];
  }
  return all;
}

void sharding::fill(std::int64_t index, std::int64_t rank, velo_sharding_part& info) const {
  const parameter& of = at(index);
  const part own = of.part_of(rank);
  const std::vector<std::int64_t> shape = own.shape();
  info.ndim = static_cast<std::int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), info.shape);
  info.elements = own.elements();
  info.pieces = own.pieces();
  info.sums = static_cast<std::int64_t>(of.sums(own).size());
  info.copies = own.common_copies();
  const span updated = range(index, rank);
  info.range_begin = updated.begin, info.range_end = updated.end;
}

void sharding::check() const {
  std::set<std::string> proven, ranges_proven;
  for (std::int64_t i = 0; i < size(); ++i) {
    const parameter& one = parameters_[core::at(i)];
    if (proven.insert(one.likeness()).second) one.prove(job_.ranks());
    if (one.bucket() < 0 && one.has_gradient() && ranges_proven.insert(one.likeness()).second)
      check_ranges({i});
  }
  for (const auto& [number, shared] : buckets_)
    if (!shared.parameters.empty()) check_ranges(shared.parameters);
}

// The ranges of the ranks of a group follow each other and make up each part.
void sharding::check_ranges(const std::vector<std::int64_t>& bucket) const {
  const family& among = updaters(at(bucket.front()));
  std::vector<std::int64_t> next(bucket.size());
  for (std::int64_t group = 0; group < among.groups(); ++group) {
    std::fill(next.begin(), next.end(), 0);
    const auto require = [&](std::size_t i, std::int64_t rank, std::int64_t at_element) {
      if (at_element == next[i]) return;
      fail(VELO_ERR_ARGUMENT, text("%s", at(bucket[i]).name().c_str()),
           concat("rank ", rank, " to update elements from ", next[i], " on"),
           core::number(at_element));
    };
    std::int64_t last = 0;
    among.each(group, [&](std::int64_t rank) {
      const std::vector<span> all = ranges(bucket, rank);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].empty()) continue;
        require(i, rank, all[i].begin);
        next[i] = all[i].end;
      }
      last = rank;
    });
    for (std::size_t i = 0; i < bucket.size(); ++i)
      require(i, last, at(bucket[i]).part_of(last).elements());
  }
}

}  // namespace velo::comm
