// Refuses settings that contradict each other, or that a run of so many ranks cannot have.
#include <jansson.h>

#include <algorithm>
#include <utility>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
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
  if (m.hidden % m.heads) refuse("hidden", "must be a multiple of", "heads");
  if (m.heads % m.kv_heads) refuse("heads", "must be a multiple of", "kv_heads");
  if (m.head_dim() % 2)
    refuse("hidden", "divided by heads must be even for the rotary embedding;", "heads");
  if (m.dtype != "bf16" && m.dtype != "f32") refuse("dtype", "must be bf16 or f32");
  if (d.paths.empty()) refuse("paths", "must name a file or a directory");
  if (d.sequence * d.batch > (1LL << 31))
    refuse("batch", "times sequence must not exceed 2^31;", "sequence");
  const double kept = static_cast<double>(m.layers * (8 * m.hidden + 4 * m.inner)) *
                      static_cast<double>(d.sequence * d.batch);  // activations, roughly
  if (kept > 0x1p50) refuse("batch", "asks for more memory than there can be with", "layers");
  if (at("warmup").origin == "default") s.warmup = std::min(s.warmup, s.steps);
  if (s.warmup > s.steps) refuse("warmup", "must not exceed", "steps");
  if (r.stop_after > s.steps) refuse("stop_after", "must not exceed", "steps");
  if (r.out.empty()) refuse("out", "must name a directory");
  check_memory();
  check_narrow();
  drop_stages();
  check_parallel();
  if (r.transport != "auto" && r.transport != "local" && r.transport != "shm")
    refuse("transport", "must be auto, local or shm");
  if (r.ranks > 0) require_fit(r.ranks);
}

void configuration::require_fit(std::int64_t ranks) const {
  const std::string count = std::to_string(ranks);
  if (values.run.ranks != 0 && values.run.ranks != ranks)
    refuse("ranks", ("must be 0, or the " + count + " that were started").c_str());
  if (ranks % values.parallel.pp != 0)
    refuse("pp", ("must divide the " + count + (ranks == 1 ? " rank" : " ranks") +
                  "; --pp 1 gives each the whole model")
                     .c_str());
  const std::int64_t copies = ranks / values.parallel.pp;
  const std::string those = std::to_string(copies) + (copies == ranks ? " ranks" : " copies");
  if (values.data.batch % copies != 0)
    refuse("batch", ("must be a multiple of the " + those).c_str());
  if (ranks > 1 && !values.run.trace.empty())
    refuse("trace", ("is of one rank, not of " + count).c_str());
}

// The flag --pp 1 makes the settings of stages in a file or a checkpoint void.
void configuration::drop_stages() {
  parallel_settings& p = values.parallel;
  if (p.pp != 1 || at("pp").origin != "--pp") return;
  const auto is_flag = [&](const char* name) { return at(name).origin.rfind("--", 0) == 0; };
  if (!is_flag("vpp")) p.vpp = 0;
  if (!is_flag("timeline")) p.timeline.clear();
  if (!is_flag("in_advance")) p.in_advance = false;
  if (!is_flag("post_validation")) p.post_validation = false;
}

void configuration::check_parallel() const {
  const auto& p = values.parallel;
  const std::vector<std::string> kinds = pipelines();
  if (std::find(kinds.begin(), kinds.end(), p.pipeline) == kinds.end())
    refuse("pipeline",
           ("must be one of those that --help lists" + command::did_you_mean(p.pipeline, kinds))
               .c_str());
  if (p.pp == 1) {
    for (const char* name : {"vpp", "timeline", "in_advance", "post_validation"})
      if (at(name).origin != "default" && text(at(name)) != "0" && text(at(name)) != "\"\"" &&
          text(at(name)) != "false")
        refuse(name, "is of a model that is cut into stages, not with", "pp");
    return;
  }
  // These settings need a whole model on each rank.
  if (values.model.tied) refuse("tied", "would have one matrix on two ranks, with", "pp");
  if (values.memory.memory_budget != 0)
    refuse("memory_budget", "is of a whole model, not with", "pp");
  if (values.memory.swap_activations != "off")
    refuse("swap_activations", "is of a whole model, not with", "pp");
  if (!values.run.trace.empty()) refuse("trace", "is of a whole model, not with", "pp");
  if (p.post_validation && values.run.zero && p.pipeline == "dualpipe")
    refuse("post_validation",
           "lets the two ranks of a dualpipe stage step at different times, so not with", "zero");
  if (p.post_validation && values.memory.swap_optimizer != "off")
    refuse("post_validation", "keeps a copy of the optimizer's state here, not with",
           "swap_optimizer");
  if (p.in_advance && p.pipeline != "ripipe")
    refuse("in_advance", "is of ripipe, not with", "pipeline");
  if (p.pipeline == "seq1f1b")
    refuse("pipeline", "splits sequences, whose attention cannot add up gradients yet");
  require_pipeline();
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
  if (n.gradients && !values.run.trace.empty())
    refuse("trace", "has f32 gradients, so not with", "o2_gradient");
}

// Translates velo's refusal of a schedule into one of a setting.
void configuration::require_pipeline() const {
  try {
    const stage_plan plan(values);
    const std::int64_t parts = plan.stages() / plan.chains();
    if (values.model.layers < parts)
      refuse("layers", ("must be at least " + std::to_string(parts) + ", the stages of").c_str(),
             "pipeline");
  } catch (const velo::error& e) {
    const std::pair<const char*, const char*> names[] = {
        {"desc.microbatches", "accumulation"}, {"desc.chunks", "vpp"}, {"desc.ranks", "pp"}};
    for (const auto& [field, name] : names)
      if (std::string(e.argument()) == field)
        refuse(name, (std::string("must be ") + e.expected() + " with").c_str(), "pipeline");
    throw;
  }
}

void configuration::check_memory() const {
  const memory_settings& y = values.memory;
  const std::string& kind = y.recompute;
  const auto among = [](const std::string& word, std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!among(kind,
             {"none", "full", "block", "uniform", "selective", "activation", "norm", "adaptive"}))
    refuse("recompute",
           "must be none, full, block, uniform, selective, activation, norm or adaptive");
  if (kind == "adaptive" && y.memory_budget == 0)
    refuse("recompute", "needs a budget;", "memory_budget");
  for (const char* name : {"swap_activations", "swap_optimizer"}) {
    const std::string& where = **std::get_if<std::string*>(&at(name).value);
    if (!among(where, {"off", "host", "disk"})) refuse(name, "must be off, host or disk");
    if (where == "disk" && y.swap_dir.empty()) refuse(name, "needs a directory;", "swap_dir");
  }
  const std::pair<const char*, const char*> apart[] = {
      {"memory_trace", "log"}, {"memory_snapshot", "log"}, {"memory_snapshot", "memory_trace"}};
  for (const auto& [one, other] : apart) {
    const auto file = [&](const char* name) {
      return **std::get_if<std::string*>(&at(name).value);
    };
    if (!file(one).empty() && file(one) == file(other)) refuse(one, "must not be", other);
  }
  if (y.recompute_layers == 0) return;
  if (!among(kind, {"block", "uniform", "activation", "norm"}))
    refuse("recompute_layers", "means nothing with", "recompute");
  if (y.recompute_layers > values.model.layers)
    refuse("recompute_layers", "must not exceed", "layers");
}

}  // namespace decoder
