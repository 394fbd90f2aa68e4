// Flags in any order; the settings among them are applied last.
#include "arguments.hpp"

#include <map>
#include <utility>

#include "failure.hpp"

namespace pretrain {
namespace {

// Splits --name value and --name=value; gives the settings' flags back in order and the
// others by name.
std::vector<std::pair<std::string, std::string>> split(const std::vector<std::string>& words,
                                                       std::map<std::string, std::string>& modes,
                                                       bool& help) {
  std::vector<std::pair<std::string, std::string>> flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      help = true;
      continue;
    }
    if (word.compare(0, 2, "--") != 0) fail("%s: not a flag; --help lists them", word.c_str());
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      fail("--%s: its value is missing", name.c_str());
    }
    if (name == "config" || name == "resume" || name == "generate" || name == "load") {
      if (!modes.emplace(name, value).second) fail("--%s: given twice", name.c_str());
    } else {
      flags.emplace_back(name, value);
    }
  }
  return flags;
}

}  // namespace

void parse_arguments(const std::vector<std::string>& words, arguments& into) {
  std::map<std::string, std::string> modes;
  const auto flags = split(words, modes, into.help);
  if (into.help) return;
  into.generate = modes.count("generate") > 0;
  if (into.generate) into.prompt = modes["generate"];
  if (into.generate != (modes.count("load") > 0)) fail("--generate and --load belong together");
  if (into.generate && modes.count("resume")) fail("--generate and --resume exclude each other");

  configuration saved;
  for (const char* mode : {"resume", "load"}) {
    if (!modes.count(mode)) continue;
    into.checkpoint = std::make_unique<checkpoint_reader>(modes[mode]);
    for (configuration* each : {&saved, &into.config}) {
      each->read_text(into.checkpoint->settings(), into.checkpoint->settings_name());
      each->values.run.stop_after = 0;  // that wish is fulfilled
    }
  }
  if (modes.count("config")) into.config.read_file(modes["config"]);
  for (const auto& [name, value] : flags) {
    if (!into.config.set(name, value)) fail("--%s: no such flag; --help lists them", name.c_str());
  }
  into.config.check();
  if (!into.checkpoint) return;
  into.config.require_same(saved, "model", "the checkpoint");
  if (!into.generate) into.config.require_same(saved, "data", "the checkpoint");
}

std::string help_text() {
  return "pretrain: trains a Llama-style language model on bytes, using velo.\n"
         "\n"
         "  pretrain [--config FILE.json] [SETTING]..   train with these settings\n"
         "  pretrain --resume DIR [SETTING]..           go on from a checkpoint, as if never "
         "stopped\n"
         "  pretrain --generate PROMPT --load DIR       sample from a checkpoint\n"
         "\n"
         "A setting comes from the command line, else from the JSON file, {\"model\": {\"hidden\": "
         "512}}, else (when\n"
         "resuming) from the checkpoint, else it has its default, in brackets. Ctrl-C saves a "
         "checkpoint and leaves.\n"
         "Exit codes: 0 done, 1 bad input or failure, 130 interrupted.\n" +
         configuration().help();
}

}  // namespace pretrain
