// velo tune: the layouts of a job that train fastest, by a model of costs and memory.
#include <cstdio>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/commands/tune/measured_profile.hpp"
#include "tools/velo/commands/tune/pretrain.hpp"
#include "tools/velo/commands/tune/trials.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/options.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const tune_help =
    "usage: velo tune CONFIG.json [options]\n\n"
    "How to cut a model and its batch over accelerators so that a step is fastest: tensor, "
    "pipeline,\n"
    "data, context and expert parallel sizes, stages a rank, micro-batch, recompute, the "
    "pipeline's\n"
    "order and how layers are split over stages, tried by a model of costs and memory. The "
    "profile\n"
    "says what accelerators and links give; --measure makes one of this machine.\n\n"
    "  --profile FILE.json  the profile, instead of the file that the config names in \"profile\"\n"
    "                       (beside the config; without one, all defaults)\n"
    "  --accelerators N     instead of the config's\n"
    "  --top N              plans to find, the best first (the config's search.keep, else 20)\n"
    "  --json               as data, with memory of every rank of every plan, and whether "
    "pretrain\n"
    "                       runs it (runnable, else not_runnable: why)\n"
    "  --rejected           every candidate that is no plan, and why, as CSV\n"
    "  --assumptions        what the numbers rest on: formulas, and every key with its value\n"
    "  --pretrain           the best plan that velo's example pretrain can run, as a file "
    "for\n"
    "                       its --config; 2 if there is none\n"
    "  --type TYPE          white: by the model alone (default). black: every plan that pretrain "
    "can "
    "run\n"
    "                       is run here, and what its steps took decides. mixed: the model "
    "chooses, "
    "and\n"
    "                       the best of its plans that pretrain can run are run\n"
    "  --trial COMMAND      for black and mixed: pretrain with its data, \"pretrain --paths TEXT\n"
    "                       --transport local\"; each trial adds --config, --steps, --log, --out "
    "and\n"
    "                       --measure false\n"
    "  --trials N           plans to run: at most so many (black: 32, more are refused; mixed: 3)\n"
    "  --measure            times a layer of the job, shrunk, and a link of two ranks on this "
    "machine,\n"
    "                       in about eight seconds, and writes a profile for --profile instead of "
    "plans;\n"
    "                       an accelerator is then a rank with one thread\n"
    "  -o FILE              instead of the standard output; checked before anything is run\n\n"
    "At most one of --json, --rejected, --assumptions and --pretrain.\n\n"
    "The published layouts of Llama 3 405B and DeepSeek-V3 come within 15 % of what was measured,\n"
    "by one profile a machine and the default efficiencies: 0.6 of the peak for products, 0.45 "
    "for\n"
    "attention, 0.8 of memory and links; examples/tune/README.md has the table.\n\n"
    "examples/tune has jobs, profiles, and a README.md with keys, units, defaults and formulas: "
    "in\n"
    "velo's sources, and in share/doc/velo of an installed one (share/doc/libvelo-dev of "
    "Debian's).\n\n"
    "Exit codes: 0 there is a plan; 2 nothing fits, and the nearest candidate is named, or no "
    "plan\n"
    "runs; 1 bad input.\n";

