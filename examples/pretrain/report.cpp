// One function for each group of lines.
#include "examples/pretrain/report.hpp"

#include <algorithm>
#include <cstdlib>

#include "examples/decoder/ranks/context.hpp"
#include "examples/decoder/report/flops.hpp"
#include "examples/decoder/report/roofline.hpp"
#include "examples/pretrain/memory_budget.hpp"

namespace pretrain {
namespace {

const char* plural(std::size_t count) {
  return count == 1 ? "" : "s";
}

std::string scaled_bytes(std::uint64_t bytes) {
  return decoder::scaled_bytes(static_cast<std::int64_t>(bytes));
}

void say_peak(console& to, const trainer& of, std::int64_t peak) {
  // All ranks make these calls, in this order.
  const auto full = static_cast<int>(of.layers_with(VELO_RECOMPUTE_FULL));
  const auto selective = static_cast<int>(of.layers_with(VELO_RECOMPUTE_SELECTIVE));
  const auto activation = static_cast<int>(of.layers_with(VELO_RECOMPUTE_ACTIVATION));
  const auto norm = static_cast<int>(of.layers_with(VELO_RECOMPUTE_NORM));
  const auto block = static_cast<int>(of.layers_with(VELO_RECOMPUTE_FEED_FORWARD));
  to.say("memory %s promised, %s with room for holes; made again: %d layer(s),",
         decoder::scaled_bytes(peak).c_str(), decoder::scaled_bytes(with_margin(peak)).c_str(),
         full);
  to.say("       attention in %d, gating's output in %d, norms in %d, feed-forward blocks in %d",
         selective, activation, norm, block);
}

void say_ranks(console& to, const settings& values, const member& rank) {
  if (rank.ranks() == 1) return;
  if (std::getenv("OMPI_COMM_WORLD_RANK") && !std::getenv("OMPI_MCA_odls_base_sigkill_timeout"))
    to.say(
        "note   mpirun kills an interrupted run after 2 s; what takes longer to save\n"
        "       needs OMPI_MCA_odls_base_sigkill_timeout=30 in its environment");
  const auto windows = static_cast<long long>(values.data.batch / rank.copies());
  if (rank.holds_whole_model()) {
    to.say("ranks  %d, each with %lld of a micro-batch's windows", rank.ranks(), windows);
    return;
  }
  const bool one = rank.copies() == 1;
  const auto& p = values.parallel;
  to.say("ranks  %d, %d cop%s of the model with %lld of a micro-batch's windows,", rank.ranks(),
         rank.copies(), one ? "y" : "ies, each", windows);
  if (p.in_two())
    to.say("       matrices cut over %lld ranks, %lld by %lld, and activations both ways",
           static_cast<long long>(p.tp), static_cast<long long>(p.tp_x),
           static_cast<long long>(p.tp_y()));
  else if (p.tp > 1)
    to.say("       matrices cut over %lld ranks%s", static_cast<long long>(p.tp),
           p.sequence_parallel ? ", and the rows between them" : "");
  if (p.tp_y() > 1)
    to.say("       attention over %lld ranks: %s", static_cast<long long>(p.attention_ranks()),
           p.cp_algorithm.c_str());
  if (p.cp > 1)
    to.say("       windows cut over %lld ranks: %s", static_cast<long long>(p.cp),
           p.cp_algorithm.c_str());
  if (p.ep > 1)
    to.say("       experts dealt out to %lld ranks: %s", static_cast<long long>(p.ep),
           p.dispatcher.c_str());
  if (p.pp > 1) to.say("       layers cut over %d ranks: %s", rank.stages(), p.pipeline.c_str());
  if (p.sequence_splits > 1)
    to.say("       windows cut into %lld splits", static_cast<long long>(p.sequence_splits));
}

// Peaks of the purposes, which need not fall together, by the names that snapshots have.
void say_pool(console& to, const velo_pool_stats& all, bool optimizer_swapped, std::int64_t peak) {
  const std::string promised = peak ? ", " + decoder::scaled_bytes(peak) + " promised" : "";
  const auto peak_of = [&](velo_purpose of) { return scaled_bytes(all.purpose_peak[of]); };
  to.say("memory %s at the peak%s: parameter %s, gradient %s,",
         scaled_bytes(all.bytes_peak).c_str(), promised.c_str(),
         peak_of(VELO_PURPOSE_PARAMETER).c_str(), peak_of(VELO_PURPOSE_GRADIENT).c_str());
  to.say("       optimizer %s%s, activation %s, workspace %s",
         peak_of(VELO_PURPOSE_OPTIMIZER).c_str(),
         optimizer_swapped ? " to load and save and none in steps" : "",
         peak_of(VELO_PURPOSE_ACTIVATION).c_str(), peak_of(VELO_PURPOSE_WORKSPACE).c_str());
  to.say("       %s from the system, holes and all", scaled_bytes(all.bytes_reserved_peak).c_str());
}

void say_plan(console& to, const velo::plan& plan) {
  if (!plan) return;
  const velo_plan_stats found = plan.stats();
  const velo_plan_step last = plan.step();
  to.say("plan   %s for a step's buffers, %s the least; %llu of %llu at their addresses",
         scaled_bytes(found.height).c_str(), scaled_bytes(found.lower_bound).c_str(),
         static_cast<unsigned long long>(last.matched),
         static_cast<unsigned long long>(last.allocations));
}

void say_swap(console& to, const char* what, const swapper* of) {
  if (of == nullptr) return;
  const swapper::totals all = of->total();
  to.say("swap   %s: %s out, %s back, stalled %.1f s", what, scaled(all.out, "B").c_str(),
         scaled(all.in, "B").c_str(), all.stalled);
}

void say_documents(console& to, const settings& values, const corpus& text, const trainer& of) {
  const packing& packed = of.windows().packed();
  const auto rows = static_cast<double>(packed.windows() * values.data.sequence);
  const auto used = static_cast<double>(of.windows().targets(0, packed.windows()));
  to.say("       %zu documents in %lld windows, %.1f %% of them padding; %zu to validate with",
         text.training_ends.size(), static_cast<long long>(packed.windows()),
         100 * (1 - used / rows), text.validation_ends.size());
}

}  // namespace

std::string parameters_of(const trainer& of) {
  return scaled(static_cast<double>(of.weights().count())) + " parameters";
}

void introduce(console& to, const settings& values, const corpus& text, const trainer& of,
               const member& rank, std::int64_t peak, const machine_rates& machine) {
  const model_settings& m = values.model;
  to.say("model  %s in %s: %lld layers, hidden %lld, inner %lld,", parameters_of(of).c_str(),
         m.dtype.c_str(), static_cast<long long>(m.layers), static_cast<long long>(m.hidden),
         static_cast<long long>(m.has_experts() ? m.expert_width() : m.inner));
  if (m.has_experts())
    to.say("       %lld expert%s, %lld for each token%s", static_cast<long long>(m.experts),
           plural(static_cast<std::size_t>(m.experts)), static_cast<long long>(m.experts_per_token),
           m.shared_experts > 0 ? ", beside a shared one" : "");
  if (m.has_capacity())
    to.say("       %.15g times the mean of their choices, %s kept%s", m.capacity_factor,
           m.capacity_drop == "position" ? "the first" : "the most probable",
           m.capacity_by_rank ? " by each rank" : "");
  if (m.dense_layers > 0)
    to.say("       %lld layer%s without experts, inner %lld",
           static_cast<long long>(m.dense_layers), plural(static_cast<std::size_t>(m.dense_layers)),
           static_cast<long long>(m.inner));
  to.say("       %lld query heads, %lld for keys and values, %s head",
         static_cast<long long>(m.heads), static_cast<long long>(m.kv_heads),
         m.tied ? "tied" : "untied");
  if (m.kv_share > 0)
    to.say("       %lld layer%s with those of the layer before",
           static_cast<long long>(m.sharing_layers()),
           plural(static_cast<std::size_t>(m.sharing_layers())));
  to.say("data   %zu file%s: %.1f KiB to train on, %.1f KiB to validate with", text.files.size(),
         plural(text.files.size()), static_cast<double>(text.training.size()) / 1024,
         static_cast<double>(text.validation.size()) / 1024);
  if (text.binary_files > 0)
    to.say("       %zu binary file%s skipped", text.binary_files, plural(text.binary_files));
  if (of.windows().has_documents()) say_documents(to, values, text, of);
  to.say("to     %s", values.run.out.c_str());
  if (peak != 0) say_peak(to, of, peak);
  say_ranks(to, values, rank);
  const int threads = threads_of(rank.context());
  to.say("velo   %s, %d thread%s%s", isa_of(rank.context()).c_str(), threads,
         plural(static_cast<std::size_t>(threads)), rank.ranks() > 1 ? " a rank" : "");
  if (!values.run.measure) return;
  to.say("       this machine: %s at its peak, copies %s", scaled(machine.flops, "FLOP/s").c_str(),
         scaled(machine.memory[static_cast<std::size_t>(walk::copy)], "B/s").c_str());
}

step_work work_of_step(const settings& values, const machine_rates& machine) {
  const auto operations = step_operations(values.model, values.data, values.optimizer.narrow);
  const double roofline = machine.flops > 0 ? roofline_seconds(operations, machine) : 0;
  return {static_cast<double>(values.data.step_tokens()), step_flops(values.model, values.data),
          machine.flops, roofline, values.model.has_experts()};
}

void summarize_memory(console& to, const run_memory& memory, const trainer& of, std::int64_t peak) {
  say_pool(to, memory.stats(), of.swapped_optimizer() != nullptr, peak);
  say_plan(to, memory.plan());
  say_swap(to, "activations", of.swapped_activations());
  say_swap(to, "optimizer", of.swapped_optimizer());
  if (of.stages() != nullptr) say_swap(to, "late gradients", of.stages()->late_inputs());
}

}  // namespace pretrain
