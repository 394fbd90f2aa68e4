// Checks of velo_sharding_parameter against itself and the topology, field by field.
#include <algorithm>
#include <cstring>
#include <limits>

#include "comm/sharding/parameter.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/tensor/shape.hpp"

namespace velo::comm {

using core::concat;
using core::fail;
using core::number;
using core::text;

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 60;
constexpr std::int64_t most_blocks = 1 << 20;

struct axis_name {
  const char* axis;
  const char* family;
  bool dense, experts;
};
constexpr axis_name axes[] = {{"tp", "tp", true, false},         {"tp_x", "nd1-dim1", true, false},
                              {"tp_y", "nd1-dim2", true, false}, {"gtp", "gtp", true, false},
                              {"ep", "ep", false, true},         {"etp", "etp", false, true},
                              {"egtp", "egtp", false, true},     {"pp", "pp", true, true}};

const axis_name& axis_of(const char* given, bool experts, const char* field) {
  if (given == nullptr) fail(VELO_ERR_NULL, field, "an axis", "NULL");
  for (const axis_name& one : axes)
    if (std::strcmp(one.axis, given) == 0 && (experts ? one.experts : one.dense)) return one;
  fail(VELO_ERR_ARGUMENT, field,
       experts ? "ep, etp, egtp or pp: the axes of experts" : "tp, tp_x, tp_y, gtp or pp",
       text("%s", given[0] == 0 ? "\"\"" : given));
}

// The family of an axis; of one rank a group where the job has no such axis.
family places_of(const axis_name& axis, const topology& job, const char* field) {
  for (const family& one : job.families())
    if (one.name == axis.family) return one;
  if (std::strncmp(axis.axis, "tp_", 3) == 0)
    fail(VELO_ERR_ARGUMENT, field, "an axis of the topology, which has no tp_x", axis.axis);
  family none = job.families().front();  // gtp and egtp of size 1
  none.members = {};
  none.others = {};
  none.others.add({1, job.ranks(), job.ranks(), 1});
  return none;
}

void require(bool holds, const char* field, const char* expected, std::int64_t got) {
  if (!holds) fail(VELO_ERR_ARGUMENT, field, expected, number(got));
}

std::vector<axis_cut::block> read_blocks(const velo_sharding_cut& given, std::int64_t size,
                                         const text& field) {
  std::vector<axis_cut::block> blocks;
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < given.block_count; ++b) {
    const velo_sharding_block& one = given.blocks[b];
    const text at = concat(field, ".blocks[", b, "]");
    const std::int64_t units = one.units == 0 ? one.size : one.units;
    const std::int64_t repeat = one.repeat == 0 ? 1 : one.repeat;
    require(one.size >= 0 && one.size <= size - sum, concat(at, ".size"),
            concat("0 to ", size - sum, ", what is left of the dimension"), one.size);
    require(repeat >= 1, concat(at, ".repeat"), "0 or more", one.repeat);
    require(units <= most_elements, concat(at, ".units"), "at most 2^60", one.units);
    require(units >= 0 && units % repeat == 0, concat(at, ".units"),
            concat("a multiple of repeat, ", repeat), one.units);
    require(one.size == 0 || (units > 0 && one.size % (units / repeat) == 0), concat(at, ".units"),
            repeat == 1 ? concat("a divisor of size, ", one.size)
                        : concat("units / repeat a divisor of size, ", one.size),
            one.units);
    if (one.size > 0) blocks.push_back({one.size, units, repeat});
    sum += one.size;
  }
  require(sum == size, concat(field, ".blocks"), concat("sizes that add up to ", size), sum);
  return blocks;
}

std::vector<std::int64_t> read_bounds(const velo_sharding_cut& given, std::int64_t size,
                                      std::int64_t indices, const text& field) {
  require(given.bound_count == 2 * indices, concat(field, ".bound_count"),
          concat(2 * indices, ": begin and end of each index"), given.bound_count);
  std::vector<std::int64_t> bounds(given.bounds, given.bounds + given.bound_count);
  for (std::size_t i = 0; i < bounds.size(); i += 2)
    if (bounds[i] < 0 || bounds[i] > bounds[i + 1] || bounds[i + 1] > size)
      fail(VELO_ERR_ARGUMENT, concat(field, ".bounds[", i, "]"),
           concat("0 <= begin <= end <= ", size), concat(bounds[i], ", ", bounds[i + 1]));
  return bounds;
}

}  // namespace

