// The tables of keys.
//
// A `section` is one object of a text. Each call reads one member or takes its default, checks it
// and notes the value; `finish` refuses members that no call read.
#include "sched/tune/job.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/failure.hpp"
#include "core/text/json.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/render/text.hpp"
#include "sched/schedule/kind_name.hpp"

namespace velo::sched::tune {
namespace {

using core::fail;
using core::json;
using core::text;

constexpr double gib = 1 << 30, mib = 1 << 20;
constexpr std::int64_t required = -1;  // where a key has no default
constexpr std::size_t most_choices = 64;

constexpr velo_tuning_recompute recomputes[] = {
    VELO_TUNING_RECOMPUTE_NONE, VELO_TUNING_RECOMPUTE_CORE, VELO_TUNING_RECOMPUTE_ACTIVATION,
    VELO_TUNING_RECOMPUTE_NORMS, VELO_TUNING_RECOMPUTE_FULL};
// The first of equally good ones is taken.
constexpr velo_sequence_kind cp_algorithms[] = {VELO_SEQUENCE_RING, VELO_SEQUENCE_ULYSSES,
                                                VELO_SEQUENCE_HYBRID, VELO_SEQUENCE_ALL_GATHER};
constexpr rearrange rearranges[] = {rearrange::index, rearrange::one_hot};
constexpr std::int32_t most_slices = 1024;         // of velo's operators
constexpr std::int32_t most_splits = 1024;         // of a sequence, as pretrain takes
constexpr std::int32_t most_context_ranks = 4096;  // of a sequence plan
constexpr velo_tuning_split splits[] = {VELO_TUNING_SPLIT_EVEN, VELO_TUNING_SPLIT_BALANCED};
std::string shown(double value) {
  std::string all;
  append_number(all, value);
  return all;
}

std::string shown(const json& value) {
  switch (value.kind()) {
    case json::type::integer:
      return std::to_string(value.integer());
    case json::type::real:
      return shown(value.real());
    case json::type::string:
      return std::string("\"") + value.string() + "\"";
    default:
      return value.kind_name();
  }
}

class section {
 public:
  // of: none if the text lacks the object.
  section(std::string path, std::optional<json> of, std::vector<assumption>& notes)
      : path_(std::move(path)), of_(std::move(of)), notes_(notes) {
    if (of_ && of_->kind() != json::type::object)
      fail(VELO_ERR_ARGUMENT, path_.c_str(), "an object", of_->kind_name());
  }

  bool given() const { return of_.has_value(); }

  section inner(const char* key) { return {path_ + "." + key, member(key), notes_}; }

  void word(const char* key, std::string& into) {
    if (const auto value = member(key)) {
      if (value->kind() != json::type::string) refuse(key, "a string", *value);
      into = value->string();
    }
    std::string quoted;
    core::append_json_string(quoted, into.c_str());
    note(key, quoted);
  }

  void flag(const char* key, bool& into) {
    if (const auto value = member(key)) {
      if (value->kind() != json::type::boolean) refuse(key, "true or false", *value);
      into = value->boolean();
    }
    note(key, into ? "true" : "false");
  }

  // instead: overrides the text; 0: no override.
  void count(const char* key, std::int64_t& into, std::int64_t otherwise, std::int64_t least,
             std::int64_t most, std::int64_t instead = 0) {
    if (const auto value = member(key)) {
      into = whole(key, *value, least, most);
    } else {
      if (otherwise == required && instead == 0)
        fail(VELO_ERR_ARGUMENT, named(key).c_str(), range(least, most), "nothing");
      into = otherwise;
    }
    if (instead != 0) into = instead;
    note(key, std::to_string(into));
  }

  double number(const char* key, double otherwise, double least, double most) {
    double found = otherwise;
    if (const auto value = member(key)) {
      const bool numeric =
          value->kind() == json::type::integer || value->kind() == json::type::real;
      const text expected("a number from %g to %g", least, most);
      if (!numeric) refuse(key, expected, *value);
      found = value->real();
      if (!(found >= least && found <= most)) refuse(key, expected, *value);
    }
    note(key, shown(found));
    return found;
  }

