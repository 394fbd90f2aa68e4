// velo experts: on which ranks each expert lies, so that ranks have equal work.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/job.hpp"
#include "tools/velo/options.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const experts_help =
    "usage: velo experts --ranks R --loads ROWS,.. [--slots S] [--current EXPERT,..]\n"
    "                    [--tolerance X] [--format summary|json|svg] [-o FILE]\n\n"
    "Which experts of a layer each of R ranks has, so that the busiest rank has little more rows\n"
    "than the mean: busy experts get copies, as many as that needs, and their rows are dealt\n"
    "evenly to the ranks that have one.\n\n"
    "  --loads ..       rows of each expert, say of the last steps\n"
    "  --slots S        experts that a rank has room for (one more than its equal part)\n"
    "  --current ..     S experts for each rank as they lie now, -1 in empty slots: they stay\n"
    "                   while they are even enough or no plan is better; else few move\n"
    "  --tolerance X    the busiest rank may have (1 + X) times the mean (0.1)\n"
    "  --format FORMAT  summary (rows and experts by rank), json (`ranks`, `slots`, `experts`,\n"
    "                   `copies`, `moved`, `kept`, `rows` by rank, `placement`: experts by rank,\n"
    "                   `ranks_of`: ranks by expert), svg\n"
    "  -o FILE          where to write it\n\n"
    "Exit codes: 0 done, 1 bad input.\n";

namespace {

struct wishes {
  velo_expert_plan_desc desc = VELO_EXPERT_PLAN_DESC_INIT;
  std::vector<std::int64_t> loads, current;
  std::string format = "summary", output;
  std::vector<std::string> words;
};

double number(const char* option, const std::string& word) {
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end)
    throw input_error(std::string(option) + " wants a number, not " +
                      (word.empty() ? "nothing" : word));
  return value;
}

constexpr option<wishes> options[] = {
    {"--ranks", [](wishes& to, const char*,
                   const std::string& word) { to.desc.ranks = integer("ranks", word); }},
    {"--slots", [](wishes& to, const char*,
                   const std::string& word) { to.desc.slots = integer("slots", word); }},
    {"--loads", [](wishes& to, const char*,
                   const std::string& words) { to.loads = integers("loads", words); }},
    {"--current", [](wishes& to, const char*,
                     const std::string& words) { to.current = integers("current", words); }},
    {"--tolerance", [](wishes& to, const char* name,
                       const std::string& word) { to.desc.tolerance = number(name, word); }},
    {"--format",
     [](wishes& to, const char*, const std::string& word) {
       if (word != "summary" && word != "json" && word != "svg")
         throw input_error("--format wants summary, json or svg");
       to.format = word;
     }},
    {"-o",
     [](wishes& to, const char*, const std::string& word) { set_file(to.output, word, "-o"); }}};

// The experts of a rank, those that other ranks have, too, with a star.
std::string experts_text(const velo::expert_plan& plan, std::int64_t rank) {
  std::vector<std::int64_t> own(static_cast<std::size_t>(plan.experts(rank, nullptr, 0)));
  (void)plan.experts(rank, own.data(), static_cast<std::int64_t>(own.size()));
  std::string text;
  for (const std::int64_t expert : own)
    text += (text.empty() ? "" : " ") + std::to_string(expert) +
            (plan.ranks(expert, nullptr, 0) > 1 ? "*" : "");
  return text;
}

// The rows that a rank gets of an expert's: its copies take equal parts, the first ones one more.
std::int64_t rows_of(const velo::expert_plan& plan, const wishes& given, std::int64_t rank) {
  std::int64_t sum = 0;
  for (std::int64_t e = 0; e < given.desc.experts; ++e) {
    std::vector<std::int64_t> its(static_cast<std::size_t>(plan.ranks(e, nullptr, 0)));
    const auto copies = static_cast<std::int64_t>(its.size());
    (void)plan.ranks(e, its.data(), copies);
    const auto place = std::find(its.begin(), its.end(), rank) - its.begin();
    const std::int64_t rows = given.loads[static_cast<std::size_t>(e)];
    if (place < copies) sum += rows / copies + (place < rows % copies ? 1 : 0);
  }
  return sum;
}

std::string summary_of(const velo::expert_plan& plan, const wishes& given) {
  const velo_expert_plan_info info = plan.info();
  const double mean = static_cast<double>(info.rows) / static_cast<double>(info.ranks);
  char line[160];
  std::snprintf(line, sizeof line, "busiest rank: %lld rows, %.3f of the mean %.1f\n",
                static_cast<long long>(info.busiest),
                mean > 0 ? static_cast<double>(info.busiest) / mean : 1.0, mean);
  std::string text = line;
  text += "copies: " + std::to_string(info.copies - info.experts) + " beside " +
          std::to_string(info.experts) + " experts";
  if (given.desc.current != nullptr)
    text += info.kept != 0 ? "; all stay" : "; " + std::to_string(info.moved) + " move";
  text += "\n\n";
  table rows({"rank", "rows", "experts (*: with copies)"});
  for (std::int64_t r = 0; r < std::min<std::int64_t>(info.ranks, 64); ++r)
    rows.add({std::to_string(r), std::to_string(rows_of(plan, given, r)), experts_text(plan, r)});
  return text + rows.str();
}

}  // namespace

int experts(const std::vector<std::string>& words) {
  wishes given;
  given.desc.ranks = given.desc.slots = 0;
  parse_options(words, options, given);
  if (!given.words.empty()) throw input_error("experts wants options alone, not " + given.words[0]);
  if (given.loads.empty()) throw input_error("experts wants --loads ROWS,..; velo help experts");
  if (given.desc.ranks == 0) throw input_error("experts wants --ranks R, 1 or more");
  given.desc.experts = static_cast<std::int64_t>(given.loads.size());
  if (given.desc.slots == 0)
    given.desc.slots = (given.desc.experts - 1) / std::max<std::int64_t>(1, given.desc.ranks) + 2;
  given.desc.loads = given.loads.data();
  if (!given.current.empty()) {
    const auto size = static_cast<std::int64_t>(given.current.size());
    if (given.desc.ranks < 1 || size % given.desc.ranks != 0 ||
        size / given.desc.ranks != given.desc.slots)
      throw input_error("--current: expected " + std::to_string(given.desc.slots) +
                        " experts for each of " + std::to_string(given.desc.ranks) +
                        " ranks, got " + std::to_string(size));
    given.desc.current = given.current.data();
  }
  const velo::expert_plan plan = velo::expert_plan::create(given.desc);
  const std::string text = given.format == "json"  ? plan.write<std::string>(VELO_EXPERT_PLAN_JSON)
                           : given.format == "svg" ? plan.write<std::string>(VELO_EXPERT_PLAN_SVG)
                                                   : summary_of(plan, given);
  if (given.output.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_file(given.output, text);
  return done;
}

}  // namespace command
