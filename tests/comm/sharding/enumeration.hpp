// The truth about a sharding, element by element, written from the rules of sharding.h alone,
// without families, segments or boxes; and random jobs and parameters to ask about.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "comm/sharding/shardings.hpp"
#include "tests/random.hpp"

namespace velo::testing {

using element = std::vector<std::int64_t>;  // its index in each dimension

// A job in the order tp-cp-ep-dp-pp, with the rank's index on every axis.
struct small_job {
  std::int64_t tp = 1, gtp = 1, cp = 1, dp = 1, pp = 1, etp = 1, ep = 1, egtp = 1, x = 0;
  std::int64_t instances = 1;  // of the sharded optimizer

  std::int64_t ranks() const { return tp * gtp * cp * dp * pp; }
  velo_topology_desc desc() const {
    velo_topology_desc made = sizes(tp, cp, ep, dp, pp);
    made.gtp = gtp, made.etp = etp, made.egtp = egtp, made.tp_x = x;
    made.instances = instances;
    return made;
  }
  std::int64_t size(const std::string& axis) const {
    if (axis == "tp_x") return x;
    if (axis == "tp_y") return tp / x;
    if (axis == "edp") return ranks() / pp / etp / ep / egtp;
    if (axis == "dp-cp") return dp * cp;
    const std::pair<const char*, std::int64_t> all[] = {{"tp", tp},   {"gtp", gtp}, {"pp", pp},
                                                        {"etp", etp}, {"ep", ep},   {"egtp", egtp}};
    for (const auto& [name, count] : all)
      if (axis == name) return count;
    FAIL("no axis " << axis);
    return 0;
  }
  std::int64_t index(const std::string& axis, std::int64_t rank) const {
    if (axis == "tp") return rank % tp;
    if (axis == "tp_x") return rank % tp % x;
    if (axis == "tp_y") return rank % tp / x;
    if (axis == "gtp") return rank / tp % gtp;
    if (axis == "dp-cp") return rank / tp / gtp % (cp * dp);
    if (axis == "pp") return rank / (ranks() / pp);
    if (axis == "etp") return rank % etp;
    if (axis == "ep") return rank / etp % ep;
    if (axis == "egtp") return rank / etp / ep % egtp;
    return rank / etp / ep / egtp % size("edp");
  }
};

// The indices on an axis of n that hold an element of a dimension: units dealt out one by one.
inline std::set<std::int64_t> holders_of(const described_parameter::cut_text& cut, std::int64_t n,
                                         std::int64_t size, std::int64_t at) {
  std::set<std::int64_t> all;
  if (!cut.bounds.empty()) {
    for (std::int64_t i = 0; i < n; ++i)
      if (cut.bounds[static_cast<std::size_t>(2 * i)] <= at &&
          at < cut.bounds[static_cast<std::size_t>(2 * i + 1)])
        all.insert(i);
    return all;
  }
  std::vector<velo_sharding_block> blocks = cut.blocks;
  if (blocks.empty()) blocks.push_back({size, 0, 0});
  for (const velo_sharding_block& b : blocks) {
    if (at >= b.size) {
      at -= b.size;
      continue;
    }
    const std::int64_t units = b.units == 0 ? b.size : b.units;
    const std::int64_t repeat = b.repeat == 0 ? 1 : b.repeat;
    const std::int64_t chunk = at / (b.size / (units / repeat));
    std::int64_t unit = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < units / n + (i < units % n ? 1 : 0); ++k, ++unit)
        if (unit / repeat == chunk) all.insert(i);
    return all;
  }
  return all;
}

class enumeration {
 public:
  enumeration(const small_job& job, const described_parameter& of) : job_(job), of_(of) {}

  bool holds(std::int64_t rank, const element& e) const {
    const std::vector<std::int64_t>& stages = of_.held_by_stages();
    const std::int64_t stage = job_.index("pp", rank);
    if (!stages.empty() && std::find(stages.begin(), stages.end(), stage) == stages.end())
      return false;
    for (const auto& cut : of_.cuts()) {
      const auto d = static_cast<std::size_t>(cut.dimension);
      const std::set<std::int64_t> all = holders_of(cut, job_.size(cut.axis), of_.shape()[d], e[d]);
      if (all.count(job_.index(cut.axis, rank)) == 0) return false;
    }
    return true;
  }

