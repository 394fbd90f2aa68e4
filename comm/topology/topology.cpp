// Layouts from sizes, and families from layouts. All fields are checked, in their order, before the
// first family is made, so no later arithmetic overflows or divides by zero.
#include "comm/topology/topology.hpp"

#include <algorithm>
#include <limits>

#include "core/failure.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

constexpr std::int64_t most_ranks = std::numeric_limits<std::int32_t>::max();

const char* order_of(const velo_topology_desc& desc) {
  return desc.order != nullptr ? desc.order : "tp-cp-ep-dp-pp";
}

struct named_size {
  const char* name;
  std::int64_t value;
};

// Returns the product. Requires that each size is at least 1 and the product less than 2^31.
std::int64_t product_of(std::initializer_list<named_size> sizes) {
  std::int64_t product = 1;
  for (const named_size& one : sizes) {
    const text field("desc.%s", one.name);
    if (one.value < 1) fail(VELO_ERR_ARGUMENT, field, "1 or more", core::number(one.value));
    if (one.value > most_ranks / product)
      fail(VELO_ERR_ARGUMENT, field,
           core::concat("at most ", most_ranks / product, ": a job has less than 2^31 ranks"),
           core::number(one.value));
    product *= one.value;
  }
  return product;
}

void require_divisor(const char* name, std::int64_t value, std::int64_t of, const char* of_what) {
  if (value >= 1 && value <= of && of % value == 0) return;
  fail(VELO_ERR_ARGUMENT, text("desc.%s", name), core::concat("a divisor of ", of_what, ", ", of),
       core::number(value));
}

}  // namespace

topology::topology(const velo_topology_desc& desc) {
  lay_out(desc);
  const std::int64_t cp = desc.cp, tp = desc.tp;
  require_divisor("instances", desc.instances, desc.dp * cp, "dp * cp");
  require_divisor("instances", desc.instances, experts_.of("edp").size, "edp");
  if (desc.hybrid != 0 && desc.dp * cp % 2 != 0)
    fail(VELO_ERR_ARGUMENT, "desc.hybrid", "0, or an even dp * cp", core::number(desc.dp * cp));
  require_levels(desc);
  require_divisor("cp_ulysses", desc.cp_ulysses, cp, "cp");
  if (desc.cp_ulysses > 1 && desc.cp_ulysses == cp)
    fail(VELO_ERR_ARGUMENT, "desc.cp_ulysses", "less than cp: a ring of 2 or more",
         core::number(desc.cp_ulysses));
  require_divisor("cp_window", desc.cp_window, cp / desc.cp_ulysses, "the ring, cp / cp_ulysses");
  if (desc.cp_window > 1 && desc.cp_window == cp / desc.cp_ulysses)
    fail(VELO_ERR_ARGUMENT, "desc.cp_window", "less than the ring, cp / cp_ulysses",
         core::number(desc.cp_window));
  if (desc.tp_x != 0) require_divisor("tp_x", desc.tp_x, tp, "tp");
  if (desc.tp_y != 0 && desc.tp_x == 0)
    fail(VELO_ERR_ARGUMENT, "desc.tp_y", "0 where tp_x is 0", core::number(desc.tp_y));
  if (desc.tp_y != 0) require_divisor("tp_y", desc.tp_y, tp, "tp");

  add_dense();
  add_experts();
  if (desc.instances > 1) add_instances(desc.instances);
  if (desc.cp_level_count > 0) add_levels(desc.cp_levels, desc.cp_level_count);
  if (desc.hybrid != 0) add_hybrid();
  add_context_parts(desc.cp_ulysses, desc.cp_window);
  if (desc.tp_x != 0) add_tensor_parts(desc.tp_x, desc.tp_y != 0 ? desc.tp_y : tp / desc.tp_x);
  if (desc.twins != 0) add_twins();
}

