// Entries of velo/recompute.h.
#include "velo/recompute.h"

#include <algorithm>

#include "capi/src/allocator.hpp"
#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/handle/guard.hpp"
#include "core/stream/stream.hpp"
#include "core/text/utf8.hpp"
#include "memory/recompute/adaptive.hpp"
#include "memory/recompute/layers.hpp"
#include "memory/recompute/regions.hpp"

using namespace velo;
using core::fail;
using core::text;

namespace {

// The structs of ABI 1.0; later ones are longer.
constexpr std::uint32_t rule_size = 60;
constexpr std::uint32_t budget_size = 40;
constexpr std::uint32_t choice_size = 56;
constexpr std::uint32_t desc_size = 16;
constexpr std::uint32_t region_size = 88;
constexpr std::uint32_t stats_size = 48;
static_assert(sizeof(velo_recompute_rule) >= rule_size &&
              sizeof(velo_recompute_budget) >= budget_size &&
              sizeof(velo_recompute_choice) >= choice_size &&
              sizeof(velo_recompute_desc) >= desc_size &&
              sizeof(velo_recompute_region) >= region_size &&
              sizeof(velo_recompute_stats) >= stats_size);

constexpr std::int64_t most_modules = 1 << 20;
constexpr std::int64_t most_values = 1 << 20;  // limit of a region's inputs, and of its outputs

memory::regions& regions_of(velo_recompute handle) {
  auto& found = core::use<memory::regions>(handle, "recompute");
  found.require_not_asking();
  return found;
}

void require_stream(velo_stream stream) {
  if (stream != nullptr) core::use<core::stream>(stream, "stream");
}

void require_list(const void* list, std::int64_t count, const char* field) {
  if (count < 0 || count > most_values)
    fail(VELO_ERR_ARGUMENT, text("region.%s_count", field), core::concat("0 to ", most_values),
         core::number(count));
  if (list == nullptr && count > 0)
    fail(VELO_ERR_NULL, text("region.%s", field), text("a list of %s_count", field), "NULL");
}

velo_recompute_region read_region(const velo_recompute_region* given) {
  const velo_recompute_region defaults = VELO_RECOMPUTE_REGION_INIT;
  const velo_recompute_region region = capi::read_struct(given, region_size, "region", defaults);
  if (region.name == nullptr) fail(VELO_ERR_NULL, "region.name", "a name", "NULL");
  core::require_text(region.name, "region.name");
  if (region.restore == nullptr) fail(VELO_ERR_NULL, "region.restore", "a function", "NULL");
  require_list(region.inputs, region.input_count, "input");
  require_list(region.output_bytes, region.output_count, "output");
  for (std::int64_t i = 0; i < region.output_count; ++i)
    if (region.output_bytes[i] == 0)
      fail(VELO_ERR_ARGUMENT, core::concat("region.output_bytes[", i, "]"), "1 or more", "0");
  return region;
}

velo_recompute_rule read_rule(const velo_recompute_rule* given) {
  const velo_recompute_rule defaults = VELO_RECOMPUTE_RULE_INIT;
  return capi::read_struct(given, rule_size, "rule", defaults);
}

velo_recompute_budget read_budget(const velo_recompute_budget* given) {
  const velo_recompute_budget defaults = VELO_RECOMPUTE_BUDGET_INIT;
  const velo_recompute_budget budget = capi::read_struct(given, budget_size, "budget", defaults);
  constexpr std::uint64_t limit = std::uint64_t{1} << 63;
  const struct {
    const char* field;
    std::uint64_t value;
  } fields[] = {{"bytes", budget.bytes},
                {"fits", budget.fits},
                {"fails", budget.fails},
                {"step", budget.step}};
  for (const auto& f : fields)
    if (f.value >= limit)
      fail(VELO_ERR_ARGUMENT, text("budget.%s", f.field), "less than 2^63", core::number(f.value));
  if (budget.fails != 0 && budget.fits >= budget.fails)
    fail(VELO_ERR_ARGUMENT, "budget.fits", core::concat("less than budget.fails, ", budget.fails),
         core::number(budget.fits));
  return budget;
}

}  // namespace

