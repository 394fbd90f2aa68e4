// A tuning as texts: tables for people, the same as JSON, rejections as CSV.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/json_writer.hpp"
#include "sched/render/text.hpp"
#include "sched/schedule/kind_name.hpp"
#include "sched/tune/stages.hpp"

namespace velo::sched::tune {
namespace {

using core::text;

constexpr double gib = 1 << 30;

// The assumptions behind the numbers, besides the values of all keys.
constexpr const char* formulas[] = {
    "activations: every tensor kept for the backward, two bytes an element (Korthikanti et al. "
    "2022), as many micro-batches of each stage as the schedule's order holds, from F to the end "
    "of W",
    "parameters, gradients, optimizer: bytes of the training section; under zero 1 optimizer "
    "states are shared by the ranks with the same parameters, under zero 2 gradients too but for "
    "one stage's at a time, which are summed once in pp micro-batches, or in each where a rank "
    "has one stage (Rajbhandari et al. 2020)",
    "fp8: products but for output and router at the fp8 rate; they keep a byte an element, and "
    "tokens go out to experts so (DeepSeek-V3 2024)",
    "recompute norms: outputs of norms, activation functions and up-projections of latent "
    "attention are made again; experts' outputs are not kept",
    "workspace: the profile's, what a backward makes again of one layer, the gradient of the "
    "logits",
    "communication: gathered activations, ring and all-to-all buffers, four messages of the "
    "pipeline, two buckets of gradients, the profile's for every group of ranks",
    "products: operations over matmul rate, or bytes over memory rate, whichever is longer; each "
    "gradient of a product as long as its forward",
    "attention: causal, half of the scores; backward 2.5 times the forward (Dao 2023)",
    "tensor parallelism gathers and scatters before and behind attention and feed-forward "
    "(Korthikanti et al. 2022); with sequence parallelism gradients gather their inputs again",
    "sizes that ranks do not divide count as the largest part; with experts or latent attention "
    "they must divide",
    "tp_x, two dimensions of tensor ranks: each product gathers its rows over one and scatters "
    "its sum over the other, gradients gather the inputs of products again, norms sum over tp_y, "
    "nothing is in slices; ranks along y are further ranks of cp",
    "tp_slices: an exchange of T seconds beside a product of P, in s slices, is exposed for T / s, "
    "and for (T - P) (s - 1) / s where P is the shorter; each slice has its latency; one slice "
    "beyond a node",
    "token_rearrange: by index as rows are moved anyway; one_hot by two products with a matrix of "
    "tokens by places",
    "context parallelism: in each step of velo's sequence plan the cells of the rank that computes "
    "most, and of the bytes of the rank that exchanges most what takes longer than they do; of "
    "cp_algorithm's choices those that no other beats in both time and memory",
    "experts: balanced but for imbalance; two all-to-alls a pass, hidden only in a forward fused "
    "with a backward (dualpipev)",
    "ranks are numbered tp, cp, dp, pp, the first next to each other; a ring between nodes has the "
    "links of all its members in a node",
    "the pipeline's time is simulated action by action; messages do not wait for each other",
    "orders of zbh2, zbv-greedy and auto: searched for stages of one cost times a share by their "
    "time, within the memory that is left",
    "seq1f1b: every split takes the mean of all splits of its sequence; a micro-batch's keys, "
    "values and their gradients lie beside the splits, in the workspace",
    "a step is pipeline + gradients + optimizer; nothing else takes time or memory"};

std::string fixed(double value, int digits) {
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
  return {buffer, end.ptr};
}

// Rounds to four significant digits.
std::string rounded(double value) {
  const double size = value < 0 ? -value : value;
  return fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
}

std::string in_gib(double bytes) {
  return fixed(bytes / gib, 2);
}

// A table of right-aligned columns.
class columns {
 public:
  using row = std::vector<std::string>;
  void add(row cells) { rows_.push_back(std::move(cells)); }
  std::string text(const char* indent) const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const row& r : rows_)
      for (std::size_t c = 0; c < r.size(); ++c) widths[c] = std::max(widths[c], r[c].size());
    std::string all;
    for (const row& r : rows_) {
      all += indent;
      for (std::size_t c = 0; c < r.size(); ++c)
        all += std::string(widths[c] - r[c].size() + (c > 0 ? 2 : 0), ' ') + r[c];
      all += '\n';
    }
    return all;
  }

 private:
  std::vector<row> rows_;
};

