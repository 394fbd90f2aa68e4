// The options that most commands share; a command ignores those that it does not use.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tools/velo/commands.hpp"
#include "tools/velo/options.hpp"
#include "tools/velo/stage_layers.hpp"

namespace command {
namespace {

void set_setting(arguments& given, const char*, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    throw input_error("--set wants key=value, as in --set isa=avx2");
  given.settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
}

void set_number(std::uint64_t& number, const std::string& word, const char* wanted,
                std::uint64_t least = 1, std::uint64_t most = ~std::uint64_t{0} >> 1) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    throw input_error(wanted);
}

void set_seconds(arguments& given, const char*, const std::string& word) {
  char* stop = nullptr;
  given.seconds = std::strtod(word.c_str(), &stop);
  if (word.empty() || *stop != 0 || !std::isfinite(given.seconds) || given.seconds < 0)
    throw input_error("--time wants seconds, as in --time 2.5");
}

// The options that describe a job of many ranks; velo topology and velo sharding read their words.
void set_layout(arguments& given, const char* option, const std::string& word) {
  if (word.empty())
    throw input_error(std::string(option) + " wants a word behind it; velo help topology");
  given.layout.emplace_back(option + 2, word);
}

void set_noop_layers(arguments& given, const char*, const std::string& word) {
  std::vector<std::int64_t>& all = given.noop_layers;
  const char *at = word.data(), *end = at + word.size();
  for (;; ++at) {
    std::int64_t place = 0;
    const auto [stop, error] = std::from_chars(at, end, place);
    if (error != std::errc() || place < 0 || (stop != end && *stop != ','))
      throw input_error("--noop-layers wants places, as in 0,7");
    all.push_back(place);
    at = stop;
    if (at == end) break;
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void set_stage_layers(arguments& given, const char*, const std::string& word) {
  if (!stage_list::read(word))
    throw input_error(std::string("--stage-layers: expected ") + stage_list::form + ", got \"" +
                      word.substr(0, 80) + "\"");
  given.stage_layers = word;
}

constexpr option<arguments> options[] = {
    {"--json", [](arguments& given, const char*, const std::string&) { given.json = true; }, true},
    {"--no-measure",
     [](arguments& given, const char*, const std::string&) { given.measure = false; }, true},
    {"--hybrid", [](arguments& given, const char*, const std::string&) { given.hybrid = true; },
     true},
    {"--twins", [](arguments& given, const char*, const std::string&) { given.twins = true; },
     true},
    {"--no-sequence-parallel",
     [](arguments& given, const char*, const std::string&) { given.sequence_parallel = false; },
     true},
    {"--noop-layers", &set_noop_layers},
    {"--stage-layers", &set_stage_layers},
    {"--pipeline",
     [](arguments& given, const char*, const std::string& word) { given.pipeline = word; }},
    {"--vpp",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.vpp, word, "--vpp wants a number from 1 to 1024, as in --vpp 2", 1, 1024);
     }},
    {"--to",
     [](arguments& given, const char*, const std::string& word) {
       given.has_other_layout = true, given.other_layout = word;
     }},
    {"--set", &set_setting},
    {"--capacity",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.capacity, word,
                  "--capacity wants a number of bytes, as in --capacity 1048576; 0 = none", 0);
     }},
    {"--size",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.size, word, "--size wants a number of bytes, as in --size 268435456");
     }},
    {"--block",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.block, word, "--block wants a number of bytes, as in --block 1048576");
     }},
    {"--depth",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.depth, word, "--depth wants a number, as in --depth 4");
     }},
    {"--threads",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.threads, word, "--threads wants a number from 1 to 64, as in --threads 2",
                  1, 64);
     }},
    {"--ranks",
     [](arguments& given, const char*, const std::string& word) {
       set_number(given.ranks, word, "--ranks wants a number from 1 to 64, as in --ranks 4", 1, 64);
     }},
    {"--time", &set_seconds},
    {"-o", [](arguments& given, const char*,
              const std::string& word) { set_file(given.output, word, "-o"); }},
    {"--svg", [](arguments& given, const char*,
                 const std::string& word) { set_file(given.picture, word, "--svg"); }},
    {"--pool",
     [](arguments& given, const char*, const std::string& word) {
       if (word != "velo" && word != "plan" && word != "model")
         throw input_error("--pool wants velo, plan or model");
       given.pool = word;
     }},
    {"--tp", &set_layout},
    {"--cp", &set_layout},
    {"--ep", &set_layout},
    {"--dp", &set_layout},
    {"--pp", &set_layout},
    {"--etp", &set_layout},
    {"--order", &set_layout},
    {"--gtp", &set_layout},
    {"--egtp", &set_layout},
    {"--instances", &set_layout},
    {"--cp-levels", &set_layout},
    {"--cp-ulysses", &set_layout},
    {"--cp-window", &set_layout},
    {"--tp-x", &set_layout},
    {"--tp-y", &set_layout},
    {"--rank", &set_layout}};

}  // namespace

arguments parse_arguments(const std::vector<std::string>& words) {
  arguments given;
  parse_options(words, options, given);
  return given;
}

}  // namespace command