namespace {

struct tune_arguments {
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning_format format = VELO_TUNING_SUMMARY;
  std::string text_option;  // the one that chose format or pretrain
  bool pretrain = false;
  bool measure = false;
  std::string type = "white", trial;
  std::int32_t trials = 0;  // 0: the type's own
  std::string profile;
  std::string output;
  std::vector<std::string> words;
};

// One text is written: an option that chooses it excludes the others.
void choose_text(tune_arguments& given, const char* option) {
  if (!given.text_option.empty() && given.text_option != option)
    throw input_error(given.text_option + " and " + option + " ask for two texts: give one");
  given.text_option = option;
}

using row = option<tune_arguments>;
template <velo_tuning_format format>
constexpr row writes(const char* name) {
  return {name,
          [](tune_arguments& given, const char* option, const std::string&) {
            choose_text(given, option);
            given.format = format;
          },
          true};
}
constexpr row options[] = {
    {"--profile", [](tune_arguments& given, const char* option,
                     const std::string& word) { set_file(given.profile, word, option); }},
    {"--accelerators",
     [](tune_arguments& given, const char* option, const std::string& word) {
       set_count(given.desc.accelerators, word, option, 65536);
     }},
    {"--top", [](tune_arguments& given, const char* option,
                 const std::string& word) { set_count(given.desc.keep, word, option, 10000); }},
    writes<VELO_TUNING_JSON>("--json"),
    writes<VELO_TUNING_REJECTED>("--rejected"),
    writes<VELO_TUNING_ASSUMPTIONS>("--assumptions"),
    {"--pretrain",
     [](tune_arguments& given, const char* option, const std::string&) {
       choose_text(given, option);
       given.pretrain = true;
     },
     true},
    {"--type",
     [](tune_arguments& given, const char* option, const std::string& word) {
       if (word != "white" && word != "black" && word != "mixed")
         throw input_error(std::string(option) + " wants white, black or mixed, not " +
                           (word.empty() ? "nothing" : word));
       given.type = word;
     }},
    {"--trial",
     [](tune_arguments& given, const char* option, const std::string& word) {
       if (word.empty()) throw input_error(std::string(option) + " wants a command");
       given.trial = word;
     }},
    {"--trials", [](tune_arguments& given, const char* option,
                    const std::string& word) { set_count(given.trials, word, option, 10000); }},
    {"--measure",
     [](tune_arguments& given, const char*, const std::string&) { given.measure = true; }, true},
    {"-o", [](tune_arguments& given, const char* option, const std::string& word) {
       set_file(given.output, word, option);
     }}};

// The path of the file that the config names, relative to the config; empty if it names none. The
// library checks the config.
std::string profile_of(const std::string& config_file, const std::string& config) {
  json_error_t error;
  const json read(json_loadb(config.data(), config.size(), 0, &error));
  std::string name = read == nullptr ? "" : text(read.get(), "profile");
  if (name.empty() || name[0] == '/') return name;
  const std::size_t slash = config_file.rfind('/');
  return slash == std::string::npos ? name : config_file.substr(0, slash + 1) + name;
}

// Which of the two files a failure is about: "config.model.layers, expected ..".
std::string in_file(const velo::error& failure, const std::string& config,
                    const std::string& profile) {
  const std::string about = failure.argument();
  const bool of_profile = about.compare(0, 7, "profile") == 0;
  return (of_profile ? profile : config) + ": " + sentence_of(failure);
}

bool is_runnable(const json_t* all, std::size_t plan) {
  return json_is_true(member(json_array_get(member(all, "plans"), plan), "runnable"));
}

bool pretrain_runs_any(const json_t* all) {
  for (std::size_t i = 0; i < json_array_size(member(all, "plans")); ++i)
    if (is_runnable(all, i)) return true;
  return false;
}

// Which plans of the table pretrain runs, as a sentence.
std::string pretrain_plans(const json_t* all) {
  if (!pretrain_runs_any(all))
    return "pretrain can run none of them: of the first, " +
           text(json_array_get(member(all, "plans"), 0), "not_runnable");
  return "pretrain can run the marked plans; --pretrain writes the first of them as its config";
}

// The table of a summary, which begins behind its first empty line with two rows of names and
// units, with a column that marks the plans that pretrain runs.
std::string with_marks(const std::string& summary, const json_t* all) {
  constexpr int width = 10;
  const auto cell = [](const char* word) {
    char made[width + 1];
    std::snprintf(made, sizeof made, "%*s", width, word);
    return std::string(made);
  };
  std::size_t end = summary.find("\n\n") + 1;
  std::string made = summary.substr(0, end + 1);
  for (std::size_t row = 0; row < json_array_size(member(all, "plans")) + 2; ++row) {
    const std::size_t begin = end + 1;
    end = summary.find('\n', begin);
    const char* mark = row == 0 ? "pretrain" : row > 1 && is_runnable(all, row - 2) ? "runs" : "-";
    made += summary.substr(begin, end - begin) + cell(row == 1 ? "" : mark) + "\n";
  }
  return made + summary.substr(end + 1);
}

// The tuning as JSON with the plans that pretrain can run marked.
json marked(const velo::tuning& found) {
  json all = parse(found.write<std::string>(VELO_TUNING_JSON));
  mark_plans(all.get());
  return all;
}

std::string written(const json_t* all) {
  const std::unique_ptr<char, void (*)(void*)> made(
      json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(12)), &free);
  if (made == nullptr) throw std::runtime_error("no memory for the plans");
  return std::string(made.get()) + "\n";
}

// The best plan that pretrain can run as its config. Nothing if there is none, with a message.
std::string pretrain_text(const velo::tuning& found) {
  if (found.info().plans == 0) return "";
  const json all = marked(found);
  for (std::size_t i = 0; i < json_array_size(member(all.get(), "plans")); ++i)
    if (is_runnable(all.get(), i)) return pretrain_config(all.get(), i);
  std::fprintf(stderr, "velo: %s\n", pretrain_plans(all.get()).c_str());
  return "";
}

void write(const std::string& text, const std::string& file) {
  if (file.empty())
    std::fputs(text.c_str(), stdout);
  else if (!text.empty())
    write_file(file, text);
}