struct field {
  const char* name;
  const char* unit;
  std::int32_t velo_tuning_layout::*member;
};
constexpr field fields[] = {{"tp", "ranks", &velo_tuning_layout::tp},
                            {"pp", "ranks", &velo_tuning_layout::pp},
                            {"vpp", "stages", &velo_tuning_layout::vpp},
                            {"dp", "ranks", &velo_tuning_layout::dp},
                            {"cp", "ranks", &velo_tuning_layout::cp},
                            {"ep", "ranks", &velo_tuning_layout::ep},
                            {"micro_batch", "sequences", &velo_tuning_layout::micro_batch},
                            {"microbatches", "count", &velo_tuning_layout::microbatches}};

std::string name_or_nothing(std::int32_t value, const char* (*name)(std::int32_t)) {
  return value < 0 ? "" : name(value);
}
std::string cp_algorithm_text(const full_layout& layout) {
  const std::string name = name_or_nothing(layout.cp_algorithm, &cp_algorithm_name);
  return layout.cp_ulysses == 0 ? name : name + "-" + std::to_string(layout.cp_ulysses);
}
constexpr std::size_t usual_words = 3;  // the others stay out of tables where no plan has any
std::array<std::string, 10> words_of(const full_layout& layout) {
  return {name_or_nothing(layout.recompute, &recompute_name),
          name_or_nothing(layout.kind, &name_of),
          name_or_nothing(layout.split, &split_name),
          cp_algorithm_text(layout),
          layout.tp_slices > 1 ? std::to_string(layout.tp_slices) : "",
          layout.tokens == rearrange::index ? "" : rearrange_name(layout.tokens),
          layout.tp_x > 0 ? std::to_string(layout.tp_x) : "",
          layout.sequence_splits > 0 ? std::to_string(layout.sequence_splits) : "",
          layout.tp > 1 && layout.sequence_parallel >= 0 ? std::to_string(layout.sequence_parallel)
                                                         : "",
          layout.zero >= 0 ? std::to_string(layout.zero) : ""};
}
constexpr const char* word_names[] = {
    "recompute",       "schedule", "split",           "cp_algorithm",      "tp_slices",
    "token_rearrange", "tp_x",     "sequence_splits", "sequence_parallel", "zero"};
constexpr std::size_t rows_word = 8, zero_word = 9;

// The text of a layout, "tp 8, pp 2, .."; open members are omitted.
std::string layout_text(const full_layout& layout) {
  std::string all;
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : ", ") + part; };
  for (const field& f : fields)
    if (layout.*f.member > 0) add(std::string(f.name) + " " + std::to_string(layout.*f.member));
  const auto words = words_of(layout);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!words[i].empty()) add(std::string(word_names[i]) + " " + words[i]);
  return all;
}

std::string heads_text(const model& of, const full_layout& l) {
  const char* const name = l.in_two() ? "tp_x " : "tp ";
  const std::int32_t x = l.ranks_x();
  if (!of.has_equal_parts() && !cuts_heads(of, x))
    return core::concat(name, x, " exceeds ", of.kv_heads, " heads of keys and is no multiple of ",
                        "them that divides ", of.heads, " heads")
        .buffer;
  if (!of.has_equal_parts())
    return core::concat(name, x, " exceeds feed-forwards of ", of.ffn_hidden,
                        " or a vocabulary of ", of.vocabulary)
        .buffer;
  std::string all = core::concat(name, x, " does not divide ", of.heads, " heads, ", of.kv_heads,
                                 " of keys, or feed-forwards of ", of.ffn_hidden)
                        .buffer;
  if (of.shared_hidden > 0) all += " and " + std::to_string(of.shared_hidden);
  return all;
}

// Names the numbers of experts and ranks that do not divide.
std::string experts_text(const model& of, const velo_tuning_layout& l) {
  if (of.experts == 0) return "ep " + std::to_string(l.ep) + " of a model without experts";
  const std::int64_t ranks = std::int64_t{l.tp} * l.cp * l.dp;
  std::string all;
  if (of.experts % l.ep != 0) all = std::to_string(of.experts) + " experts";
  if (ranks % l.ep != 0)
    all += (all.empty() ? "" : ", or ") + std::to_string(ranks) + " ranks of a stage";
  return "ep " + std::to_string(l.ep) + " does not divide " + all;
}

constexpr const char* reason_names[] = {"",       "heads",    "ranks",  "experts",
                                        "batch",  "sequence", "layers", "schedule",
                                        "memory", "slower",   "same"};

// The words that a table of plans has a column for.
std::vector<std::size_t> words_in(const tuning& from) {
  std::vector<std::size_t> all;
  for (std::size_t word = 0; word < std::size(word_names); ++word) {
    const bool is_choice =  // of the search, not of the training alone
        (word != rows_word || from.of.space.sequence_parallel.size() > 1) &&
        (word != zero_word || from.of.space.zero.size() > 1);
    const auto has_word = [&](const plan& one) { return !words_of(one.layout)[word].empty(); };
    if (word < usual_words ||
        (is_choice && std::any_of(from.plans.begin(), from.plans.end(), has_word)))
      all.push_back(word);
  }
  return all;
}

