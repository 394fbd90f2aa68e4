// velo schedule: pipeline schedules generated or read, checked, priced, written.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/options.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const schedule_help =
    "usage: velo schedule KIND --ranks P --microbatches M [options]\n"
    "       velo schedule --check FILE [--costs .. --format FORMAT -o FILE]\n\n"
    "The order in which P ranks work on the stages of a model, for M micro-batches, and what it\n"
    "costs. The kinds are listed below.\n\n"
    "  --chunks V        stages a rank has, for kinds of several (2)\n"
    "  --group N         micro-batches that go through a chunk before the next has its turn (P)\n"
    "  --extra-warmup    interleaved: one forward more before the first backward\n"
    "  --overlap         interleaved: a forward and the backward behind it at once, with an extra\n"
    "                    warm-up\n"
    "  --recompute HOW   ripipe: activations made again in-bubble or in-advance (in-bubble)\n"
    "  --swap            nanopipe: what gradients of weights wait with is on the host meanwhile\n"
    "  --layout TEXT     what each stage holds: E the embedding, t a layer, m a layer that "
    "predicts\n"
    "                    further on, L the loss, | the end of a stage: \"Et*3|(tt|)*4tmL\"\n"
    "  --layers L        of the model, as many in each stage\n"
    "  --noop-layers A,B layers that do nothing\n"
    "  --optimizer C     rows end with the update of parameters, which costs C for all stages of\n"
    "                    a rank\n"
    "  --splits S        seq1f1b: parts of a micro-batch's sequence (1)\n"
    "  --no-dw-detach    dualpipe, dualpipev: gradients of weights are never put off\n"
    "  --cap K           zbh2, zbv-greedy, auto: most activations held, in micro-batches of a\n"
    "                    rank (2P - 1, P, P)\n"
    "  --costs F,I,W     of a whole rank and a micro-batch: forward, gradient of inputs, of\n"
    "                    weights (1,1,1); a chunk of V costs a V-th\n"
    "  --fused-cost T    of a forward and a backward at once (the sum of its parts)\n"
    "  --recompute-cost R  of activations made again (as forward)\n"
    "  --copy-cost C     of a copy to the host, and of one back, of a whole rank and a\n"
    "                    micro-batch (0)\n"
    "  --comm C          from the end of an action until another rank has its result (0)\n"
    "  --sizes W,G,O,A,M  what a P-th of the model takes, in any unit: weights, gradients, "
    "optimizer\n"
    "                    states; activations of a micro-batch, a message of one (0,0,0,1,0)\n"
    "  --format FORMAT   summary, summary-json, csv (PyTorch's rows), json, svg (a picture),\n"
    "                    trace (for Perfetto), grid (for a terminal, with less -S)\n"
    "  -o FILE           instead of the standard output\n\n"
    "--check says whether the rows of a file, or its JSON, are a schedule that can run; with\n"
    "costs, a format or -o it is priced, drawn or written as well.\n\n"
    "Exit codes: 0 done; 2 the file's schedule is none, with what is wrong, or there is none\n"
    "within the cap; 1 bad input.\n";

