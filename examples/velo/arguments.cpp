// Options are the same for all commands; what a command does not use does no harm. The table has
// one row for each: those that take a word, and what becomes of it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "commands.hpp"
#include "examples/closest_name.hpp"

namespace command {
namespace {

void set_setting(arguments& given, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    throw input_error("--set wants key=value, as in --set isa=avx2");
  given.settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
}

void set_number(std::uint64_t& number, const std::string& word, const char* wanted) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || stop != end || number == 0 || number >> 63 != 0)
    throw input_error(wanted);
}

void set_seconds(arguments& given, const std::string& word) {
  char* stop = nullptr;
  given.seconds = std::strtod(word.c_str(), &stop);
  if (word.empty() || *stop != 0 || !std::isfinite(given.seconds) || given.seconds < 0)
    throw input_error("--time wants seconds, as in --time 2.5");
}

void set_file(std::string& file, const std::string& word, const char* option) {
  if (word.empty()) throw input_error(std::string(option) + " wants the name of a file");
  file = word;
}

struct option_row {
  const char* name;
  void (*set)(arguments& given, const std::string& word);  // nullptr: it takes no word
};
constexpr option_row options[] = {
    {"--help", nullptr},
    {"--json", nullptr},
    {"--no-measure", nullptr},
    {"--set", &set_setting},
    {"--capacity",
     [](arguments& given, const std::string& word) {
       set_number(given.capacity, word,
                  "--capacity wants a number of bytes, as in --capacity 1048576");
     }},
    {"--size",
     [](arguments& given, const std::string& word) {
       set_number(given.size, word, "--size wants a number of bytes, as in --size 268435456");
     }},
    {"--block",
     [](arguments& given, const std::string& word) {
       set_number(given.block, word, "--block wants a number of bytes, as in --block 1048576");
     }},
    {"--depth",
     [](arguments& given, const std::string& word) {
       set_number(given.depth, word, "--depth wants a number, as in --depth 4");
     }},
    {"--threads",
     [](arguments& given, const std::string& word) {
       set_number(given.threads, word, "--threads wants a number, as in --threads 2");
     }},
    {"--time", &set_seconds},
    {"-o", [](arguments& given, const std::string& word) { set_file(given.output, word, "-o"); }},
    {"--svg",
     [](arguments& given, const std::string& word) { set_file(given.picture, word, "--svg"); }},
    {"--pool", [](arguments& given, const std::string& word) {
       if (word != "velo" && word != "plan" && word != "model")
         throw input_error("--pool wants velo, plan or model");
       given.pool = word;
     }}};

// What describes a job of many ranks: velo topology reads their words.
constexpr const char* layout_options[] = {
    "--tp",        "--cp",   "--ep",   "--dp",        "--pp",        "--etp",
    "--order",     "--gtp",  "--egtp", "--instances", "--cp-levels", "--cp-ulysses",
    "--cp-window", "--tp-x", "--tp-y", "--buffers",   "--rank"};

bool set_layout(arguments& given, const std::string& option, const std::string* word) {
  if (std::find(std::begin(layout_options), std::end(layout_options), option) ==
      std::end(layout_options))
    return false;
  if (word == nullptr) throw input_error(option + " wants a word behind it; velo help topology");
  given.layout.emplace_back(option.substr(2), *word);
  return true;
}

const option_row& option_called(const std::string& word) {
  std::vector<std::string> names;
  for (const option_row& row : options) {
    if (word == row.name) return row;
    names.emplace_back(row.name);
  }
  names.insert(names.end(), std::begin(layout_options), std::end(layout_options));
  names.insert(names.end(), {"--hybrid", "--twins"});
  const std::string meant = examples::did_you_mean(word, names);
  throw input_error("unknown option " + word +
                    (meant.empty() ? "; --help lists what there is" : meant));
}

}  // namespace

arguments parse_arguments(const std::vector<std::string>& words) {
  arguments given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') {
      given.words.push_back(word);
    } else if (word == "--help" || word == "-h") {
      given.help = true;
    } else if (word == "--json") {
      given.json = true;
    } else if (word == "--no-measure") {
      given.measure = false;
    } else if (word == "--hybrid") {
      given.hybrid = true;
    } else if (word == "--twins") {
      given.twins = true;
    } else if (set_layout(given, word, i + 1 < words.size() ? &words[i + 1] : nullptr)) {
      ++i;
    } else {
      option_called(word).set(given, i + 1 < words.size() ? words[i + 1] : "");
      ++i;
    }
  }
  return given;
}

}  // namespace command
