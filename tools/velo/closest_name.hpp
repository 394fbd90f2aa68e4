// "Did you mean ..?": the known name that a mistyped one most resembles.
//
// Resemblance is the number of letters to insert, drop, change or swap with the next one: one for
// every three letters of the word is forgiven; capitals count as small letters. Failing that, the
// first name the word is a part of. Quadratic in the words' length; not hot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace command {

inline std::size_t edits_between(const std::string& a, const std::string& b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> edits((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return edits[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      const std::size_t changed = at(i - 1, j - 1) + (a[i - 1] != b[j - 1]);
      at(i, j) = std::min({changed, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

inline std::string lowered(std::string word) {
  for (char& letter : word)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return word;
}

// Empty when none resembles it. Of names that resemble it alike, the first.
inline std::string closest_name(const std::string& word, const std::vector<std::string>& names) {
  if (word.size() < 2) return "";
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string found;
  for (const std::string& name : names) {
    if (word.size() >= name.size() + best) continue;  // too long to be it, and to compare
    const std::size_t edits = edits_between(lowered(word), lowered(name));
    if (edits < best && edits < name.size()) {
      best = edits;
      found = name;
    }
  }
  if (!found.empty() || word.size() < 3) return found;
  const auto part = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.find(word) != std::string::npos;
  });
  return part == names.end() ? "" : *part;
}

// "; did you mean --steps?", or nothing; `before` stands before the name.
inline std::string did_you_mean(const std::string& word, const std::vector<std::string>& names,
                                const std::string& before = "") {
  const std::string found = closest_name(word, names);
  return found.empty() ? "" : "; did you mean " + before + found + "?";
}

}  // namespace command
