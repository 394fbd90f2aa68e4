// Options are the same for all commands; what a command does not use does no harm.
#include "commands.hpp"
#include "examples/closest_name.hpp"

namespace command {

arguments parse_arguments(const std::vector<std::string>& words) {
  arguments given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      given.help = true;
    } else if (word == "--json") {
      given.json = true;
    } else if (word == "--no-measure") {
      given.measure = false;
    } else if (word == "--set") {
      const std::string setting = i + 1 < words.size() ? words[++i] : "";
      const std::size_t equals = setting.find('=');
      if (equals == std::string::npos || equals == 0)
        throw input_error("--set wants key=value, as in --set isa=avx2");
      given.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    } else if (word.size() > 1 && word[0] == '-') {
      const std::string meant =
          examples::did_you_mean(word, {"--help", "--json", "--no-measure", "--set"});
      throw input_error("unknown option " + word +
                        (meant.empty() ? "; --help lists what there is" : meant));
    } else {
      given.words.push_back(word);
    }
  }
  return given;
}

}  // namespace command
