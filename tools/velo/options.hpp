// The words after a command's name, sorted by a table of the command's own into options and the
// rest.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"

namespace command {

// An option: its name, and the function that takes the word after it. `alone`: no word follows.
template <class Given>
struct option {
  const char* name;
  void (*set)(Given& given, const char* name, const std::string& word);
  bool alone = false;
};

// Most options take a number of things or the name of a file. These throw input_error.
inline void set_count(std::int32_t& count, const std::string& word, const char* option,
                      std::int32_t most = std::numeric_limits<std::int32_t>::max()) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, count);
  if (error == std::errc() && stop == end && count >= 1 && count <= most) return;
  const bool bounded = most < std::numeric_limits<std::int32_t>::max();
  throw input_error(std::string(option) + " wants a number from 1" +
                    (bounded ? " to " + std::to_string(most) : "") + ", not " +
                    (word.empty() ? "nothing" : word));
}
inline void set_file(std::string& file, const std::string& word, const char* option) {
  if (word.empty()) throw input_error(std::string(option) + " wants the name of a file");
  file = word;
}

// Throws input_error for an option that the table does not have, naming the closest. Underscores
// in an option are dashes, as they are in pretrain's. Words that are no options become given.words.
template <class Given, std::size_t count>
void parse_options(const std::vector<std::string>& words, const option<Given> (&table)[count],
                   Given& given) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') {
      given.words.push_back(word);
      continue;
    }
    const option<Given>* found = nullptr;
    std::string dashed = word;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    std::vector<std::string> names = {"--help"};
    for (const option<Given>& row : table) {
      if (dashed == row.name) found = &row;
      names.emplace_back(row.name);
    }
    if (found == nullptr) {
      const std::string meant = did_you_mean(dashed, names);
      throw input_error("unknown option " + word +
                        (meant.empty() ? "; --help lists what there is" : meant));
    }
    found->set(given, found->name, found->alone || i + 1 == words.size() ? "" : words[i + 1]);
    if (!found->alone) ++i;
  }
}

}  // namespace command