  // All elements, the last dimension's fastest; those of a rank in the order of its own tensor.
  std::vector<element> elements() const {
    std::vector<element> all = {{}};
    for (const std::int64_t size : of_.shape()) {
      std::vector<element> longer;
      for (const element& e : all)
        for (std::int64_t i = 0; i < size; ++i) {
          longer.push_back(e);
          longer.back().push_back(i);
        }
      all = std::move(longer);
    }
    return all;
  }
  std::vector<element> elements(std::int64_t rank) const {
    std::vector<element> own;
    for (element& e : elements())
      if (holds(rank, e)) own.push_back(std::move(e));
    return own;
  }

 private:
  const small_job& job_;
  const described_parameter& of_;
};

// A job of at most 64 ranks.
template <class Random>
small_job random_job(Random& random) {
  small_job job;
  const std::int64_t few[] = {1, 1, 2, 2, 3, 4};
  do {
    job.tp = random.pick(few), job.cp = random.pick(few), job.dp = random.pick(few);
    job.pp = random.pick(few), job.gtp = random.one_in(4) ? 2 : 1;
  } while (job.ranks() > 64);
  const std::int64_t stage = job.ranks() / job.pp;
  do {
    job.etp = random.pick(few), job.ep = random.pick(few), job.egtp = random.one_in(4) ? 2 : 1;
  } while (stage % (job.etp * job.ep * job.egtp) != 0);
  const std::int64_t edp = stage / (job.etp * job.ep * job.egtp);
  if (job.dp * job.cp % 2 == 0 && edp % 2 == 0 && random.one_in(2)) job.instances = 2;
  if (job.tp > 1 && random.one_in(2)) job.x = job.tp == 4 && random.one_in(2) ? 2 : job.tp;
  return job;
}

// Blocks of a dimension, whose size they decide.
template <class Random>
std::vector<velo_sharding_block> random_blocks(Random& random, std::int64_t& size) {
  std::vector<velo_sharding_block> blocks;
  size = 0;
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    const auto chunks = static_cast<std::int64_t>(1 + random.below(5));
    const auto repeat = static_cast<std::int64_t>(1 + random.below(3));
    const auto each = static_cast<std::int64_t>(1 + random.below(2));
    blocks.push_back({chunks * each, chunks * repeat, repeat});
    size += chunks * each;
  }
  return blocks;
}

// The axes that may cut a parameter, each once.
template <class Random>
std::vector<std::string> random_axes(Random& random, const small_job& job, bool experts) {
  std::vector<std::string> axes = experts ? std::vector<std::string>{"etp", "ep", "egtp"}
                                          : std::vector<std::string>{"tp", "gtp"};
  if (!experts && job.x > 0 && random.one_in(2)) axes = {"tp_x", "tp_y", "gtp"};
  if (random.one_in(4)) axes.emplace_back("pp");
  return axes;
}

// A parameter of a given shape or of any, cut at random.
template <class Random>
described_parameter random_parameter(Random& random, const small_job& job, std::string name,
                                     const std::vector<std::int64_t>* given = nullptr) {
  const bool experts = random.one_in(3);
  std::vector<std::string> axes = random_axes(random, job, experts);
  struct chosen {
    std::string axis;
    std::vector<velo_sharding_block> blocks;
  };
  std::vector<std::int64_t> shape;
  std::vector<chosen> cuts;
  for (std::size_t d = given != nullptr ? given->size() : random.below(4); d > 0; --d) {
    auto size =
        given != nullptr ? (*given)[shape.size()] : static_cast<std::int64_t>(random.below(9));
    chosen cut;
    if (!axes.empty() && random.chance(70)) {
      const std::size_t at = random.below(axes.size());
      cut.axis = axes[at];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
      if (given == nullptr && random.one_in(2)) cut.blocks = random_blocks(random, size);
      if (given != nullptr && size > 0 && random.one_in(2)) cut.blocks = {{size, 2 * size, 2}};
    }
    shape.push_back(size);
    cuts.push_back(std::move(cut));
  }
  described_parameter made(std::move(name), shape);
  bool by_stage = false;
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    if (cuts[d].axis.empty()) continue;
    made.cut(static_cast<std::int64_t>(d), cuts[d].axis, cuts[d].blocks);
    by_stage = by_stage || cuts[d].axis == "pp";
  }
  if (experts) made.experts();
  if (!by_stage && random.one_in(2))
    made.stages(random.one_in(2) ? std::vector<std::int64_t>{0, job.pp - 1}
                                 : std::vector<std::int64_t>{static_cast<std::int64_t>(
                                       random.below(static_cast<std::uint64_t>(job.pp)))});
  if (random.one_in(2)) made.bucket(static_cast<std::int64_t>(random.below(2)));
  return made;
}

}  // namespace velo::testing
