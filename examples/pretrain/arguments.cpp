// Flags in any order; the settings among them are applied last.
#include "examples/pretrain/arguments.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/ranks/launch.hpp"

namespace pretrain {
namespace {

const std::vector<std::string> modes = {"config", "resume", "load", "generate"};

struct split_words {
  std::vector<std::pair<std::string, std::string>> settings;  // in order
  std::map<std::string, std::string> modes;
  bool help = false;
};

// Splits --name value and --name=value.
split_words split(const std::vector<std::string>& words, const configuration& settings) {
  split_words result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-h" || word == "help") {
      result.help = true;
      continue;
    }
    if (word.compare(0, 2, "--") != 0) fail("%s: not a flag; --help lists them", word.c_str());
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::vector<std::string> others = modes;
    others.push_back("help");
    settings.require_flag(name, others);
    if (name == "help") {
      result.help = true;
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      fail("--%s: its value is missing", name.c_str());
    }
    if (std::find(modes.begin(), modes.end(), name) == modes.end()) {
      result.settings.emplace_back(name, value);
    } else if (!result.modes.emplace(name, value).second) {
      fail("--%s: given twice", name.c_str());
    }
  }
  return result;
}

// Settings of a checkpoint: all of them, or the model alone for a new run.
void take_checkpoint(const std::string& path, arguments& into, configuration& saved) {
  into.checkpoint = std::make_unique<checkpoint_reader>(path);
  const auto take = [&](configuration& to) {
    to.read_text(into.checkpoint->trainer(), into.checkpoint->trainer_name(), "settings");
    to.values.run.stop_after = 0;  // it has stopped there
  };
  take(saved);
  saved.check();
  into.checkpoint->require_model(saved.values.model, saved.values.data.sequence);
  if (into.resume || into.generate) {
    take(into.config);
    // The way a run was started is no part of it: a launcher says how many ranks there are. A
    // process without a launcher starts as many as there were.
    if (is_launched()) {
      into.config.reset("ranks");
      into.config.reset("transport");
    }
  } else {
    into.config.adopt(saved, "model");
  }
  // The folder is the run's even if it was moved or is named from elsewhere.
  if (into.resume && !into.checkpoint->out().empty())
    into.config.values.run.out = into.checkpoint->out();
}

// The model of a folder of transformers, which has no other settings.
void take_llama(const std::string& path, arguments& into, configuration& saved) {
  if (into.resume)
    fail("--resume: %s has weights alone, and no trainer.json; --load starts a run with them",
         path.c_str());
  into.llama = std::make_unique<llama_folder>(path);
  saved.read_llama(into.llama->config(), into.llama->config_name());
  saved.check();
  into.llama->require_model(saved.values.model);
  into.config.adopt(saved, "model");
}

// Refuses settings that are not those of what is loaded. Weights of a folder of transformers are
// read as either dtype. The coefficient of the balance loss and the capacity of experts are a new
// run's own.
void require_saved(const arguments& with, configuration& saved) {
  const model_settings& own = with.config.values.model;
  if (!with.resume) {
    model_settings& m = saved.values.model;
    m.balance_loss = own.balance_loss, m.capacity_factor = own.capacity_factor;
    m.capacity_drop = own.capacity_drop, m.capacity_pad = own.capacity_pad;
    m.capacity_by_rank = own.capacity_by_rank;
  }
  if (with.llama) {
    saved.values.model.dtype = with.config.values.model.dtype;
    with.config.require_same(saved, "model", with.llama->config_name());
  }
  if (with.checkpoint) with.config.require_same(saved, "model", "the checkpoint");
  if (with.resume) with.config.require_same(saved, "data", "the checkpoint");
}

}  // namespace

void parse_arguments(const std::vector<std::string>& words, arguments& into) {
  split_words given = split(words, into.config);
  into.words = words;
  into.help = given.help;
  if (into.help) return;
  const auto has = [&](const char* mode) { return given.modes.count(mode) > 0; };
  into.generate = has("generate");
  into.resume = has("resume");
  if (into.generate && into.resume) fail("--generate and --resume exclude each other");
  if (into.resume && has("load")) fail("--resume and --load exclude each other");
  if (into.generate && !has("load")) fail("--generate needs --load DIR, the checkpoint to sample");
  if (into.generate) into.prompt = given.modes["generate"];

  configuration saved;
  if (into.resume || has("load")) {
    const std::string path = given.modes[into.resume ? "resume" : "load"];
    is_llama_folder(path) ? take_llama(path, into, saved) : take_checkpoint(path, into, saved);
  }
  if (has("config")) into.config.read_file(given.modes["config"]);
  for (const auto& [name, value] : given.settings) into.config.set(name, value);
  if (into.resume && into.config.has_own(saved, "gradients"))
    into.config.refuse("gradients", "are of the first step, which the checkpoint has done");
  if (into.resume) into.config.reset("gradients");
  for (const char* cut : {"tp", "cp", "ep", "pp"})
    if (into.checkpoint && into.config.has_own(saved, cut) && !into.config.has_own(saved, "ranks"))
      into.config.reset("ranks");  // another cut has as many as it needs
  into.config.check();
  require_saved(into, saved);
}

std::string help_text() {
  return R"(pretrain: trains a Llama-style language model on bytes, using velo.

  pretrain [SETTING]..                   train a new model
  pretrain --resume DIR [SETTING]..      go on as if the run had never stopped
  pretrain --load DIR [SETTING]..        train on from its weights, as a new run
  pretrain --generate PROMPT --load DIR  write text
  pretrain --config FILE.json ..         settings from a file, with any of these

DIR is a checkpoint, or the folder that a run was given as --out; with --load
also a Llama that transformers saved: config.json, and model.safetensors or
model.safetensors.index.json with the files that it names. A setting
comes from its flag (--kv_heads 2 or --kv-heads=2), else from the file,
{"model": {"hidden": 512}}, else (when resuming) from the checkpoint, else it
has its default, in brackets. Ctrl-C or SIGTERM saves a checkpoint and leaves; a
second one leaves at once. Exit codes: 0 done, 1 bad input or failure, 128 + the
number of a signal that interrupted the run or ended a rank (130 Ctrl-C, 143
SIGTERM, 137 SIGKILL).
)" + configuration().help();
}

}  // namespace pretrain
