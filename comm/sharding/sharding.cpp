// Parameters by index and name, the ranges of a sharded optimizer, and the proof of a sharding.
#include "comm/sharding/sharding.hpp"

#include <algorithm>
#include <set>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

using core::concat;
using core::fail;
using core::text;

namespace {

constexpr std::int64_t grain = 16;  // ranges of a bucket begin at multiples of it

const family* find_family(const topology& job, const char* name) {
  for (const family& one : job.families())
    if (one.name == name) return &one;
  return nullptr;
}

}  // namespace

std::int64_t sharding::add(const velo_sharding_parameter& desc) {
  if (desc.name == nullptr) fail(VELO_ERR_NULL, "parameter.name", "a name", "NULL");
  if (desc.name[0] == 0) fail(VELO_ERR_ARGUMENT, "parameter.name", "a name", "\"\"");
  if (find(desc.name) >= 0)
    fail(VELO_ERR_ARGUMENT, "parameter.name", "another name than those added before",
         text("%s", desc.name));
  parameter made(desc, job_);
  const auto place = index_.emplace(made.name(), size()).first;
  try {
    parameters_.push_back(std::move(made));
  } catch (...) {
    index_.erase(place);
    throw;
  }
  return place->second;
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

span sharding::range(std::int64_t index, std::int64_t rank) const {
  return range(index, rank, at(index).part_of(rank).elements());
}

// elements: of the rank's part
span sharding::range(std::int64_t index, std::int64_t rank, std::int64_t elements) const {
  if (elements == 0) return {0, 0};
  const parameter& own = at(index);
  std::int64_t before = 0, total = elements;
  for (std::int64_t i = 0; own.bucket() >= 0 && i < size(); ++i) {
    const parameter& other = parameters_[core::at(i)];
    if (i == index || other.bucket() != own.bucket() || other.of_experts() != own.of_experts())
      continue;
    const std::int64_t its = other.part_of(rank).elements();
    if (i < index) before += its;
    total += its;
  }
  const family& among = updaters(own);
  const membership place = among.find(rank);
  const std::int64_t share =
      core::round_up(core::ceil_div(total, among.size_of(place.group)), grain);
  const auto within = [&](std::int64_t position) {
    return std::clamp<std::int64_t>(position * share - before, 0, elements);
  };
  return {within(place.position), within(place.position + 1)};
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
  for (std::int64_t i = 0; i < info.pieces; ++i) {
    const std::int64_t copies = own.at(i).copies;
    if (i == 0) info.copies = copies;
    if (copies != info.copies) info.copies = 0;
  }
  const span updated = range(index, rank, info.elements);
  info.range_begin = updated.begin, info.range_end = updated.end;
}

void sharding::check() const {
  std::set<std::string> proven;
  for (std::int64_t i = 0; i < size(); ++i) {
    const parameter& one = parameters_[core::at(i)];
    const bool fresh = proven.insert(one.likeness()).second;
    if (fresh) one.prove(job_.ranks());
    if (fresh || one.bucket() >= 0) check_ranges(i);
  }
}

// The ranges of the ranks of a group follow each other and make up the part.
void sharding::check_ranges(std::int64_t index) const {
  const parameter& of = parameters_[core::at(index)];
  const family& among = updaters(of);
  for (std::int64_t group = 0; group < among.groups(); ++group) {
    std::int64_t next = 0, rank = among.rank_at(group, 0);
    const std::int64_t elements = of.part_of(rank).elements();
    among.each(group, [&](std::int64_t member) {
      const span own = range(index, member);
      if (own.empty()) return;
      if (own.begin != next)
        fail(VELO_ERR_ARGUMENT, text("%s", of.name().c_str()),
             concat("rank ", member, " to update elements from ", next, " on"),
             core::number(own.begin));
      next = own.end;
      rank = member;
    });
    if (next != elements)
      fail(VELO_ERR_ARGUMENT, text("%s", of.name().c_str()),
           concat("rank ", rank, " to update elements up to ", elements), core::number(next));
  }
}

}  // namespace velo::comm
