// Refuses settings that contradict each other, or that a run of so many ranks cannot have.
#include <jansson.h>

#include <algorithm>
#include <utility>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/parallel/model_parallel.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/ranks/profile.hpp"
#include "tools/velo/closest_name.hpp"

namespace decoder {

// A checkpoint writes every setting as JSON: settings that are no UTF-8 could never be saved.
void configuration::require_utf8() const {
  const auto is_utf8 = [](const std::string& text) {
    json_t* made = json_stringn(text.data(), text.size());
    json_decref(made);
    return made != nullptr;
  };
  for (const option& each : options_) {
    bool valid = true;
    if (auto string = std::get_if<std::string*>(&each.value)) valid = is_utf8(**string);
    if (auto list = std::get_if<std::vector<std::string>*>(&each.value))
      valid = std::all_of((*list)->begin(), (*list)->end(), is_utf8);
    if (!valid) fail("%s: expected UTF-8, got other bytes", each.origin.c_str());
  }
}

void configuration::check() {
  auto& [m, d, o, s, y, p, r] = values;
  require_utf8();
  check_attention();
  if (m.kv_share == 1)
    refuse("kv_share", "leaves no layer with keys and values of its own; must be 0, or 2 or more");
  if (m.kv_share > m.layers) refuse("kv_share", "must not exceed", "layers");
  if (m.dtype != "bf16" && m.dtype != "f32") refuse("dtype", "must be bf16 or f32");
  if (d.paths.empty() || std::find(d.paths.begin(), d.paths.end(), "") != d.paths.end())
    refuse("paths", "must name a file or a directory");
  if (d.documents != "false" && d.documents != "true" && d.documents != "lines")
    refuse("documents", "must be false, true or lines");
  if (d.sequence * d.batch > (1LL << 31))
    refuse("batch", "times sequence must not exceed 2^31;", "sequence");
  const std::int64_t of_experts = m.experts_per_token * m.expert_width() + m.shared_width(),
                     width = m.has_experts() ? of_experts : m.inner;
  const double kept = static_cast<double>(m.layers) *
                      (8 * static_cast<double>(m.hidden) + 4 * static_cast<double>(width)) *
                      static_cast<double>(d.sequence * d.batch);  // activations, roughly
  if (kept > 0x1p50) refuse("batch", "asks for more memory than there can be with", "layers");
  if (yields_to_steps("warmup")) s.warmup = std::min(s.warmup, s.steps);
  if (s.warmup > s.steps) refuse("warmup", "must not exceed", "steps");
  if (r.stop_after > s.steps) refuse("stop_after", "must not exceed", "steps");
  if (r.out.empty()) refuse("out", "must name a directory");
  drop_parts();
  check_memory();
  check_profile();
  check_narrow();
  check_experts();
  check_parallel();
  if (r.transport != "auto" && r.transport != "local" && r.transport != "shm")
    refuse("transport", "must be auto, local or shm");
  if (r.ranks > 0) require_fit(r.ranks);
}

bool configuration::is_flag(const char* name) const {
  return at(name).origin.rfind("--", 0) == 0;
}

bool configuration::yields_to_steps(const char* name) const {
  return at(name).origin == "default" || (is_flag("steps") && !is_flag(name));
}

void configuration::check_profile() {
  run_settings& r = values.run;
  if (r.profile.empty()) {
    for (const char* name : {"profile_start", "profile_end", "profile_level", "profile_ranks"})
      require_unset(name, "is of a profile, which --profile DIR asks for");
    return;
  }
  const std::int64_t steps = values.schedule.steps;
  if (yields_to_steps("profile_start")) r.profile_start = std::min(r.profile_start, steps);
  if (yields_to_steps("profile_end"))
    r.profile_end = std::max(std::min(r.profile_end, steps), r.profile_start);
  if (r.profile_start > steps) refuse("profile_start", "must not exceed", "steps");
  if (r.profile_start > r.profile_end) refuse("profile_start", "must not exceed", "profile_end");
  if (r.profile_end > steps) refuse("profile_end", "must not exceed", "steps");
  if (!names_ranks(r.profile_ranks)) refuse("profile_ranks", "must be all, or a list like 0,2");
}

void configuration::require_fit(std::int64_t ranks) const {
  const std::string count = std::to_string(ranks);
  if (values.run.ranks != 0 && values.run.ranks != ranks)
    refuse("ranks", ("must be 0, or the " + count + " that were started").c_str());
  const auto& p = values.parallel;
  const std::int64_t of_copy = p.ranks_of_copy();
  if (ranks % of_copy != 0) {
    const char* name = p.tp > 1 ? "tp" : p.cp > 1 ? "cp" : "pp";
    const bool alone = of_copy == std::max({p.tp, p.cp, p.pp});
    const std::string those = " the " + count + (ranks == 1 ? " rank" : " ranks");
    const std::string why =
        alone ? "must divide" + those + "; --" + name + " 1 gives each the whole model"
              : "makes copies of tp * cp * pp = " + std::to_string(of_copy) +
                    " ranks, which must divide" + those;
    refuse(name, why.c_str());
  }
  require_expert_fit(ranks);
  const std::int64_t copies = ranks / of_copy;
  const std::string those = std::to_string(copies) + (copies == ranks ? " ranks" : " copies");
  if (values.data.batch % copies != 0)
    refuse("batch", ("must be a multiple of the " + those).c_str());
  if (!values.run.profile.empty() && !are_ranks_below(values.run.profile_ranks, ranks))
    refuse("profile_ranks", ("must name ranks below " + count).c_str());
  if (ranks > 1 && !values.run.trace.empty())
    refuse("trace", ("is of one rank, not of " + count).c_str());
}

namespace {

std::vector<const char*> context_settings() {
  return {"cp_algorithm", "cp_window",      "cp_ulysses",
          "cp_kv_cache",  "cp_kv_interval", "cp_kv_gather"};
}

std::vector<const char*> capacity_settings() {
  return {"capacity_drop", "capacity_pad", "capacity_by_rank"};
}

std::vector<const char*> stage_settings() {
  return {"pipeline", "stage_layers", "noop_layers", "vpp",           "sequence_splits",
          "timeline", "in_advance",   "dw_detach",   "nanopipe_swap", "post_validation"};
}

std::vector<const char*> settings_of_other_kinds(const std::string& kind) {
  std::vector<const char*> all;
  if (kind != "seq1f1b") all.push_back("sequence_splits");
  if (kind != "ripipe") all.push_back("in_advance");
  if (kind != "nanopipe") all.push_back("nanopipe_swap");
  if (kind != "dualpipe" && kind != "dualpipev") all.push_back("dw_detach");
  return all;
}

// Whether the stages are those that stage_layers lists. Other reasons for which there may be no
// such stages are for check_stages to name.
bool fits_stages(const settings& values) {
  try {
    return stage_plan(values).listed().expected.empty();
  } catch (const velo::error&) {
    return true;
  }
}

// Whether the kind of schedule can give a rank vpp stages. Other reasons for which there may be no
// such schedule are for check_stages to name.
bool takes_chunks(const settings& values) {
  try {
    const stage_plan plan(values);
  } catch (const velo::error& e) {
    return std::string(e.argument()) != "desc.chunks";
  }
  return true;
}

}  // namespace

// The flag --pp 1 makes the settings of stages in a file or a checkpoint void; so do --tp 1 and
// --cp 1 theirs, and --pipeline those of other kinds. Ranks along y use the settings of cp, too; so
// a flag --tp or --tp_x that leaves no such ranks drops them, where cp is 1. Other stages have no
// use for the layers of those before.
void configuration::drop_parts() {
  const auto is_one = [&](const char* size) { return is_flag(size) && text(at(size)) == "1"; };
  const auto drop = [&](const std::vector<const char*>& names) {
    for (const char* name : names)
      if (!is_flag(name)) reset(name);
  };
  const bool takes_y = is_flag("tp_x") || (is_flag("tp") && values.parallel.in_two());
  if (is_one("tp"))
    drop({"tp_x", "etp", "sequence_parallel", "tp_slices", "distribute_saved_activations",
          "recompute_communication_level"});
  if (is_one("cp") || (takes_y && values.parallel.attention_ranks() == 1)) drop(context_settings());
  if (is_one("pp")) drop(stage_settings());
  if (is_one("ep")) drop({"dispatcher", "expert_overlap"});
  if (is_flag("capacity_factor") && !values.model.has_capacity()) drop(capacity_settings());
  if (is_flag("pipeline")) {
    drop(settings_of_other_kinds(values.parallel.pipeline));
    if (values.parallel.vpp != 0 && !takes_chunks(values)) drop({"vpp"});
  }
  const bool changes = is_flag("pp") || is_flag("pipeline") || is_flag("vpp");
  if (changes && !fits_stages(values)) drop({"stage_layers"});
  const auto& p = values.parallel;
  const bool pairs = p.pp > 1 && (p.pipeline == "dualpipev" || p.pipeline == "interleaved");
  if (changes && p.expert_overlap == "fused" && !pairs) drop({"expert_overlap"});
}

// Refuses a setting that was set, other than to its default, although no part has use for it.
void configuration::require_unset(const char* name, const char* why, const char* size) const {
  const configuration untouched;
  if (text(at(name)) != text(untouched.at(name))) refuse(name, why, size);
}

void configuration::check_parallel() const {
  const auto& p = values.parallel;
  const std::vector<std::string> kinds = pipelines();
  if (std::find(kinds.begin(), kinds.end(), p.pipeline) == kinds.end())
    refuse("pipeline",
           ("must be one of those that --help lists" + command::did_you_mean(p.pipeline, kinds))
               .c_str());
  const std::pair<const char*, std::int64_t> sizes[] = {{"tp", p.tp}, {"cp", p.cp}, {"pp", p.pp}};
  for (const auto& [size, ranks] : sizes) {
    if (ranks == 1) continue;
    if (!values.run.trace.empty()) refuse("trace", "is of a whole model, not with", size);
  }
  constexpr std::int64_t most_ranks = 1024;
  if (p.ranks_of_copy() > most_ranks)
    refuse(p.cp > 1 ? "cp" : "tp", "makes a copy of more than 1024 ranks (tp * cp * pp), with",
           p.pp > 1 ? "pp" : "tp");
  check_tensor_parallel();
  check_context_parallel();
  if (p.pp > 1) return check_stages();
  for (const char* name : stage_settings())
    require_unset(name, "is of a model that is cut into stages, not with", "pp");
}

void configuration::check_tensor_parallel() const {
  const auto& p = values.parallel;
  const auto& m = values.model;
  if (p.tp == 1) {
    for (const char* name : {"tp_x", "sequence_parallel", "tp_slices"})
      require_unset(name, "is of ranks that share matrices, not with", "tp");
    return;
  }
  if (p.in_two()) check_two_dimensions();
  const char* const outputs = p.in_two() ? "tp_x" : "tp";
  const std::int64_t ranks = p.in_two() ? p.tp_x : p.tp;
  if (m.kv_heads < ranks) {  // several ranks have a head of keys
    if (ranks % m.kv_heads != 0) refuse("kv_heads", "must be at least, or a divisor of,", outputs);
    if (m.heads % ranks != 0)
      refuse("heads", "with fewer kv_heads than ranks must be a multiple of", outputs);
  }
  if (m.inner < ranks) refuse("inner", "must be at least", outputs);
  if (m.vocab < ranks) refuse("vocab", "must be at least", outputs);
}

void configuration::check_two_dimensions() const {
  const auto& p = values.parallel;
  if (p.tp % p.tp_x != 0) refuse("tp_x", "must be a divisor of", "tp");
  if (p.sequence_parallel)
    refuse("sequence_parallel", "is of matrices that are cut one way, not with", "tp_x");
  if (p.tp_slices != 0)
    refuse("tp_slices", "is of matrices that are cut one way, not with", "tp_x");
  if (values.memory.distribute_saved)
    refuse("distribute_saved_activations", "is of rows that all ranks have, not with", "tp_x");
  const auto at_least = [&](const std::string& ranks) { return "must be at least " + ranks; };
  if (values.model.hidden < p.tp_y())
    refuse("hidden", at_least(std::to_string(p.tp_y()) + ", which is tp / tp_x, with").c_str(),
           "tp_x");
  if (values.data.sequence < p.attention_ranks())
    refuse(
        "sequence",
        at_least(std::to_string(p.attention_ranks()) + ", which is cp * tp / tp_x, with").c_str(),
        "tp_x");
}

// Translates velo's refusal of a plan into one of a setting.
void configuration::check_context_parallel() const {
  const auto& p = values.parallel;
  const std::vector<std::string> kinds = {"ulysses",    "ring",     "hybrid",
                                          "all_gather", "adaptive", "hybrid_adaptive"};
  if (std::find(kinds.begin(), kinds.end(), p.cp_algorithm) == kinds.end())
    refuse("cp_algorithm",
           ("must be ulysses, ring, hybrid, all_gather, adaptive or hybrid_adaptive" +
            command::did_you_mean(p.cp_algorithm, kinds))
               .c_str());
  if (p.cp_kv_cache != "none" && p.cp_kv_cache != "half" && p.cp_kv_cache != "full")
    refuse("cp_kv_cache", "must be none, half or full");
  if (p.attention_ranks() == 1) {
    for (const char* name : context_settings())
      require_unset(name, "is of ranks that share windows, not with", "cp");
    return;
  }
  if (p.cp_window != 1 && p.cp_algorithm != "ring" && p.cp_algorithm != "hybrid")
    refuse("cp_window", "is of ring and hybrid, not with", "cp_algorithm");
  const bool hybrid = p.cp_algorithm == "hybrid" || p.cp_algorithm == "hybrid_adaptive";
  if (p.cp_ulysses != 1 && !hybrid)
    refuse("cp_ulysses", "is of hybrid and hybrid_adaptive, not with", "cp_algorithm");
  check_keys();
  if (values.data.sequence < p.cp) refuse("sequence", "must be at least", "cp");
  const std::string other_rows =
      std::string("is of ranks with as many rows in each step, not with ") +
      (p.cp > 1 ? "cp" : "tp_x") + " and";
  const bool are_uneven = values.data.has_documents() && p.sequence_splits == 1;
  if (are_uneven && values.memory.plan) refuse("plan", other_rows.c_str(), "documents");
  if (are_uneven && values.memory.memory_budget != 0)
    refuse("memory_budget", other_rows.c_str(), "documents");
  require_sequence_plan();
}

// The settings of keys and values: what is kept of them, and who gets which.
void configuration::check_keys() const {
  const auto& p = values.parallel;
  const bool rings = p.cp_algorithm == "ring" || p.cp_algorithm == "hybrid",
             hybrid = p.cp_algorithm == "hybrid" || p.cp_algorithm == "hybrid_adaptive";
  if (p.cp_kv_cache != "none" && !rings && p.cp_algorithm != "ulysses")
    refuse("cp_kv_cache", "is of ring, hybrid and ulysses, not with", "cp_algorithm");
  if (p.cp_kv_interval > 0 && p.cp_kv_cache == "none")
    refuse("cp_kv_interval", "is of a cache, not with", "cp_kv_cache");
  if (p.cp_kv_interval >= values.model.layers) refuse("cp_kv_interval", "must be below", "layers");
  if (p.cp_kv_gather && hybrid && p.cp_ulysses == 1)
    refuse("cp_kv_gather", "is of neighbors that exchange heads, not with", "cp_ulysses");
  if (p.cp_kv_gather && !hybrid && p.cp_algorithm != "ulysses")
    refuse("cp_kv_gather", "is of ulysses, hybrid and hybrid_adaptive, not with", "cp_algorithm");
}

// Each tensor rank has a plan of its own heads; the last one has the fewest.
void configuration::require_sequence_plan() const {
  const auto& p = values.parallel;
  holding held = holding::all(values.model);
  held.tensor_ranks = static_cast<int>(p.tp);
  held.tensor_rank = held.tensor_ranks - 1;
  held.tensor_x = static_cast<int>(p.tp_x);
  const part_widths widths = weight_layout(values.model, held).widths;
  try {
    make_sequence_plan(values, widths);
  } catch (const velo::error& e) {
    refuse_plan(e.argument(), e.expected(), widths.heads);
    throw;
  }
}

// Names the setting for which there is no plan of a rank's heads, and the size that counts.
void configuration::refuse_plan(const std::string& field, const std::string& wanted,
                                std::int64_t heads) const {
  const auto& p = values.parallel;
  const bool ulysses = p.cp_algorithm == "ulysses";
  if (field == "desc.ulysses") refuse_ranks("cp_ulysses", "must be a divisor of", 1);
  if (field == "desc.window")
    refuse_ranks("cp_window",
                 p.attention_ranks() / p.cp_ulysses % p.cp_window != 0 ? "must be a divisor of"
                                                                       : "must be less than",
                 p.cp_ulysses);
  if (field == "desc.heads" && heads < (ulysses ? p.attention_ranks() : p.cp_ulysses)) {
    const std::string why =
        "leaves " + std::to_string(heads) + " on a rank, which must be at least";
    ulysses ? refuse_ranks("heads", why, 1) : refuse("heads", why.c_str(), "cp_ulysses");
  }
  for (const char* name : {"cp", "heads", "sequence"})
    if (field == std::string("desc.") + name)
      refuse(name, ("must be " + wanted + ", with").c_str(), "cp_algorithm");
}

// Refuses a setting because of the ranks that share attention, or of their ring, where neighbors
// exchange heads: "cp = 4", "4, which is cp / cp_ulysses, with cp_ulysses = 2".
void configuration::refuse_ranks(const char* name, const std::string& why,
                                 std::int64_t neighbors) const {
  const auto& p = values.parallel;
  const bool along_y = p.tp_y() > 1;
  if (!along_y && neighbors == 1) refuse(name, why.c_str(), "cp");
  const std::string ranks = std::to_string(p.attention_ranks() / neighbors),
                    product = std::string(along_y ? "cp * tp / tp_x" : "cp") +
                              (neighbors > 1 ? " / cp_ulysses" : "");
  refuse(name, (why + " " + ranks + ", which is " + product + ", with").c_str(),
         neighbors > 1 ? "cp_ulysses" : "tp_x");
}

void configuration::check_narrow() const {
  const narrow_settings& n = values.optimizer.narrow;
  const std::pair<const char*, bool> all[] = {
      {"reuse_fp32_param", n.masters}, {"o2_optimizer", n.moments}, {"o2_gradient", n.gradients}};
  for (const auto& [name, on] : all) {
    if (!on) continue;
    if (values.model.dtype != "bf16") refuse(name, "is of a bf16 model, not with", "dtype");
    if (name != all[2].first && values.memory.swap_optimizer != "off")
      refuse(name, "keeps state in 16 bits, and only that of f32 is swapped, so not with",
             "swap_optimizer");
  }
  for (const char* name : {"trace", "gradients"})
    if (n.gradients && !(*std::get<std::string*>(at(name).value)).empty())
      refuse(name, "has f32 gradients, so not with", "o2_gradient");
}

}  // namespace decoder