parameter::parameter(const velo_sharding_parameter& desc, const topology& job)
    : name_(desc.name),
      bucket_(desc.bucket),
      experts_(desc.experts != 0),
      gradient_(desc.no_gradient == 0) {
  require(desc.experts == 0 || desc.experts == 1, "parameter.experts", "0 or 1", desc.experts);
  require(desc.bucket >= -1, "parameter.bucket", "-1 or more", desc.bucket);
  require(desc.no_gradient == 0 || desc.no_gradient == 1, "parameter.no_gradient", "0 or 1",
          desc.no_gradient);
  require(gradient_ || desc.bucket == -1, "parameter.bucket",
          "-1, because parameter.no_gradient is 1", desc.bucket);
  if (!gradient_ && desc.partial != nullptr)
    fail(VELO_ERR_ARGUMENT, "parameter.partial", "NULL, because parameter.no_gradient is 1",
         text("%s", desc.partial));
  for (const family& one : job.families())
    if (one.name == "pp") stage_ = one;
  read_shape(desc);
  read_stages(desc);
  read_cuts(desc, job);
  read_sums(desc, job);
  count_copies(job);
}

void parameter::read_shape(const velo_sharding_parameter& desc) {
  require(desc.ndim >= 0 && desc.ndim <= core::max_rank, "parameter.ndim", "0 to 8", desc.ndim);
  if (desc.shape == nullptr && desc.ndim > 0)
    fail(VELO_ERR_NULL, "parameter.shape", "ndim sizes", "NULL");
  std::int64_t elements = 1;
  for (int d = 0; d < desc.ndim; ++d) {
    const std::int64_t size = desc.shape[d];
    require(size >= 0 && (size == 0 || elements <= most_elements / size),
            concat("parameter.shape[", d, "]"), "0 or more, 2^60 elements at most", size);
    elements *= std::max<std::int64_t>(size, 1);
    shape_.push_back(size);
  }
}

void parameter::read_stages(const velo_sharding_parameter& desc) {
  const std::int64_t pp = stage_.size();
  require(desc.stage_count >= 0 && desc.stage_count <= 2, "parameter.stage_count", "0 to 2",
          desc.stage_count);
  if (desc.stages == nullptr && desc.stage_count > 0)
    fail(VELO_ERR_NULL, "parameter.stages", "stage_count stages", "NULL");
  for (std::int64_t i = 0; i < desc.stage_count; ++i) {
    const std::int64_t stage = desc.stages[i];
    require(stage >= 0 && stage < pp, concat("parameter.stages[", i, "]"), concat("0 to ", pp - 1),
            stage);
    require(i == 0 || desc.stages[0] == 0, "parameter.stages[0]", "0 before the last stage",
            desc.stages[0]);
    require(i == 0 || stage == pp - 1, concat("parameter.stages[", i, "]"),
            concat(pp - 1, ", the last stage, behind stage 0"), stage);
    if (stages_.empty() || stages_.back() != stage) stages_.push_back(stage);
  }
}

parameter::cut parameter::read_cut(const velo_sharding_cut& given, std::int64_t i,
                                   const topology& job) const {
  const text field = concat("parameter.cuts[", i, "]");
  const axis_name& axis = axis_of(given.axis, experts_, concat(field, ".axis"));
  const auto ndim = static_cast<std::int64_t>(shape_.size());
  require(given.dimension >= 0 && given.dimension < ndim, concat(field, ".dimension"),
          ndim == 0 ? "none: the parameter has no dimension" : concat("0 to ", ndim - 1),
          given.dimension);
  const std::int64_t size = shape_[core::at(given.dimension)];
  family places = places_of(axis, job, concat(field, ".axis"));
  const std::int64_t indices = places.size();
  require(given.block_count >= 0 && given.block_count <= most_blocks, concat(field, ".block_count"),
          "0 to 2^20", given.block_count);
  if (given.blocks == nullptr && given.block_count > 0)
    fail(VELO_ERR_NULL, concat(field, ".blocks"), "block_count blocks", "NULL");
  if (given.bounds == nullptr && given.bound_count != 0)
    fail(VELO_ERR_NULL, concat(field, ".bounds"), "bound_count bounds", "NULL");
  if (given.bounds != nullptr) {
    require(given.block_count == 0, concat(field, ".block_count"), "0 beside bounds",
            given.block_count);
    return {axis.axis, std::move(places),
            axis_cut(indices, read_bounds(given, size, indices, field))};
  }
  if (given.block_count == 0) {
    std::vector<axis_cut::block> whole;
    if (size > 0) whole.push_back({size, size, 1});
    return {axis.axis, std::move(places), axis_cut(indices, std::move(whole))};
  }
  return {axis.axis, std::move(places), axis_cut(indices, read_blocks(given, size, field))};
}