std::string plan_table(const tuning& from) {
  columns table;
  columns::row names = {"#", "step", "tokens", "utilization", "bubble", "memory"};
  columns::row units = {"", "s", "1/s", "%", "%", "GiB"};
  for (const field& f : fields) {
    names.emplace_back(f.name);
    units.emplace_back(f.unit);
  }
  const std::vector<std::size_t> words = words_in(from);
  for (const std::size_t word : words) {
    names.emplace_back(word_names[word]);
    units.emplace_back("kind");
  }
  table.add(names);
  table.add(units);
  for (std::size_t i = 0; i < from.plans.size(); ++i) {
    const plan& one = from.plans[i];
    columns::row row = {std::to_string(i + 1),           rounded(one.step()),
                        fixed(one.tokens_per_second, 0), fixed(100 * one.utilization, 1),
                        fixed(100 * one.bubble, 1),      in_gib(one.bytes())};
    for (const field& f : fields) row.push_back(std::to_string(one.layout.*f.member));
    const auto all = words_of(one.layout);
    for (const std::size_t word : words) row.push_back(all[word]);
    table.add(row);
  }
  return table.text("");
}

struct item {
  const char* name;
  double rank_memory::*member;
};
constexpr item items[] = {
    {"parameters", &rank_memory::parameters}, {"gradients", &rank_memory::gradients},
    {"optimizer", &rank_memory::optimizer},   {"activations", &rank_memory::activations},
    {"workspace", &rank_memory::workspace},   {"communication", &rank_memory::communication}};

std::string memory_table(const plan& of) {
  columns table;
  columns::row names = {"pp rank", "layers"}, units = {"", "count"};
  for (const item& i : items) {
    names.emplace_back(i.name);
    units.emplace_back("GiB");
  }
  names.emplace_back("total");
  units.emplace_back("GiB");
  table.add(names);
  table.add(units);
  for (std::size_t rank = 0; rank < of.memory.size(); ++rank) {
    const rank_memory& m = of.memory[rank];
    columns::row row = {std::to_string(rank), std::to_string(m.layers)};
    for (const item& i : items) row.push_back(in_gib(m.*i.member));
    row.push_back(in_gib(m.total()));
    table.add(row);
  }
  return table.text("  ");
}

std::map<velo_tuning_reason, std::int64_t> counts_of(const tuning& from) {
  std::map<velo_tuning_reason, std::int64_t> counts;
  for (const rejection& one : from.rejections) ++counts[one.code];
  return counts;
}

// Counts each reason, with its first rejection; kinds of schedules are counted separately.
std::string rejected_table(const tuning& from) {
  struct tally {
    const rejection* first = nullptr;
    std::int64_t count = 0;
  };
  std::map<std::pair<velo_tuning_reason, velo_schedule_kind>, tally> tallies;
  for (const rejection& one : from.rejections) {
    tally& of = tallies[{one.code, one.code == VELO_TUNING_REASON_SCHEDULE ? one.layout.kind : -1}];
    if (of.count++ == 0) of.first = &one;
  }
  std::string all;
  for (const auto& [reason, of] : tallies)
    all += "  " + std::string(reason_names[reason.first]) + " " + std::to_string(of.count) +
           ", as " + layout_text(of.first->layout) + ": " + reason_of(from, *of.first) + "\n";
  return all;
}

void write_layout(core::json_writer& to, const full_layout& layout, bool has_experts) {
  to.object();
  for (const field& f : fields) to.member(f.name, layout.*f.member);
  to.member("recompute", name_or_nothing(layout.recompute, &recompute_name));
  to.member("schedule", name_or_nothing(layout.kind, &name_of));
  to.member("split", name_or_nothing(layout.split, &split_name));
  if (layout.cp_algorithm >= 0) to.member("cp_algorithm", cp_algorithm_name(layout.cp_algorithm));
  if (layout.cp_ulysses > 0) to.member("cp_ulysses", layout.cp_ulysses);
  if (layout.tp_slices > 0) to.member("tp_slices", layout.tp_slices);
  if (layout.tp_x > 0) to.member("tp_x", layout.tp_x);
  if (layout.sequence_splits > 0) to.member("sequence_splits", layout.sequence_splits);
  if (layout.tp > 1 && layout.sequence_parallel >= 0)
    to.key("sequence_parallel").raw(layout.sequence_parallel == 1 ? "true" : "false");
  if (layout.zero >= 0) to.member("zero", layout.zero);
  if (has_experts) to.member("token_rearrange", rearrange_name(layout.tokens));
  to.end();
}