extern "C" {

velo_status velo_recompute_layers(const velo_recompute_rule* rule, velo_recompute_layer* layers,
                                  int64_t capacity, int64_t* count) {
  return core::guard("velo_recompute_layers", [&] {
    const velo_recompute_rule asked = read_rule(rule);
    if (capacity < 0) fail(VELO_ERR_ARGUMENT, "capacity", "0 or more", core::number(capacity));
    if (layers == nullptr && capacity > 0)
      fail(VELO_ERR_NULL, "layers", "room for `capacity` layers", "NULL");
    const std::vector<velo_recompute_layer> all = memory::layers_of(asked);
    const auto known = static_cast<std::int64_t>(all.size());
    std::copy_n(all.begin(), std::min(known, capacity), layers);
    if (count != nullptr) *count = known;
  });
}

velo_status velo_recompute_choose(const velo_recompute_rule* rule,
                                  const velo_recompute_budget* budget,
                                  const velo_recompute_module* modules, int64_t count,
                                  int32_t* chosen, velo_recompute_choice* choice) {
  return core::guard("velo_recompute_choose", [&] {
    const velo_recompute_rule asked = read_rule(rule);
    const velo_recompute_budget within = read_budget(budget);
    if (count < 0 || count > most_modules)
      fail(VELO_ERR_ARGUMENT, "count", core::concat("0 to ", most_modules), core::number(count));
    if (modules == nullptr && count > 0) fail(VELO_ERR_NULL, "modules", "`count` modules", "NULL");
    if (chosen == nullptr && count > 0)
      fail(VELO_ERR_NULL, "chosen", "room for `count` numbers", "NULL");
    capi::struct_size(choice, choice_size, "choice");
    if (asked.method != VELO_RECOMPUTE_METHOD_ADAPTIVE)
      fail(VELO_ERR_ARGUMENT, "rule.method", "VELO_RECOMPUTE_METHOD_ADAPTIVE",
           text("%d", asked.method));
    const memory::adaptive_choice made = memory::choose_modules(asked, within, modules, count);
    std::copy(made.recomputed.begin(), made.recomputed.end(), chosen);
    capi::write_struct(choice, choice_size, "choice", made.numbers);
  });
}

velo_status velo_recompute_create(const velo_recompute_desc* desc, velo_recompute* recompute) {
  return core::guard("velo_recompute_create", [&] {
    capi::required(recompute, "recompute");
    const velo_recompute_desc asked = capi::read_struct(desc, desc_size, "desc", {});
    *recompute = core::handle_of(core::make_object<memory::regions>(
        nullptr, capi::read_allocator(asked.allocator, "desc.allocator")));
  });
}

void velo_recompute_destroy(velo_recompute recompute) {
  capi::destroy<memory::regions>("velo_recompute_destroy", recompute, "recompute",
                                 [](memory::regions& all) { all.require_idle(); });
}

velo_status velo_recompute_add(velo_recompute recompute, const velo_recompute_region* region,
                               velo_stream stream, int64_t* index) {
  return core::guard("velo_recompute_add", [&] {
    memory::regions& to = regions_of(recompute);
    const velo_recompute_region asked = read_region(region);
    require_stream(stream);
    capi::required(index, "index");
    *index = to.add(asked, stream);
  });
}

velo_status velo_recompute_get_output(velo_recompute recompute, int64_t region, int64_t output,
                                      void** memory) {
  return core::guard("velo_recompute_get_output", [&] {
    const memory::regions& from = regions_of(recompute);
    capi::required(memory, "memory");
    *memory = from.output(region, output);
  });
}

velo_status velo_recompute_release(velo_recompute recompute, int64_t region, velo_stream stream) {
  return core::guard("velo_recompute_release", [&] {
    memory::regions& all = regions_of(recompute);
    require_stream(stream);
    all.release(region, stream);
  });
}

velo_status velo_recompute_restore(velo_recompute recompute, int64_t region, velo_stream stream) {
  return core::guard("velo_recompute_restore", [&] {
    memory::regions& all = regions_of(recompute);
    require_stream(stream);
    all.restore(region, stream);
  });
}

velo_status velo_recompute_end(velo_recompute recompute, int64_t region, velo_stream stream) {
  return core::guard("velo_recompute_end", [&] {
    memory::regions& all = regions_of(recompute);
    require_stream(stream);
    all.end(region, stream);
  });
}

velo_status velo_recompute_get_stats(velo_recompute recompute, velo_recompute_stats* stats) {
  return core::guard("velo_recompute_get_stats", [&] {
    velo_recompute_stats now{};
    regions_of(recompute).fill(now);
    capi::write_struct(stats, stats_size, "stats", now);
  });
}
}
