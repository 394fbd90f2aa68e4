// The choices whose values are combined in pairs: cuts of 8 ranks, algorithms, orders, recompute,
// and what else changes the work. A layout is a value of each choice; the first value of each is
// the default.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "examples/decoder/configuration/configuration.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace pairs {

struct value {
  std::string name;
  std::function<void(settings&)> set;
};
using choice = std::vector<value>;

// Numbers or words of one setting.
template <class T, class Get>
choice values_of(const char* name, const std::vector<T>& all, const Get& get) {
  choice made;
  for (const T& each : all) {
    std::string text = name;
    if constexpr (std::is_same_v<T, std::string>)
      text += " " + each;
    else
      text += " " + std::to_string(each);
    made.push_back({text, [each, get](settings& s) { get(s) = each; }});
  }
  return made;
}

inline choice algorithms() {
  choice made;
  for (const char* name :
       {"ring", "double ring", "ulysses", "hybrid", "all_gather", "adaptive", "hybrid_adaptive"})
    made.push_back({name, [is = std::string(name)](settings& s) {
                      s.parallel.cp_algorithm = is == "double ring" ? "ring" : is;
                      s.parallel.cp_window = is == "double ring" ? 2 : 1;
                      s.parallel.cp_ulysses = is.rfind("hybrid", 0) == 0 ? 2 : 1;
                    }});
  return made;
}

inline choice orders() {
  std::vector<std::string> kinds = {"1f1b"};
  for (const std::string& kind : decoder::pipelines())
    if (kind != "auto" && kind != kinds[0]) kinds.push_back(kind);
  choice made;
  for (const std::string& kind : kinds)
    made.push_back({kind, [kind](settings& s) {
                      s.parallel.pipeline = kind;
                      s.parallel.sequence_splits = kind == "seq1f1b" ? 3 : 1;
                      if (kind.rfind("dualpipe", 0) == 0)  // needs two micro-batches a rank
                        s.data.accumulation = std::max(s.data.accumulation, 2 * s.parallel.pp);
                    }});
  return made;
}

inline choice recomputes() {
  const std::pair<const char*, std::int64_t> all[] = {
      {"none", 0}, {"full", 0},  {"selective", 0}, {"activation", 0}, {"norm", 0},
      {"mlp", 0},  {"block", 3}, {"uniform", 1},   {"uniform", 2}};
  choice made;
  for (const auto& [kind, layers] : all) {
    const std::string name = std::string("recompute ") + kind;
    made.push_back({layers == 0 ? name : name + " " + std::to_string(layers),
                    [kind = kind, layers = layers](settings& s) {
                      s.memory.recompute = kind;
                      s.memory.recompute_layers = layers;
                    }});
  }
  return made;
}

// Heads in equal parts on 2, 4 and 8 ranks; in unequal parts on each of them; and fewer heads of
// keys than ranks.
inline choice heads() {
  const auto of = [](std::int64_t hidden, std::int64_t all, std::int64_t keys) {
    return
        [=](settings& s) { s.model.hidden = hidden, s.model.heads = all, s.model.kv_heads = keys; };
  };
  return {{"even heads", of(96, 8, 8)},
          {"uneven heads", of(108, 18, 9)},
          {"few heads of keys", of(96, 8, 2)}};
}

// Stages of unlike many layers, some without one. Layers come in pairs, since with kv_share 2 a
// stage begins with the first of two.
inline void set_uneven_stages(settings& s) {
  std::size_t stages = 1;
  try {
    const decoder::stage_plan even(s);
    stages = static_cast<std::size_t>(even.stages() / even.chains());
  } catch (const velo::error&) {  // there is no such schedule, which pretrain's checks say
  }
  std::vector<std::size_t> to = {1, 3, 5, 7};
  if (stages == 2) to = {0, 0, 0, 1};
  if (stages == 4) to = {1, 1, 2, 3};
  std::vector<int> counts(stages);
  for (const std::size_t stage : to) counts[stage % stages] += 2;
  for (const int count : counts) {
    if (!s.parallel.stage_layers.empty()) s.parallel.stage_layers += ',';
    s.parallel.stage_layers += std::to_string(count);
  }
}