namespace {

struct schedule_arguments {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
  bool recompute = false;
  bool priced = false;  // some cost was given
  std::string format;   // empty: summary
  std::string output;
  std::string check;
  std::string layout;
  std::vector<std::int32_t> noop_layers;
  std::vector<std::string> words;
};

// Takes a number from the front of the text, and a comma behind it.
bool take_cost(const char*& at, const char* end, double& cost) {
  const auto [stop, error] = std::from_chars(at, end, cost);
  if (error != std::errc() || !(cost >= 0)) return false;
  at = stop != end && *stop == ',' ? stop + 1 : stop;
  return true;
}

[[noreturn]] void refuse_number(const char* option, const char* wanted, const std::string& word) {
  throw input_error(std::string(option) + " wants a number " + wanted + ", not " +
                    (word.empty() ? "nothing" : word));
}
bool read_cost(double& cost, const std::string& word) {
  const char *at = word.data(), *end = at + word.size();
  return take_cost(at, end, cost) && at == end;
}
void set_cost(double& cost, const std::string& word, const char* option) {
  if (!read_cost(cost, word)) refuse_number(option, "from 0", word);
}

void set_costs(schedule_arguments& given, const char*, const std::string& word) {
  given.priced = true;
  velo_schedule_costs& to = given.costs;
  const char *at = word.data(), *end = at + word.size();
  if (!take_cost(at, end, to.forward) || !take_cost(at, end, to.input) ||
      !take_cost(at, end, to.weight) || at != end || word.back() == ',')
    throw input_error("--costs wants three numbers from 0, as in --costs 1,1.2,0.8");
}

void set_sizes(schedule_arguments& given, const char*, const std::string& word) {
  given.priced = true;
  velo_schedule_costs& to = given.costs;
  const char *at = word.data(), *end = at + word.size();
  bool right = true;
  for (double* one : {&to.weight_size, &to.gradient_size, &to.optimizer_size, &to.activation_size,
                      &to.message_size})
    right = right && take_cost(at, end, *one);
  if (!right || at != end || word.back() == ',')
    throw input_error("--sizes wants five numbers from 0, as in --sizes 2,4,12,1.5,0.1, not " +
                      (word.empty() ? "nothing" : word));
}

void set_cap(schedule_arguments& given, const char* option, const std::string& word) {
  if (!read_cost(given.desc.cap, word) || given.desc.cap == 0)
    refuse_number(option, "above 0", word);
}

void set_recompute(schedule_arguments& given, const char*, const std::string& word) {
  if (word != "in-bubble" && word != "in-advance")
    throw input_error("--recompute wants in-bubble or in-advance, not " +
                      (word.empty() ? "nothing" : word));
  given.recompute = true;
  if (word == "in-advance") given.desc.flags |= VELO_SCHEDULE_IN_ADVANCE;
}

void set_noop_layers(schedule_arguments& given, const char*, const std::string& word) {
  const char *at = word.data(), *end = at + word.size();
  for (;; ++at) {
    std::int32_t layer = 0;
    const auto [stop, error] = std::from_chars(at, end, layer);
    if (error != std::errc() || layer < 0 || (stop != end && *stop != ','))
      throw input_error("--noop-layers wants numbers from 0 and commas, as in 0,22,23");
    given.noop_layers.push_back(layer);
    at = stop;
    if (at == end) return;
  }
}

void set_copy_cost(schedule_arguments& given, const char* option, const std::string& word) {
  set_cost(given.costs.offload, word, option);
  given.costs.reload = given.costs.offload;
  given.priced = true;
}

void set_optimizer(schedule_arguments& given, const char* option, const std::string& word) {
  set_cost(given.costs.optimizer, word, option);
  given.desc.flags |= VELO_SCHEDULE_OPTIMIZER;
  given.priced = true;
}

// A row that sets a count, a cost, the name of a file, a bit.
using row = option<schedule_arguments>;
template <std::int32_t velo_schedule_desc::*field>
constexpr row count(const char* name) {
  return {name, [](schedule_arguments& given, const char* option, const std::string& word) {
            set_count(given.desc.*field, word, option);
          }};
}
template <double velo_schedule_costs::*field>
constexpr row cost(const char* name) {
  return {name, [](schedule_arguments& given, const char* option, const std::string& word) {
            set_cost(given.costs.*field, word, option);
            given.priced = true;
          }};
}
template <std::string schedule_arguments::*field>
constexpr row text(const char* name) {
  return {name, [](schedule_arguments& given, const char* option, const std::string& word) {
            if (word.empty()) throw input_error(std::string(option) + " wants a word behind it");
            given.*field = word;
          }};
}
template <std::uint32_t bit>
constexpr row flag(const char* name) {
  return {
      name,
      [](schedule_arguments& given, const char*, const std::string&) { given.desc.flags |= bit; },
      true};
}

constexpr row options[] = {count<&velo_schedule_desc::ranks>("--ranks"),
                           count<&velo_schedule_desc::microbatches>("--microbatches"),
                           count<&velo_schedule_desc::chunks>("--chunks"),
                           count<&velo_schedule_desc::group>("--group"),
                           count<&velo_schedule_desc::splits>("--splits"),
                           flag<VELO_SCHEDULE_EXTRA_WARMUP>("--extra-warmup"),
                           flag<VELO_SCHEDULE_NO_DW_DETACH>("--no-dw-detach"),
                           flag<VELO_SCHEDULE_OVERLAP>("--overlap"),
                           flag<VELO_SCHEDULE_SWAP>("--swap"),
                           {"--recompute", &set_recompute},
                           text<&schedule_arguments::layout>("--layout"),
                           count<&velo_schedule_desc::layers>("--layers"),
                           {"--noop-layers", &set_noop_layers},
                           cost<&velo_schedule_costs::recompute>("--recompute-cost"),
                           {"--copy-cost", &set_copy_cost},
                           {"--optimizer", &set_optimizer},
                           {"--cap", &set_cap},
                           {"--costs", &set_costs},
                           {"--sizes", &set_sizes},
                           cost<&velo_schedule_costs::fused>("--fused-cost"),
                           cost<&velo_schedule_costs::latency>("--comm"),
                           text<&schedule_arguments::format>("--format"),
                           text<&schedule_arguments::output>("-o"),
                           text<&schedule_arguments::check>("--check")};

// Every kind but the caller's own, by its name.
velo_schedule_kind kind_called(const std::string& word) {
  std::vector<std::string> names;
  std::string all;
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE;; ++kind) {
    const char* name = nullptr;
    if (velo_schedule_kind_name(kind, &name) != VELO_OK) break;
    if (word == name) return kind;
    names.emplace_back(name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string meant = did_you_mean(word, names);
  throw input_error("unknown kind " + word + (meant.empty() ? "; there are " + all : meant));
}

// An option that only some kinds take. The library refuses the option's field for the others.
struct limited {
  const char* option;
  bool (*is_given)(const schedule_arguments& given);
  void (*ask)(velo_schedule_desc& desc);
  const char* field;
};
template <std::uint32_t bit>
constexpr limited limited_flag(const char* option) {
  return {option, [](const schedule_arguments& given) { return (given.desc.flags & bit) != 0; },
          [](velo_schedule_desc& desc) { desc.flags = bit; }, "desc.flags"};
}
template <auto field>
constexpr limited limited_number(const char* option, const char* name) {
  return {option, [](const schedule_arguments& given) { return given.desc.*field != 0; },
          [](velo_schedule_desc& desc) { desc.*field = 2; }, name};
}
constexpr limited limited_options[] = {
    limited_number<&velo_schedule_desc::cap>("--cap", "desc.cap"),
    limited_number<&velo_schedule_desc::group>("--group", "desc.group"),
    limited_number<&velo_schedule_desc::splits>("--splits", "desc.splits"),
    limited_flag<VELO_SCHEDULE_EXTRA_WARMUP>("--extra-warmup"),
    limited_flag<VELO_SCHEDULE_OVERLAP>("--overlap"),
    limited_flag<VELO_SCHEDULE_NO_DW_DETACH>("--no-dw-detach"),
    limited_flag<VELO_SCHEDULE_SWAP>("--swap"),
    {"--recompute", [](const schedule_arguments& given) { return given.recompute; },
     [](velo_schedule_desc& desc) { desc.flags = VELO_SCHEDULE_IN_ADVANCE; }, "desc.flags"}};

bool takes(velo_schedule_kind kind, const limited& row) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind;
  desc.ranks = 2;
  desc.microbatches = 4;
  row.ask(desc);
  try {
    velo::schedule::create(desc);
  } catch (const velo::error& failure) {
    return std::string(failure.argument()) != row.field;
  }
  return true;
}

void require_fits(const schedule_arguments& given) {
  for (const limited& row : limited_options) {
    if (!row.is_given(given) || takes(given.desc.kind, row)) continue;
    std::vector<std::string> names;
    const char* name = nullptr;
    for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE;
         velo_schedule_kind_name(kind, &name) == VELO_OK; ++kind)
      if (takes(kind, row)) names.emplace_back(name);
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i)
      all += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
    throw input_error(row.option + (" is for " + all) + ", not for " + given.words[0]);
  }
}