// What the plan of the sequence takes of a layer for a micro-batch.
void write_context(core::json_writer& to, const context_use& of) {
  to.object().member("cells", of.cells).member("forward_bytes", of.forward_bytes);
  to.member("gradient_bytes", of.gradient_bytes).member("kept_bytes", of.kept_bytes);
  to.member("forward_exposed_seconds", of.forward_exposed);
  to.member("gradient_exposed_seconds", of.gradient_exposed).end();
}

// What its matrices exchange, where they are cut both ways.
void write_tensor(core::json_writer& to, const tensor_use& of) {
  to.object().member("forward_bytes", of.forward_bytes);
  to.member("gradient_bytes", of.gradient_bytes).member("forward_seconds", of.forward_seconds);
  to.member("gradient_seconds", of.gradient_seconds).end();
}

// The arguments of velo_schedule_create for the same order.
void write_demand(core::json_writer& to, const demand& of) {
  to.object().member("cap", of.cap).member("forward", of.costs.forward);
  to.member("input", of.costs.input).member("weight", of.costs.weight);
  to.member("fused", of.costs.fused).member("latency", of.costs.latency).key("shares").array();
  for (const double share : of.costs.shares) to.value(share);
  to.end().end();
}

void write_plan(core::json_writer& to, const job& training_job, const plan& of) {
  write_layout(to.object().key("layout"), of.layout, training_job.model.experts > 0);
  to.member("step_seconds", of.step()).member("pipeline_seconds", of.pipeline);
  to.member("gradient_seconds", of.gradients).member("optimizer_seconds", of.optimizer);
  to.member("bubble", of.bubble).member("tokens_per_second", of.tokens_per_second);
  to.member("utilization", of.utilization);
  const layer_costs costs = layer_costs_of(training_job, of.layout);
  if (of.layout.attention_ranks() > 1) write_context(to.key("context"), costs.context);
  if (of.layout.in_two()) write_tensor(to.key("tensor"), costs.tensor);
  if (is_searched(of.layout.kind)) write_demand(to.key("order"), of.searched);
  to.key("stage_layers").array();
  for (const auto layers : of.stage_layers) to.value(layers);
  to.end().key("memory_bytes").array();
  for (std::size_t rank = 0; rank < of.memory.size(); ++rank) {
    to.object().member("rank", rank);
    for (const item& i : items) to.member(i.name, of.memory[rank].*i.member);
    to.member("total", of.memory[rank].total()).end();
  }
  to.end().end();
}

std::string nearest_text(const tuning& from) {
  if (from.nearest < 0) return "No layout has a valid shape.\n";
  const rejection& one = from.rejections[core::at(from.nearest)];
  return "Nothing fits. Nearest: " + layout_text(one.layout) + ": " + reason_of(from, one) + "\n";
}

}  // namespace

std::string ways_text(const full_layout& layout) {
  std::string all = cp_algorithm_text(layout);
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : ", ") + part; };
  if (layout.tp_slices > 0)
    add(std::to_string(layout.tp_slices) + (layout.tp_slices == 1 ? " slice" : " slices"));
  if (all.empty() || layout.tokens != rearrange::index) add(rearrange_name(layout.tokens));
  return all;
}

std::string reason_of(const tuning& from, const rejection& rejected) {
  const job& j = from.of;
  const full_layout& l = rejected.layout;
  switch (rejected.code) {
    case VELO_TUNING_REASON_HEADS:
      if (!rejected.text.empty()) return rejected.text;
      return heads_text(j.model, l);
    case VELO_TUNING_REASON_RANKS:
      return core::concat("tp * cp * pp = ", std::int64_t{l.tp} * l.cp * l.pp, " does not divide ",
                          j.accelerators, " accelerators")
          .buffer;
    case VELO_TUNING_REASON_EXPERTS:
      return experts_text(j.model, l);
    case VELO_TUNING_REASON_BATCH:
      return core::concat("dp * micro_batch = ", std::int64_t{l.dp} * l.micro_batch,
                          " does not divide a batch of ", j.training.global_batch)
          .buffer;
    case VELO_TUNING_REASON_SEQUENCE:
      return core::concat(j.training.cuts_rows(l) ? "tp * cp" : "cp",
                          l.sequence_splits > 0 ? " * sequence_splits = " : " = ",
                          sequence_parts(j.training, l),
                          j.model.has_equal_parts() ? " does not divide" : " exceeds",
                          " sequences of ", j.training.sequence)
          .buffer;
    case VELO_TUNING_REASON_LAYERS:
      return core::concat(j.model.layers, " layers ",
                          j.model.layers + 2 < std::int64_t{l.pp} * l.vpp ? "are fewer than "
                                                                          : "do not divide into ",
                          l.pp * l.vpp)
          .buffer;
    case VELO_TUNING_REASON_SCHEDULE:
      return rejected.text;
    case VELO_TUNING_REASON_MEMORY:
      return "rank " + std::to_string(rejected.rank) + " needs " +
             (rejected.at_least ? "at least " : "") + in_gib(rejected.value) + " GiB, " +
             in_gib(rejected.value - j.profile.memory_bytes) + " more than there are";
    case VELO_TUNING_REASON_SLOWER:
      return "at least " + rounded(rejected.value) +
             " s a step, and plans that were kept take less";
    default:
      if (!rejected.text.empty()) return rejected.text;
      return "the same as the split or recompute before it";
  }
}