  void counts(const char* key, std::vector<std::int32_t>& into, std::int32_t most,
              std::int32_t least = 1) {
    if (const auto list = choices(key)) {
      into.clear();
      for (std::size_t i = 0; i < list->size(); ++i)
        into.push_back(
            static_cast<std::int32_t>(whole(element(key, i).c_str(), list->at(i), least, most)));
      require_distinct(key, into);
    }
    std::string all;
    for (const std::int32_t one : into) all += (all.empty() ? "" : ", ") + std::to_string(one);
    note(key, into.empty() ? "\"all\"" : "[" + all + "]");
  }

  // Reads a list of true and false as 1 and 0.
  void flags(const char* key, std::vector<std::int32_t>& into) {
    if (const auto list = choices(key)) {
      into.clear();
      for (std::size_t i = 0; i < list->size(); ++i) {
        const json one = list->at(i);
        if (one.kind() != json::type::boolean)
          refuse(element(key, i).c_str(), "true or false", one);
        into.push_back(one.boolean() ? 1 : 0);
      }
      require_distinct(key, into);
    }
    std::string all;
    for (const std::int32_t one : into)
      all += std::string(all.empty() ? "" : ", ") + (one == 1 ? "true" : "false");
    note(key, "[" + all + "]");
  }

  // Reads a list of choices by the names that `name` gives.
  template <class Choices, class Choice>
  void names(const char* key, const Choices& all, const char* (*name)(Choice),
             std::vector<Choice>& into) {
    if (const auto list = choices(key)) {
      into.clear();
      for (std::size_t i = 0; i < list->size(); ++i)
        into.push_back(choice_of(element(key, i).c_str(), all, name, list->at(i)));
      require_distinct(key, into);
    }
    std::string quoted;
    for (const Choice one : into)
      quoted += std::string(quoted.empty() ? "\"" : ", \"") + name(one) + "\"";
    note(key, "[" + quoted + "]");
  }

  // Refuses members that were not read.
  void finish() const {
    if (!of_) return;
    of_->each([&](const char* key, const json&) {
      const auto same = [&](std::string_view one) { return one == key; };
      if (std::any_of(read_.begin(), read_.end(), same)) return;
      std::string all;
      for (const std::string& one : read_) all += (all.empty() ? "" : ", ") + one;
      fail(VELO_ERR_ARGUMENT, named(key).c_str(), all.c_str(), "a key that is none of these");
    });
  }

  [[noreturn]] void refuse(const char* key, const char* expected, const json& got) const {
    fail(VELO_ERR_ARGUMENT, named(key).c_str(), expected, shown(got).c_str());
  }

  std::optional<json> member(const char* key) {
    read_.emplace_back(key);
    if (!of_ || !of_->has(key)) return std::nullopt;
    return of_->get(key);
  }

  std::string named(const char* key) const { return path_ + "." + key; }

 private:
  static std::string element(const char* key, std::size_t index) {
    return std::string(key) + "[" + std::to_string(index) + "]";
  }
  static text range(std::int64_t least, std::int64_t most) {
    return core::concat("a whole number from ", least, " to ", most);
  }
  std::int64_t whole(const char* key, const json& value, std::int64_t least,
                     std::int64_t most) const {
    if (value.kind() != json::type::integer || value.integer() < least || value.integer() > most)
      refuse(key, range(least, most), value);
    return value.integer();
  }

  template <class Choices, class Choice>
  Choice choice_of(const char* key, const Choices& all, const char* (*name)(Choice),
                   const json& value) const {
    std::string expected;
    for (const Choice one : all) {
      if (value.kind() == json::type::string && std::string_view(value.string()) == name(one))
        return one;
      expected += std::string(expected.empty() ? "" : ", ") + name(one);
    }
    refuse(key, expected.c_str(), value);
  }

  std::optional<json> choices(const char* key) {
    auto list = member(key);
    if (!list) return list;
    const text expected("an array of 1 to %zu", most_choices);
    if (list->kind() != json::type::array) refuse(key, expected, *list);
    if (list->size() < 1 || list->size() > most_choices)
      fail(VELO_ERR_ARGUMENT, named(key).c_str(), expected, text("one of %zu", list->size()));
    return list;
  }