void topology::lay_out(const velo_topology_desc& desc) {
  const std::vector<std::string> order = read_order(order_of(desc));
  const std::int64_t stage =
      product_of(
          {{"tp", desc.tp}, {"cp", desc.cp}, {"dp", desc.dp}, {"pp", desc.pp}, {"gtp", desc.gtp}}) /
      desc.pp;
  const std::int64_t etp = desc.etp != 0 ? desc.etp : desc.tp;
  require_divisor("etp", etp, stage, "tp * cp * dp * gtp");
  require_divisor("ep", desc.ep, stage / etp, "tp * cp * dp * gtp / etp");
  require_divisor("egtp", desc.egtp, stage / etp / desc.ep, "tp * cp * dp * gtp / (etp * ep)");
  const std::int64_t edp = stage / etp / desc.ep / desc.egtp;

  struct axis_sizes {
    const char* word;
    const char* dense;  // nullptr: none
    std::int64_t dense_size;
    const char* expert;
    std::int64_t expert_size;
  };
  const axis_sizes axes[] = {{"tp", "tp", desc.tp, "etp", etp},
                             {"pp", "pp", desc.pp, "pp", desc.pp},
                             {"dp", "dp", desc.dp, "edp", edp},
                             {"ep", nullptr, 1, "ep", desc.ep},
                             {"cp", "cp", desc.cp, nullptr, 1}};
  const auto put = [&](const axis_sizes& one) {
    if (one.dense != nullptr) dense_.add(one.dense, one.dense_size);
    if (one.expert != nullptr) experts_.add(one.expert, one.expert_size);
    if (one.word == std::string_view("tp")) dense_.add("gtp", desc.gtp);
    if (one.word == std::string_view("ep")) experts_.add("egtp", desc.egtp);
  };
  for (const std::string& word : order)
    put(*std::find_if(std::begin(axes), std::end(axes),
                      [&](const axis_sizes& one) { return one.word == word; }));
  for (const axis_sizes& one : axes) {
    if (std::find(order.begin(), order.end(), one.word) != order.end()) continue;
    const bool dense = one.dense_size > 1;
    if (dense || one.expert_size > 1)
      fail(VELO_ERR_ARGUMENT, "desc.order",
           core::concat(one.word, " in it: ", dense ? one.dense : one.expert, " is ",
                        dense ? one.dense_size : one.expert_size),
           text("%.150s", order_of(desc)));
    put(one);
  }
  require_one_pipeline(desc);
}

// Requires that a rank's dense and expert layers belong to the same stage, with the same neighbors.
void topology::require_one_pipeline(const velo_topology_desc& desc) const {
  const std::int64_t dense = dense_.of("pp").stride, expert = experts_.of("pp").stride;
  if (desc.pp == 1) return;
  const text order("%.150s", order_of(desc));
  const bool last = read_order(order_of(desc)).back() == "pp";
  const std::int64_t edp = experts_.of("edp").size;
  if (!last && edp != desc.dp)
    fail(VELO_ERR_ARGUMENT, "desc.order",
         core::concat("pp last, or experts with the dp of dense layers, ", desc.dp, " (edp is ",
                      edp, ")"),
         order);
  if (dense != expert)
    fail(VELO_ERR_ARGUMENT, "desc.order",
         core::concat("the same stage for a rank's dense and expert layers: they are ", dense,
                      " and ", expert, " ranks apart from the next"),
         order);
}

void topology::require_levels(const velo_topology_desc& desc) const {
  std::int64_t rest = desc.cp;
  for (std::int64_t i = 0; i < desc.cp_level_count; ++i) {
    const std::int64_t size = desc.cp_levels[i];
    const bool last = i + 1 == desc.cp_level_count;
    if (size < 1 || rest % size != 0 || (last && size != rest))
      fail(VELO_ERR_ARGUMENT, core::concat("desc.cp_levels[", i, "]"),
           core::concat(last ? "what the others leave" : "a divisor of what those before leave",
                        ", ", rest, ": the product is cp, ", desc.cp),
           core::number(size));
    rest /= size;
  }
}

const family& topology::find(const char* name, family& combined) const {
  for (const family& one : families_)
    if (one.name == name) return one;
  const std::vector<std::string> words = words_of(std::string_view(name).substr(0, 64));
  const auto among = [&](const layout& of) {
    return std::all_of(words.begin(), words.end(), [&](const auto& w) { return of.has(w); });
  };
  std::vector<std::string> sorted = words;
  std::sort(sorted.begin(), sorted.end());
  const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  const layout* of = among(dense_) ? &dense_ : among(experts_) ? &experts_ : nullptr;
  if (of == nullptr || !once)
    fail(VELO_ERR_ARGUMENT, "family",
         "the name of a family there is, or axes of one layout: tp, gtp, cp, dp, pp, or etp, ep, "
         "egtp, edp, pp",
         text("%.150s", name));
  combined = of->over({words.begin(), words.end()});
  return combined;
}

void topology::fill(velo_topology_info& info) const {
  info.ranks = ranks();
  info.etp = experts_.of("etp").size;
  info.edp = experts_.of("edp").size;
  info.families = static_cast<std::int64_t>(families_.size());
}

void topology::fill(const family& of, velo_topology_family& info) const {
  info.groups = of.groups();
  info.size = of.size();
  info.twin_of = nullptr;
  for (const family& one : families_)
    if (!of.twin_of.empty() && one.name == of.twin_of) info.twin_of = one.name.c_str();
}

}  // namespace velo::comm