std::string write_summary(const tuning& from) {
  const auto total = from.plans.size() + from.rejections.size();
  std::string all = from.of.model.name + ", ";
  all += rounded(parameters_of(from.of.model) / 1e9) + " billion parameters, " +
         std::to_string(from.of.accelerators) + " accelerators (" + from.of.profile.name +
         "), batch " + std::to_string(from.of.training.global_batch) + " x " +
         std::to_string(from.of.training.sequence) + " tokens\n" + std::to_string(total) +
         " candidates, " + std::to_string(from.simulated) + " simulated\n\n";
  if (from.plans.empty()) {
    all += nearest_text(from);
  } else {
    all += plan_table(from) + "\nMemory of the best, of " + in_gib(from.of.profile.memory_bytes) +
           " GiB that a rank may need:\n" + memory_table(from.plans[0]);
  }
  return all + "\nRejected:\n" + rejected_table(from);
}

std::string write_assumptions(const tuning& from) {
  std::string all;
  for (const char* one : formulas) all += std::string(one) + "\n";
  for (const assumption& one : from.of.assumptions) all += one.path + " " + one.json + "\n";
  return all;
}

std::string write_json(const tuning& from) {
  std::string all;
  core::json_writer to(all, core::json_writer::spacing::wide);
  to.object().member("model", from.of.model.name);
  to.member("parameters", parameters_of(from.of.model));
  to.member("accelerators", static_cast<double>(from.of.accelerators));
  to.member("memory_bytes", from.of.profile.memory_bytes);
  to.member("candidates", static_cast<double>(from.plans.size() + from.rejections.size()));
  to.member("simulated", static_cast<double>(from.simulated)).line(" ").key("plans").array();
  for (const plan& one : from.plans) write_plan(to.line("  "), from.of, one);
  to.end().line(" ").key("rejected").object();
  for (const auto& [code, count] : counts_of(from)) to.member(reason_names[code], count);
  to.end().line(" ").key("nearest");
  if (from.nearest < 0) {
    to.null();
  } else {
    const rejection& one = from.rejections[core::at(from.nearest)];
    write_layout(to.object().key("layout"), one.layout, from.of.model.experts > 0);
    to.member("reason", reason_of(from, one)).member("memory_bytes", one.value).end();
  }
  to.line(" ").key("formulas").array();
  for (const char* one : formulas) to.value(one);
  to.end().line(" ").key("assumptions").object();
  for (const assumption& one : from.of.assumptions)
    to.line("  ").key(one.path.c_str()).raw(one.json);
  to.end().end();
  return all + "\n";
}

// Later columns come behind the first ones, which readers count.
std::string write_rejected(const tuning& from) {
  std::string all;
  for (const field& f : fields) all += std::string(f.name) + ",";
  for (std::size_t i = 0; i < usual_words; ++i) all += std::string(word_names[i]) + ",";
  all += "code,reason";
  for (std::size_t i = usual_words; i < std::size(word_names); ++i)
    all += "," + std::string(word_names[i]);
  all += "\n";
  for (const rejection& one : from.rejections) {
    for (const field& f : fields) {
      if (one.layout.*f.member > 0) all += std::to_string(one.layout.*f.member);
      all += ",";
    }
    const auto words = words_of(one.layout);
    for (std::size_t i = 0; i < usual_words; ++i) all += words[i] + ",";
    all += std::string(reason_names[one.code]) + ",\"" + reason_of(from, one) + "\"";
    for (std::size_t i = usual_words; i < words.size(); ++i) all += "," + words[i];
    all += "\n";
  }
  return all;
}

}  // namespace velo::sched::tune