  template <class Choice>
  void require_distinct(const char* key, const std::vector<Choice>& list) const {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (std::count(list.begin(), list.end(), list[i]) > 1)
        fail(VELO_ERR_ARGUMENT, named(key).c_str(), "each choice once",
             text("%s twice", element(key, i).c_str()));
  }

  void note(const char* key, const std::string& value) {  // as JSON
    notes_.push_back({named(key), value});
  }

  std::string path_;
  std::optional<json> of_;
  std::vector<assumption>& notes_;
  std::vector<std::string> read_;
};

void read_latent(section from, model& to) {
  if (!from.given()) return;
  from.count("q_rank", to.q_rank, 0, 0, 1 << 20);
  from.count("kv_rank", to.kv_rank, required, 1, 1 << 20);
  from.count("rope_dim", to.rope_dim, 0, 0, 1 << 16);
  from.count("value_dim", to.value_dim, to.head_dim, 1, 1 << 16);
  from.finish();
}

void read_experts(section from, model& to) {
  if (!from.given()) return;
  from.count("experts", to.experts, required, 1, 1 << 16);
  from.count("active", to.active, required, 1, to.experts);
  from.count("hidden", to.expert_hidden, required, 1, 1 << 22);
  from.count("shared_hidden", to.shared_hidden, 0, 0, 1 << 22);
  from.count("first", to.first_moe, 0, 0, to.layers);
  from.finish();
}

model read_model(section from) {
  model to;
  from.word("name", to.name);
  from.count("layers", to.layers, required, 1, 4096);
  from.count("hidden", to.hidden, required, 1, 1 << 20);
  from.count("heads", to.heads, required, 1, 1 << 16);
  from.count("kv_heads", to.kv_heads, to.heads, 1, to.heads);
  if (to.heads % to.kv_heads != 0)
    fail(VELO_ERR_ARGUMENT, from.named("kv_heads").c_str(),
         core::concat("a divisor of ", to.heads, " heads"), core::number(to.kv_heads));
  from.count("head_dim", to.head_dim, std::max<std::int64_t>(to.hidden / to.heads, 1), 1, 1 << 16);
  from.count("ffn_hidden", to.ffn_hidden, required, 1, 1 << 22);
  from.count("vocabulary", to.vocabulary, required, 1, 1 << 24);
  from.flag("gated", to.gated);
  from.flag("tied_embeddings", to.tied_embeddings);
  from.flag("dropout", to.dropout);
  from.flag("flash_attention", to.flash_attention);
  read_latent(from.inner("latent_attention"), to);
  read_experts(from.inner("moe"), to);
  from.finish();
  return to;
}

training read_training(section from, const model& network) {
  training to;
  from.count("global_batch", to.global_batch, required, 1, 1 << 20);
  from.count("sequence", to.sequence, required, 1, 1 << 24);
  from.count("zero", to.zero, to.zero, 0, 2);
  from.flag("sequence_parallel", to.sequence_parallel);
  if (!to.sequence_parallel && network.experts > 0)
    fail(VELO_ERR_ARGUMENT, from.named("sequence_parallel").c_str(), "true where there are experts",
         "false");
  from.count("parameter_bytes", to.parameter_bytes, to.parameter_bytes, 1, 8);
  from.count("gradient_bytes", to.gradient_bytes, to.gradient_bytes, 1, 8);
  from.count("optimizer_bytes", to.optimizer_bytes, to.optimizer_bytes, 0, 64);
  from.flag("fp8", to.fp8);
  to.imbalance = from.number("imbalance", to.imbalance, 1, 64);
  from.finish();
  return to;
}

profile read_profile(section from) {
  profile to;
  from.word("name", to.name);
  const double memory = from.number("memory_gib", 80, 0.001, 1e6) * gib;
  to.memory_bytes = std::floor(memory * from.number("memory_fraction", 0.94, 0.01, 1));
  to.workspace_bytes = from.number("workspace_gib", 2, 0, 1e6) * gib;
  to.bucket_bytes = from.number("bucket_mib", 40, 0, 1e6) * mib;
  to.group_bytes = from.number("group_mib", 16, 0, 1e6) * mib;
  to.peak_flops = from.number("peak_tflops", 312, 1e-6, 1e6) * 1e12;
  to.matmul_flops = to.peak_flops * from.number("matmul_efficiency", 0.6, 0.001, 1);
  const double fp8 = from.number("fp8_tflops", 2 * to.peak_flops / 1e12, 1e-6, 2e6) * 1e12;
  to.fp8_flops = fp8 * (to.matmul_flops / to.peak_flops);
  to.attention_flops = to.peak_flops * from.number("attention_efficiency", 0.45, 0.001, 1);
  to.memory_rate = from.number("memory_gb_per_s", 2000, 1e-3, 1e6) * 1e9;
  to.memory_rate *= from.number("memory_efficiency", 0.8, 0.001, 1);
  from.count("per_node", to.per_node, to.per_node, 1, 1 << 16);
  to.intra_rate = from.number("intra_gb_per_s", 300, 1e-3, 1e6) * 1e9;
  to.inter_rate = from.number("inter_gb_per_s", 25, 1e-3, 1e6) * 1e9;
  const double share = from.number("link_efficiency", 0.8, 0.001, 1);
  to.intra_rate *= share;
  to.inter_rate *= share;
  to.intra_latency = from.number("intra_latency_us", 5, 0, 1e6) * 1e-6;
  to.inter_latency = from.number("inter_latency_us", 10, 0, 1e6) * 1e-6;
  to.layer_seconds = from.number("layer_us", 20, 0, 1e6) * 1e-6;
  to.tp_overlap = from.number("tp_overlap", to.tp_overlap, 0, 1);
  to.cp_overlap = from.number("cp_overlap", to.cp_overlap, 0, 1);
  to.dp_overlap = from.number("dp_overlap", to.dp_overlap, 0, 1);
  to.fused_overlap = from.number("fused_overlap", to.fused_overlap, 0, 1);
  from.finish();
  return to;
}

std::vector<std::int32_t> powers_of_two(std::int64_t most) {
  std::vector<std::int32_t> all;
  for (std::int64_t one = 1; one <= most; one *= 2) all.push_back(static_cast<std::int32_t>(one));
  return all;
}

// Matrices are cut both ways in blocks of two matrices alone.
void require_two_matrices(const section& from, const space& to, const model& of) {
  const bool in_two = std::any_of(to.tp_x.begin(), to.tp_x.end(), [](auto x) { return x > 0; });
  if (in_two && (of.experts > 0 || of.kv_rank > 0))
    fail(VELO_ERR_ARGUMENT, from.named("tp_x").c_str(),
         "[0] where there are experts or latent attention", "more");
}

// keep: overrides the text; 0: no override.
space read_space(section from, const job& training_job, std::int32_t keep) {
  constexpr std::int32_t most = 1 << 16;
  space to;
  to.tp = powers_of_two(std::min(training_job.profile.per_node, training_job.accelerators));
  to.cp = powers_of_two(std::min<std::int64_t>(8, training_job.accelerators));
  to.pp = powers_of_two(
      std::min({std::int64_t{64}, training_job.model.layers, training_job.accelerators}));
  to.vpp = powers_of_two(4);
  to.ep = powers_of_two(
      std::max<std::int64_t>(1, std::min(training_job.model.experts, training_job.accelerators)));
  to.micro_batch = powers_of_two(std::min<std::int64_t>(8, training_job.training.global_batch));
  to.splits.assign(std::begin(splits), std::end(splits));
  for (const velo_tuning_recompute one : recomputes)
    if (one != VELO_TUNING_RECOMPUTE_CORE || !training_job.model.flash_attention)
      to.recompute.push_back(one);
  to.kinds = default_tuning_kinds();
  to.cp_algorithms.assign(std::begin(cp_algorithms), std::end(cp_algorithms));

  from.counts("tp", to.tp, most);
  from.counts("tp_x", to.tp_x, most, 0);
  from.counts("pp", to.pp, most);
  from.counts("vpp", to.vpp, 64);
  from.counts("dp", to.dp, most);
  from.counts("cp", to.cp, most_context_ranks);
  from.names("cp_algorithm", cp_algorithms, &cp_algorithm_name, to.cp_algorithms);
  from.counts("tp_slices", to.tp_slices, most_slices);
  from.counts("ep", to.ep, most);
  from.names("token_rearrange", rearranges, &rearrange_name, to.rearranges);
  from.counts("micro_batch", to.micro_batch, 1 << 20);
  from.names("recompute", recomputes, &recompute_name, to.recompute);
  from.names("kind", tuning_kinds(), &name_of, to.kinds);
  from.counts("sequence_splits", to.sequence_splits, most_splits, 2);
  from.names("split", splits, &split_name, to.splits);
  to.sequence_parallel = {training_job.training.sequence_parallel ? 1 : 0};
  from.flags("sequence_parallel", to.sequence_parallel);
  to.zero = {static_cast<std::int32_t>(training_job.training.zero)};
  from.counts("zero", to.zero, 2, 0);
  from.count("keep", to.keep, to.keep, 1, most_kept, keep);
  from.finish();
  require_two_matrices(from, to, training_job.model);
  if (training_job.model.experts > 0 &&
      std::count(to.sequence_parallel.begin(), to.sequence_parallel.end(), 0))
    fail(VELO_ERR_ARGUMENT, from.named("sequence_parallel").c_str(),
         "[true] where there are experts", "false");
  return to;
}

// Parses a text, which may contain zero bytes.
json parse(const char* source, std::uint64_t length, const char* argument) {
  json read = json::parse(std::string_view(source, length), argument);
  if (read.kind() != json::type::object)
    fail(VELO_ERR_ARGUMENT, argument, "an object", read.kind_name());
  return read;
}

// Reads the profile: a text of its own, an object of the config, or all defaults. A string member
// names the file whose text is given.
profile read_profile_of(const velo_tune_desc& desc, section& config,
                        std::vector<assumption>& notes) {
  const std::optional<json> inside = config.member("profile");
  const bool named = inside && inside->kind() == json::type::string;
  if (desc.profile != nullptr) {
    if (inside && !named)
      fail(VELO_ERR_ARGUMENT, "desc.profile", "NULL, as the config has a profile", "a text");
    return read_profile({"profile", parse(desc.profile, desc.profile_length, "profile"), notes});
  }
  if (named)
    fail(VELO_ERR_ARGUMENT, "desc.profile", text("the text of %s", inside->string()), "NULL");
  return read_profile({"config.profile", inside, notes});
}

}  // namespace

job read_job(const velo_tune_desc& desc) {
  if (desc.config == nullptr) fail(VELO_ERR_NULL, "desc.config", "a text", "NULL");
  job to;
  section config("config", parse(desc.config, desc.config_length, "config"), to.assumptions);
  to.model = read_model(config.inner("model"));
  to.training = read_training(config.inner("training"), to.model);
  to.profile = read_profile_of(desc, config, to.assumptions);
  config.count("accelerators", to.accelerators, required, 1, most_accelerators, desc.accelerators);
  to.space = read_space(config.inner("search"), to, desc.keep);
  config.finish();
  return to;
}

const char* recompute_name(velo_tuning_recompute recompute) {
  static constexpr const char* names[] = {"none", "core", "activation", "full", "norms"};
  return names[recompute];
}
const char* cp_algorithm_name(velo_sequence_kind algorithm) {
  static constexpr const char* names[] = {"ulysses", "ring", "hybrid", "all_gather"};
  return names[algorithm];
}
const char* rearrange_name(rearrange how) {
  return how == rearrange::index ? "index" : "one_hot";
}
const char* split_name(velo_tuning_split split) {
  static constexpr const char* names[] = {"even", "balanced"};
  return names[split];
}

}  // namespace velo::sched::tune