inline std::vector<choice> cuts() {
  using numbers = std::vector<std::int64_t>;
  return {values_of(
              "tp", numbers{1, 2, 4, 8}, [](settings & s) -> auto& { return s.parallel.tp; }),
          values_of(
              "cp", numbers{1, 2, 4, 8}, [](settings & s) -> auto& { return s.parallel.cp; }),
          values_of(
              "pp", numbers{1, 2, 4, 8}, [](settings & s) -> auto& { return s.parallel.pp; }),
          values_of(
              "tp_x", numbers{0, 1, 2}, [](settings & s) -> auto& { return s.parallel.tp_x; })};
}

// What each cut has of its own, and what goes beside all of them.
inline std::vector<choice> ways() {
  using numbers = std::vector<std::int64_t>;
  using words = std::vector<std::string>;
  const std::vector<int> off_or_on{0, 1};
  return {
      values_of(
          "cache", words{"none", "half", "full"},
          [](settings & s) -> auto& { return s.parallel.cp_kv_cache; }),
      values_of(
          "gathered", off_or_on, [](settings & s) -> auto& { return s.parallel.cp_kv_gather; }),
      values_of(
          "rows cut", off_or_on,
          [](settings & s) -> auto& { return s.parallel.sequence_parallel; }),
      values_of(
          "slices", numbers{0, 2}, [](settings & s) -> auto& { return s.parallel.tp_slices; }),
      values_of(
          "zero", off_or_on, [](settings & s) -> auto& { return s.run.zero; }),
      values_of(
          "documents", words{"false", "lines"},
          [](settings & s) -> auto& { return s.data.documents; }),
      values_of(
          "tied", off_or_on, [](settings & s) -> auto& { return s.model.tied; }),
      values_of(
          "kv_share", numbers{0, 2}, [](settings & s) -> auto& { return s.model.kv_share; }),
      values_of(
          "swap", words{"off", "host"},
          [](settings & s) -> auto& { return s.memory.swap_activations; }),
      values_of(
          "level", numbers{1, 2}, [](settings & s) -> auto& { return s.memory.recompute_level; }),
      values_of(
          "saved in parts", off_or_on,
          [](settings & s) -> auto& { return s.memory.distribute_saved; })};
}

inline const std::vector<choice>& choices() {
  static const std::vector<choice> all = [] {
    std::vector<choice> made = cuts();
    for (choice each : {algorithms(), orders(), recomputes(), heads()}) made.push_back(each);
    for (const choice& each : ways()) made.push_back(each);
    // The stages are known by what comes before.
    made.push_back({{"even stages", [](settings&) {}}, {"uneven stages", set_uneven_stages}});
    return made;
  }();
  return all;
}

using chosen = std::vector<std::size_t>;            // of each choice, a value by its index
using place = std::pair<std::size_t, std::size_t>;  // a choice and its value
using pair_of_values = std::pair<place, place>;     // of two choices, the later one first

inline chosen defaults() {
  return chosen(choices().size());
}

inline const std::string& name_of(const place& of) {
  return choices()[of.first][of.second].name;
}

inline place place_of(const std::string& name) {
  for (std::size_t i = 0; i < choices().size(); ++i)
    for (std::size_t a = 0; a < choices()[i].size(); ++a)
      if (choices()[i][a].name == name) return {i, a};
  FAIL("no value is called " << name);
  std::abort();
}

inline std::string text_of(const chosen& which) {
  std::string all;
  for (std::size_t i = 0; i < which.size(); ++i)
    if (which[i] > 0) all += (all.empty() ? "" : ", ") + choices()[i][which[i]].name;
  return all;
}

// The model, text and steps that all layouts have in common.
inline settings base_model() {
  settings base = small_model();
  base.model.layers = 8;
  base.data.sequence = 40, base.data.accumulation = 8;
  // With documents the norms of step 20 differ by 1.5e-5 at 1e-3, even where only stages are cut.
  base.optimizer.learning_rate = 3e-4;
  return base;
}

// The layout of these choices for 8 ranks, or the words with which pretrain refuses it.
inline std::variant<settings, std::string> layout_of(const chosen& which) {
  decoder::configuration all;
  all.values = base_model();
  all.values.run.ranks = 8;
  all.values.data.paths = {"text"};
  for (std::size_t i = 0; i < which.size(); ++i) choices()[i][which[i]].set(all.values);
  try {
    all.check();
  } catch (const decoder::failure& refusal) {
    return std::string(refusal.what());
  }
  return all.values;
}

inline bool is_accepted(const chosen& which) {
  return std::holds_alternative<settings>(layout_of(which));
}

}  // namespace pairs
