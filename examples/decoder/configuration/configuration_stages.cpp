// Refuses settings of stages that contradict each other, or that no schedule has.
#include <string>
#include <utility>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "tools/velo/stage_layers.hpp"

namespace decoder {

void configuration::check_stages() const {
  const auto& p = values.parallel;
  const auto places = places_in(p.noop_layers);
  if (!places) refuse("noop_layers", "must be a list of places, like 0,7");
  const std::int64_t all = values.model.layers + static_cast<std::int64_t>(places->size());
  if (!places->empty() && places->back() >= all)
    refuse("noop_layers",
           ("must be places from 0 to " + std::to_string(all - 1) +
            ", of layers and empty places together, with")
               .c_str(),
           "layers");
  if (p.post_validation && !values.run.gradients.empty())
    refuse("gradients", "are gone when a step is known to be right, so not with",
           "post_validation");
  if (p.post_validation && values.model.tied)
    refuse("post_validation", "lets stages step that others wait for, so not with", "tied");
  if (p.post_validation && values.run.zero && p.pipeline == "dualpipe")
    refuse("post_validation",
           "lets the two ranks of a dualpipe stage step at different times, so not with", "zero");
  if (p.post_validation && values.memory.swap_optimizer != "off")
    refuse("post_validation", "keeps a copy of the optimizer's state here, not with",
           "swap_optimizer");
  if (p.in_advance && p.pipeline != "ripipe")
    refuse("in_advance", "is of ripipe, not with", "pipeline");
  if (!p.dw_detach && p.pipeline != "dualpipe" && p.pipeline != "dualpipev")
    refuse("dw_detach", "is of dualpipe and dualpipev, not with", "pipeline");
  if (p.nanopipe_swap && p.pipeline != "nanopipe")
    refuse("nanopipe_swap", "is of nanopipe, not with", "pipeline");
  check_sequence_splits();
  require_pipeline();
}

void configuration::check_sequence_splits() const {
  const auto& p = values.parallel;
  const char* const name = "sequence_splits";
  if (p.pipeline != "seq1f1b") return require_unset(name, "is of seq1f1b, not with", "pipeline");
  if (p.sequence_splits == 1) refuse(name, "must be 2 or more, with", "pipeline");
  if (p.sequence_splits > values.data.sequence) refuse(name, "must not exceed", "sequence");
  if (p.attention_ranks() > 1) check_shared_splits();
}

// Ranks that share windows have a part of each split.
void configuration::check_shared_splits() const {
  const auto& p = values.parallel;
  if (p.cp_algorithm != "all_gather" && p.cp_algorithm != "ulysses")
    refuse("cp_algorithm",
           "sends keys and values between ranks that hold parts of whole windows; all_gather and "
           "ulysses have splits of windows, and it must be one of them, with",
           "pipeline");
  if (p.cp_kv_cache != "none")
    refuse("cp_kv_cache", "is of whole windows; splits keep keys and values anyway, so not with",
           "pipeline");
  const std::int64_t rows = p.sequence_splits * p.attention_ranks();
  if (values.data.sequence < rows)
    refuse("sequence",
           ("must be at least " + std::to_string(rows) +
            ", a row of each split for each of the ranks that share it, with")
               .c_str(),
           "sequence_splits");
}

void configuration::require_listed(const stage_plan& plan) const {
  const command::stage_list::result& listed = plan.listed();
  if (listed.expected.empty()) return;
  const char* const name = "stage_layers";
  if (listed.got.empty()) refuse(name, ("must be " + listed.expected).c_str());
  const bool has_places = listed.is_sum && !values.parallel.noop_layers.empty();
  refuse(name,
         ("must have " + listed.expected +
          (has_places ? ", of layers and the places of noop_layers" : "") + ", not " + listed.got +
          ", with")
             .c_str(),
         listed.is_sum ? "layers" : "pp");
}

// Stages without a layer are for stage_layers to ask for.
void configuration::require_layers(const stage_plan& plan) const {
  require_listed(plan);
  const std::int64_t parts = plan.stages() / plan.chains();
  const bool asked = !values.parallel.stage_layers.empty();
  if (!asked && values.model.layers < parts)
    refuse("layers", ("must be at least " + std::to_string(parts) + ", the stages of").c_str(),
           "pipeline");
  for (int stage = 0; stage < parts; ++stage) {
    const stage_range held = plan.layers_of(stage);
    const std::string its = std::to_string(stage);
    if (held.count() == 0 && !asked)
      refuse("noop_layers", ("leaves stage " + its + " without a layer, with").c_str(), "layers");
    if (held.count() > 0 && values.model.shares_keys(held.first))
      refuse("kv_share",
             ("leaves layer " + std::to_string(held.first + 1) + ", with which stage " + its +
              " begins, without keys and values of its own, with")
                 .c_str(),
             "pp");
  }
}

// Translates velo's refusal of a schedule into one of a setting.
void configuration::require_pipeline() const {
  try {
    require_layers(stage_plan(values));
  } catch (const velo::error& e) {
    const std::pair<const char*, const char*> names[] = {
        {"desc.microbatches", "accumulation"}, {"desc.chunks", "vpp"}, {"desc.ranks", "pp"}};
    for (const auto& [field, name] : names)
      if (std::string(e.argument()) == field)
        refuse(name, (std::string("must be ") + e.expected() + ", with").c_str(), "pipeline");
    throw;
  }
}

}  // namespace decoder