// A format of the output, made of a schedule or of its timeline.
struct format_row {
  const char* name;
  bool of_timeline;
  std::int32_t format;
};
constexpr format_row formats[] = {
    {"summary", true, VELO_TIMELINE_SUMMARY}, {"summary-json", true, VELO_TIMELINE_SUMMARY_JSON},
    {"csv", false, VELO_SCHEDULE_CSV},        {"json", false, VELO_SCHEDULE_JSON},
    {"svg", true, VELO_TIMELINE_SVG},         {"trace", true, VELO_TIMELINE_TRACE},
    {"grid", true, VELO_TIMELINE_GRID}};

template <class Row, std::size_t count>
const Row& row_called(const std::string& word, const Row (&table)[count], const char* what) {
  std::vector<std::string> names;
  std::string all;
  for (const Row& row : table) {
    if (word == row.name) return row;
    names.emplace_back(row.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string meant = did_you_mean(word, names);
  throw input_error(std::string("unknown ") + what + " " + word +
                    (meant.empty() ? "; there are " + all : meant));
}

const format_row& format_of(const schedule_arguments& given) {
  return row_called(given.format.empty() ? "summary" : given.format, formats, "format");
}

const char* name_of(velo_violation_code code) {
  static const char* const names[] = {"missing",   "duplicate", "order",      "placement", "stuck",
                                      "message",   "fifo",      "rendezvous", "batched",   "reduce",
                                      "optimizer", "offload",   "unshard"};
  return code >= 1 && code <= static_cast<int>(std::size(names)) ? names[code - 1] : "?";
}

std::string written(const velo::schedule& what, const schedule_arguments& given,
                    const format_row& format) {
  return format.of_timeline ? what.simulate(given.costs).write<std::string>(format.format)
                            : what.write<std::string>(format.format);
}

// The schedule in the chosen format.
std::string written(const schedule_arguments& given, const format_row& format) {
  velo_schedule_desc desc = given.desc;
  desc.costs = &given.costs;
  if (!given.layout.empty()) desc.layout = given.layout.c_str();
  desc.noop_layers = given.noop_layers.data();
  desc.noop_count = static_cast<std::int32_t>(given.noop_layers.size());
  const velo::schedule made = velo::schedule::create(desc);
  return written(made, given, format);
}

void put(const std::string& text, const std::string& output) {
  if (output.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_file(output, text);
}

int check_file(const schedule_arguments& given) {
  const std::string& file = given.check;
  const velo_schedule_desc& desc = given.desc;
  const bool describes = !given.words.empty() || desc.ranks != 0 || desc.microbatches != 0 ||
                         desc.chunks != 0 || desc.group != 0 || desc.splits != 0 || desc.cap != 0 ||
                         desc.layers != 0 || given.recompute || !given.layout.empty() ||
                         !given.noop_layers.empty() ||
                         (desc.flags & ~std::uint32_t{VELO_SCHEDULE_OPTIMIZER}) != 0;
  if (describes) throw input_error("--check takes costs, --format and -o: the file says the rest");
  const format_row& format = format_of(given);
  const velo::schedule read = velo::schedule::create({});
  const std::string text = read_file(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  read_into(read, is_json ? VELO_SCHEDULE_JSON : VELO_SCHEDULE_CSV, file);
  const velo_schedule_info info = read.info();
  if (info.actions == 0) throw input_error(file + ": has no actions");
  const std::int64_t wrong = read.check();
  for (std::int64_t i = 0; i < wrong; ++i) {
    const velo_violation found = read.violation(i);
    if (found.rank >= 0) std::printf("rank %d", found.rank);
    if (found.index >= 0) std::printf(", action %lld", static_cast<long long>(found.index));
    std::printf("%s%s (%s)\n", found.rank >= 0 ? ": " : "", found.reason, name_of(found.code));
  }
  if (wrong > 0) return no_solution;
  const bool is_written = given.priced || !given.format.empty() || !given.output.empty();
  // The standard output holds only what was asked for, since programs read it.
  if (!is_written || !given.output.empty() || given.format.empty())
    std::printf("can run: %d ranks, %d stages, %d micro-batches, %lld actions\n", info.ranks,
                info.stages, info.microbatches, static_cast<long long>(info.actions));
  if (is_written) put(written(read, given, format), given.output);
  return done;
}

}  // namespace

std::string schedule_kinds() {
  const json library = parse(velo::describe<std::string>());
  const json_t* const enums = member(library.get(), "enums");
  std::string all = "\nKinds:\n";
  for (std::size_t i = 0; i < json_array_size(enums); ++i) {
    const json_t* const one = json_array_get(enums, i);
    if (text(one, "name") != "velo_schedule_kind") continue;
    const json_t* const values = member(one, "values");
    for (std::size_t k = 0; k < json_array_size(values); ++k) {
      const json_t* const value = json_array_get(values, k);
      const auto kind = static_cast<velo_schedule_kind>(json_integer_value(member(value, "value")));
      if (kind == VELO_SCHEDULE_CUSTOM) continue;  // read, not generated
      std::string name = velo::schedule::kind_name(kind);
      name.resize(std::max<std::size_t>(name.size(), 12), ' ');
      all += "  " + name + "  " + text(value, "doc") + "\n";
    }
  }
  return all;
}

int schedule(const std::vector<std::string>& words) {
  schedule_arguments given;
  parse_options(words, options, given);
  if (!given.check.empty()) return check_file(given);
  if (given.words.size() != 1) throw input_error("schedule wants one KIND; velo help schedule");
  given.desc.kind = kind_called(given.words[0]);
  if (given.desc.ranks == 0) throw input_error("schedule wants --ranks P; velo help schedule");
  if (given.desc.microbatches == 0)
    throw input_error("schedule wants --microbatches M; velo help schedule");
  require_fits(given);
  const format_row& format = format_of(given);

  std::string text;
  try {
    text = written(given, format);
  } catch (const velo::error& failure) {
    if (std::string(failure.argument()) != "desc.cap") throw;
    std::fprintf(stderr, "velo: %s\n", sentence_of(failure).c_str());
    return no_solution;
  }
  put(text, given.output);
  return done;
}

}  // namespace command
