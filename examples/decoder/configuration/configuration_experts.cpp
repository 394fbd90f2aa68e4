// Refuses settings of experts that contradict each other, and those that no layer with experts has.
#include <string>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/parallel/expert_parallel.hpp"

namespace decoder {

void configuration::check_experts() const {
  const auto& m = values.model;
  if (!m.has_experts()) {
    for (const char* name :
         {"experts_per_token", "expert_inner", "dense_layers", "shared_experts", "router",
          "router_normalize", "router_scale", "router_bias", "router_groups", "router_groups_kept",
          "balance_loss", "capacity_factor", "ep", "etp", "dispatcher", "expert_overlap"})
      require_unset(name, "is of a model with experts, not with", "experts");
    for (const char* name : {"routing_record", "routing_replay", "expert_picture"})
      require_unset(name, "is of a model with experts, not with", "experts");
    check_capacity();
    return;
  }
  constexpr std::int64_t most = 1 << 20;  // of all layers
  if (m.experts > most / m.layers)
    refuse("experts", "times layers must not exceed 2^20;", "layers");
  if (m.experts_per_token > m.experts) refuse("experts_per_token", "must not exceed", "experts");
  if (m.dense_layers >= m.layers) refuse("dense_layers", "must be less than", "layers");
  if (m.shared_width() > most)
    refuse("shared_experts",
           ("are as wide as " + std::to_string(m.shared_width()) + ", which must not exceed 2^20")
               .c_str());
  check_router();
  if (m.kv_share != 0)
    refuse("kv_share", "is of layers with a feed-forward block, not with", "experts");
  for (const char* name : {"routing_record", "routing_replay", "expert_picture"})
    if (!word(name).empty() && values.parallel.post_validation)
      refuse(name, "needs steps that are never undone, so not with", "post_validation");
  if (!values.run.routing_record.empty() && !values.run.routing_replay.empty())
    refuse("routing_record", "would record the choices that are replayed, so not with",
           "routing_replay");
  check_capacity();
  check_expert_layout();
  check_expert_ranks();
  check_expert_overlap();
}

void configuration::check_expert_overlap() const {
  const auto& p = values.parallel;
  const std::string& kind = p.expert_overlap;
  if (kind != "none" && kind != "shared" && kind != "fused")
    refuse("expert_overlap", "must be none, shared or fused");
  if (kind == "none") return;
  if (p.ep == 1)
    refuse("expert_overlap", "is of messages to experts on other ranks, so not with", "ep");
  if (p.cuts_experts())
    refuse("expert_overlap", "is of ranks with whole experts, so not with", "etp");
  if (kind != "fused") return;
  if (p.pp == 1)
    refuse("expert_overlap", "is of a forward and a backward pass in stages, so not with", "pp");
  if (p.pipeline != "dualpipev" && p.pipeline != "interleaved")
    refuse("expert_overlap", "is of the orders dualpipev and interleaved, not of", "pipeline");
  const char* const one = "goes through two micro-batches at once, so not with";
  if (values.memory.swap_activations != "off") refuse("expert_overlap", one, "swap_activations");
  if (values.memory.recompute == "dispatch") refuse("expert_overlap", one, "recompute");
}

// Choices are dropped, or rows added, so the number of an expert's rows differs from the choices.
void configuration::check_capacity() const {
  const auto& m = values.model;
  if (!m.has_capacity())
    for (const char* name : {"capacity_drop", "capacity_pad", "capacity_by_rank"})
      require_unset(name, "is of experts with a capacity, not with", "capacity_factor");
  if (m.capacity_drop != "probability" && m.capacity_drop != "position")
    refuse("capacity_drop", "must be probability or position");
  const char* const why = "is of ranks with a row for each choice, not with";
  if (m.has_capacity() && values.memory.plan) refuse("plan", why, "capacity_factor");
  if (m.has_capacity() && values.memory.memory_budget != 0)
    refuse("memory_budget", why, "capacity_factor");
}

void configuration::check_router() const {
  const auto& m = values.model;
  if (m.router != "softmax" && m.router != "sigmoid")
    refuse("router", "must be softmax or sigmoid");
  if (m.router_groups_kept > m.router_groups)
    refuse("router_groups_kept", "must not exceed", "router_groups");
  if (m.router_groups == 1) return;
  if (m.experts % m.router_groups != 0) refuse("router_groups", "must be a divisor of", "experts");
  const std::int64_t size = m.experts / m.router_groups;
  if (size < 2)
    refuse("router_groups", "leaves groups of one expert, but their two best count, with",
           "experts");
  if (m.experts_per_token > m.router_groups_kept * size)
    refuse("experts_per_token",
           ("must not exceed " + std::to_string(m.router_groups_kept * size) +
            ", the experts of the kept groups, with")
               .c_str(),
           "router_groups_kept");
}

void configuration::check_expert_layout() const {
  const auto& p = values.parallel;
  const auto& m = values.model;
  if (m.shared_experts > 0 && m.shared_width() < p.tp)
    refuse(
        "shared_experts",
        ("are as wide as " + std::to_string(m.shared_width()) + ", which must be at least").c_str(),
        "tp");
  if (p.in_two())
    refuse("tp_x", "cuts the columns of rows, which a router needs whole, so not with", "experts");
  if (p.pp == 1) return;
  if (p.pipeline == "seq1f1b")
    refuse("pipeline",
           "cuts windows, while a balance loss counts all rows of a micro-batch, so not with",
           "experts");
  if (p.pipeline == "dualpipe")
    refuse("pipeline", "has two ranks with the weights of a stage, so not with", "experts");
}

// Experts on several ranks: the number of a rank's rows differs from step to step.
void configuration::check_expert_ranks() const {
  const auto& p = values.parallel;
  if (p.etp > 1 && p.etp != p.tp) refuse("etp", "must be 0, 1 or", "tp");
  if (p.cuts_experts() && values.model.expert_width() < p.tp)
    refuse(values.model.expert_inner > 0 ? "expert_inner" : "inner", "must be at least", "tp");
  if (!dispatcher_kind(p.dispatcher))
    refuse("dispatcher", ("must be " + dispatcher_names()).c_str());
  if (p.ep == 1) {
    require_unset("dispatcher", "is of experts that are dealt out to ranks, not with", "ep");
    return;
  }
  if (values.model.experts % p.ep != 0) refuse("ep", "must be a divisor of", "experts");
  const char* const why = "is of ranks with as many rows in each step, not with";
  if (values.memory.plan) refuse("plan", why, "ep");
  if (values.memory.memory_budget != 0) refuse("memory_budget", why, "ep");
}

void configuration::require_expert_fit(std::int64_t ranks) const {
  const auto& p = values.parallel;
  const std::int64_t of_stage = ranks / p.pp;
  if (p.cuts_experts() && of_stage % (p.ep * p.tp) != 0)
    refuse("ep",
           ("times tp must divide the " + std::to_string(of_stage) +
            " ranks that share a stage, where each expert is cut by")
               .c_str(),
           "etp");
  if (of_stage % p.ep != 0)
    refuse("ep", ("must divide the " + std::to_string(of_stage) +
                  (of_stage == 1 ? " rank of a stage" : " ranks that share a stage"))
                     .c_str());
}

}  // namespace decoder
