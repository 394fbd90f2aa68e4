// How many layers each stage of a model has: dealt out evenly, or as a list says.
//
// Where the stages do not divide the layers, the first ones have one more. A list has a count for
// each stage, which may be 0: "0,1,1,3" in the order of the stages, or, in brackets, for each rank
// those of its stages in that order: "[[0,1],[1,1],[1,1],[3,0]]". pretrain and `velo sharding` both
// read it here, so that they agree on who has which layer. O(stages + text).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace command {

inline std::vector<std::int64_t> even_layers(std::int64_t layers, std::size_t stages) {
  const auto all = static_cast<std::int64_t>(stages);
  std::vector<std::int64_t> counts(stages, layers / all);
  std::for_each(counts.begin(), counts.begin() + layers % all, [](std::int64_t& n) { ++n; });
  return counts;
}

// Takes the places without a layer from the places of each stage; `empty` ascends, in the model.
inline std::vector<std::int64_t> without_places(std::vector<std::int64_t> places,
                                                const std::vector<std::int64_t>& empty) {
  std::int64_t end = 0;
  auto next = empty.begin();
  for (std::int64_t& count : places) {
    end += count;
    for (; next != empty.end() && *next < end; ++next) --count;
  }
  return places;
}

class stage_list {
 public:
  static constexpr const char* form =
      "a list of counts from 0, like 0,1,1,3 or, by rank, [[0,1],[1,1],[1,1],[3,0]]";
  // Nothing if the text is no such list.
  static std::optional<stage_list> read(const std::string& text);

  // The counts by stage; or the counts that the list should have, and what it has instead.
  struct result {
    std::vector<std::int64_t> counts;
    std::string expected, got;
    bool is_sum = false;  // the sum is what is wrong
  };
  // Of stages on these ranks, which have so many layers together.
  result of(const std::vector<std::int64_t>& rank_of, std::int64_t layers) const;

 private:
  bool read_counts(const std::string& text, std::size_t& at);
  result in_order(const std::vector<std::int64_t>& rank_of) const;

  bool by_rank_ = false;
  std::vector<std::vector<std::int64_t>> counts_;  // one list, or one for each rank
};

// Reads "0,1,1" from `at` on.
inline bool stage_list::read_counts(const std::string& text, std::size_t& at) {
  std::vector<std::int64_t>& to = counts_.emplace_back();
  do {
    if (!to.empty()) ++at;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    constexpr std::size_t most_digits = 6;
    if (end == at || end - at > most_digits) return false;
    to.push_back(std::stoll(text.substr(at, end - at)));
    at = end;
  } while (at < text.size() && text[at] == ',');
  return true;
}

inline std::optional<stage_list> stage_list::read(const std::string& given) {
  std::string text = given;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  stage_list made;
  std::size_t at = 0;
  if (text.rfind("[[", 0) != 0)
    return made.read_counts(text, at) && at == text.size() ? std::optional(made) : std::nullopt;
  made.by_rank_ = true;
  do {
    at += 1;  // the first bracket, or a comma
    if (at >= text.size() || text[at] != '[' || !made.read_counts(text, ++at)) return std::nullopt;
    if (at >= text.size() || text[at++] != ']') return std::nullopt;
  } while (at < text.size() && text[at] == ',');
  return at + 1 == text.size() && text[at] == ']' ? std::optional(made) : std::nullopt;
}

inline stage_list::result stage_list::in_order(const std::vector<std::int64_t>& rank_of) const {
  const auto wrong = [](const std::string& expected, std::size_t got) {
    return result{{}, expected, std::to_string(got), false};
  };
  if (!by_rank_) {
    if (counts_[0].size() == rank_of.size()) return {counts_[0], "", "", false};
    return wrong(std::to_string(rank_of.size()) + " counts, one a stage", counts_[0].size());
  }
  const auto ranks =
      static_cast<std::size_t>(*std::max_element(rank_of.begin(), rank_of.end())) + 1;
  if (counts_.size() != ranks)
    return wrong(std::to_string(ranks) + " lists, one a rank", counts_.size());
  result made;
  std::vector<std::size_t> taken(ranks);
  for (const std::int64_t rank : rank_of) {
    const auto r = static_cast<std::size_t>(rank);
    made.counts.push_back(taken[r] < counts_[r].size() ? counts_[r][taken[r]] : 0);
    ++taken[r];
  }
  for (std::size_t r = 0; r < ranks; ++r)
    if (taken[r] != counts_[r].size())
      return wrong(std::to_string(taken[r]) + (taken[r] == 1 ? " count" : " counts") +
                       ", one a stage, of rank " + std::to_string(r),
                   counts_[r].size());
  return made;
}

inline stage_list::result stage_list::of(const std::vector<std::int64_t>& rank_of,
                                         std::int64_t layers) const {
  result made = in_order(rank_of);
  std::int64_t sum = 0;
  for (const std::int64_t count : made.counts) sum += count;
  if (made.expected.empty() && sum != layers)
    return {{}, "a sum of " + std::to_string(layers), std::to_string(sum), true};
  return made;
}

}  // namespace command
