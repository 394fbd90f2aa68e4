// Options of a job of many ranks.
#include "tools/velo/job.hpp"

#include <algorithm>
#include <charconv>

namespace command {

std::int64_t integer(const std::string& option, const std::string& word) {
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end)
    throw input_error("--" + option + ": expected a whole number, got \"" + word + "\"");
  return value;
}

std::vector<std::int64_t> integers(const std::string& option, const std::string& words) {
  std::vector<std::int64_t> all;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    all.push_back(integer(option, words.substr(at, end - at)));
    at = end + 1;
  }
  return all;
}

job::job(const arguments& given) {
  for (const auto& [option, word] : given.layout) set(option, word);
  desc_.hybrid = given.hybrid ? 1 : 0;
  desc_.twins = given.twins ? 1 : 0;
}

void job::set(const std::string& option, const std::string& word) {
  const struct {
    const char* option;
    std::int64_t* value;
  } sizes[] = {{"tp", &desc_.tp},
               {"cp", &desc_.cp},
               {"ep", &desc_.ep},
               {"dp", &desc_.dp},
               {"pp", &desc_.pp},
               {"etp", &desc_.etp},
               {"gtp", &desc_.gtp},
               {"egtp", &desc_.egtp},
               {"instances", &desc_.instances},
               {"cp-ulysses", &desc_.cp_ulysses},
               {"cp-window", &desc_.cp_window},
               {"tp-x", &desc_.tp_x},
               {"tp-y", &desc_.tp_y},
               {"rank", &rank_}};
  if (option == "order") {
    desc_.order = (order_ = word).c_str();
  } else if (option == "cp-levels") {
    levels_ = integers(option, word);
    desc_.cp_levels = levels_.data();
    desc_.cp_level_count = static_cast<std::int64_t>(levels_.size());
  } else {
    for (const auto& one : sizes)
      if (option == one.option) *one.value = integer(option, word);
    // velo reads 0 as "not given"; a user who typed it meant a size.
    for (const char* size : {"etp", "tp-x", "tp-y"})
      if (option == size && integer(option, word) == 0)
        throw input_error(option + ": expected 1 or more, got 0");
    if (option == "rank" && rank_ < 0) throw input_error("rank: expected 0 or more, got " + word);
  }
}

}  // namespace command