bool parameter::is_cut_by(const std::string& axis) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const cut& c) { return c.axis == axis; });
}

void parameter::read_cuts(const velo_sharding_parameter& desc, const topology& job) {
  require(desc.cut_count >= 0 && desc.cut_count <= core::max_rank, "parameter.cut_count", "0 to 8",
          desc.cut_count);
  if (desc.cuts == nullptr && desc.cut_count > 0)
    fail(VELO_ERR_NULL, "parameter.cuts", "cut_count cuts", "NULL");
  cut_of_.assign(shape_.size(), -1);
  for (std::int64_t i = 0; i < desc.cut_count; ++i) {
    const velo_sharding_cut& given = desc.cuts[i];
    cut made = read_cut(given, i, job);
    const text axis = concat("parameter.cuts[", i, "].axis");
    if (is_cut_by(made.axis))
      fail(VELO_ERR_ARGUMENT, axis, "an axis that cuts no other dimension", made.axis.c_str());
    const bool in_two = made.axis.compare(0, 3, "tp_") == 0;
    if (in_two ? is_cut_by("tp") : made.axis == "tp" && (is_cut_by("tp_x") || is_cut_by("tp_y")))
      fail(VELO_ERR_ARGUMENT, axis, "tp alone, or tp_x and tp_y", made.axis.c_str());
    if (made.axis == "pp" && !stages_.empty())
      fail(VELO_ERR_ARGUMENT, axis, "another axis: the parameter has stages", "pp");
    int& cut_here = cut_of_[core::at(given.dimension)];
    require(cut_here < 0, concat("parameter.cuts[", i, "].dimension"),
            "a dimension that no other axis cuts", given.dimension);
    cut_here = static_cast<int>(cuts_.size());
    cuts_.push_back(std::move(made));
  }
}

void parameter::read_sums(const velo_sharding_parameter& desc, const topology& job) {
  const auto add = [&](std::vector<std::string>& to, const char* name) {
    for (const family& one : job.families())
      if (one.name == name && one.size() > 1) to.emplace_back(name);
  };
  add(families_, experts_ ? "edp" : "dp-cp");
  add(families_, experts_ ? "egtp" : "gtp");
  if (desc.partial != nullptr) {
    const axis_name& axis = axis_of(desc.partial, experts_, "parameter.partial");
    places_of(axis, job, "parameter.partial");
    const bool of_tp = std::strcmp(axis.axis, "tp") == 0;
    const bool within = std::strncmp(axis.axis, "tp_", 3) == 0;
    const bool overlaps =
        (within && is_cut_by("tp")) || (of_tp && (is_cut_by("tp_x") || is_cut_by("tp_y")));
    if (is_cut_by(axis.axis) || overlaps || std::strcmp(axis.axis, "pp") == 0)
      fail(VELO_ERR_ARGUMENT, "parameter.partial", "an axis whose ranks hold copies", axis.axis);
    add(families_, axis.family);
  }
  if (is_cut_by("pp")) return;
  if (stages_.size() == 2) add(stage_families_, "embedding");
  if (stages_.empty()) add(stage_families_, "pp");
}

// Counts the copies of an element that one index of each cutting axis holds.
void parameter::count_copies(const topology& job) {
  copies_ = job.ranks() / stage_.size();
  for (const cut& one : cuts_)
    if (one.axis != "pp") copies_ /= one.elements.indices();
  if (!is_cut_by("pp"))
    copies_ *= stages_.empty() ? stage_.size() : static_cast<std::int64_t>(stages_.size());
}

}  // namespace velo::comm