constexpr std::int32_t black_trials = 32, mixed_trials = 3, most_plans = 10000;

// Refuses options that do not go with the type, and asks for as many plans as black has to see.
void prepare_type(tune_arguments& given) {
  if (given.type == "white") {
    if (!given.trial.empty() || given.trials > 0)
      throw input_error("--type white runs nothing: --trial and --trials are of black and mixed");
    return;
  }
  if (given.trial.empty())
    throw input_error("--type " + given.type +
                      " decides by measured steps and has none: --trial COMMAND runs plans, "
                      "\"pretrain --paths TEXT --transport local\"");
  if (given.format == VELO_TUNING_REJECTED || given.format == VELO_TUNING_ASSUMPTIONS)
    throw input_error("--type " + given.type +
                      " orders plans: not with --rejected and --assumptions");
  const bool black = given.type == "black";
  if (black) given.desc.keep = most_plans;
  if (given.trials == 0) given.trials = black ? black_trials : mixed_trials;
}

// The text of plans that were run; empty where none has a time.
std::string tried_text(const velo::tuning& found, const tune_arguments& given) {
  const json all = marked(found);
  if (!pretrain_runs_any(all.get())) {
    std::fprintf(stderr, "velo: %s\n", pretrain_plans(all.get()).c_str());
    return "";
  }
  try_plans(all.get(), {given.trial, given.trials, given.type == "black"});
  if (!has_trial(all.get())) {
    std::fprintf(stderr, "velo: no plan ran\n%s", trials_text(all.get()).c_str());
    return "";
  }
  if (given.pretrain) return pretrain_config(all.get(), 0);
  if (given.format != VELO_TUNING_JSON) return trials_text(all.get());
  return written(all.get());
}

// --measure: a profile instead of plans.
int write_profile(const std::string& config, const tune_arguments& given) {
  if (!given.profile.empty() || given.type != "white" || given.pretrain ||
      given.format != VELO_TUNING_SUMMARY)
    throw input_error(
        "--measure writes a profile, not plans: not with --profile, --type, --json, --rejected, "
        "--assumptions or --pretrain");
  write(measured_profile(config, given.words[0]), given.output);
  return done;
}

std::string text_of(const velo::tuning& found, const tune_arguments& given) {
  if (given.type != "white" && found.info().plans > 0) return tried_text(found, given);
  if (given.pretrain) return pretrain_text(found);
  if (given.format == VELO_TUNING_JSON) return written(marked(found).get());
  std::string text = found.write<std::string>(given.format);
  if (given.format != VELO_TUNING_SUMMARY) return text;
  if (found.info().plans > 0) {
    const json all = marked(found);
    text = with_marks(text, all.get()) + "\n" + pretrain_plans(all.get()) + "\n";
  }
  return text + "\nWhat the numbers rest on: velo tune .. --assumptions\n";
}

void say_nearest(const velo::tuning& found) {
  const velo_tuning_info info = found.info();
  if (info.nearest < 0) {
    std::fputs("velo: no layout has a valid shape\n", stderr);
    return;
  }
  const velo_tuning_rejection nearest = found.rejection(info.nearest);
  const velo_tuning_layout& l = nearest.layout;
  std::fprintf(stderr,
               "velo: nothing fits; nearest is tp %d, pp %d, vpp %d, dp %d, cp %d, ep %d, "
               "micro-batch %d: %s\n",
               l.tp, l.pp, l.vpp, l.dp, l.cp, l.ep, l.micro_batch, nearest.reason);
}

}  // namespace

int tune(const std::vector<std::string>& words) {
  tune_arguments given;
  parse_options(words, options, given);
  if (given.words.size() != 1) throw input_error("tune wants one CONFIG.json; velo help tune");
  prepare_type(given);
  if (!given.output.empty()) require_writable(given.output);
  const std::string config = read_file(given.words[0]);
  if (given.measure) return write_profile(config, given);
  const std::string file =
      given.profile.empty() ? profile_of(given.words[0], config) : given.profile;
  const std::string profile = file.empty() ? "" : read_file(file);
  given.desc.config = config.data();
  given.desc.config_length = config.size();
  if (!file.empty()) {
    given.desc.profile = profile.data();
    given.desc.profile_length = profile.size();
  }

  velo::tuning found;
  try {
    found = velo::tuning::search(given.desc);
  } catch (const velo::error& failure) {
    throw input_error(in_file(failure, given.words[0], file));
  }
  const std::string text = text_of(found, given);
  write(text, given.output);
  if (found.info().plans == 0) say_nearest(found);
  return found.info().plans == 0 || text.empty() ? no_solution : done;
}

}  // namespace command
