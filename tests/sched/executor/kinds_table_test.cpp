// Compares the table of executor.h, which lists the actions of each kind's rows and the functions
// that an executor needs for them, with generated schedules and with the refusals of executors.
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sched/schedule/kind_name.hpp"
#include "tests/context.hpp"
#include "tests/sched/executor/team.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

using words = std::set<std::string>;

words words_of(const std::string& text) {
  words all;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
      word += c;
    else if (!word.empty())
      all.insert(std::exchange(word, ""));
  }
  return all;
}

// Reads the lines of the table from the header's comment: "NANOPIPE with SWAP" and its actions.
std::map<std::string, words> table() {
  std::ifstream header(VELO_SOURCE_DIR "/capi/include/velo/executor.h");
  std::map<std::string, words> all;
  std::string line;
  while (std::getline(header, line) && line.rfind(" *   GPIPE,", 0) != 0) {
  }
  for (; header && line.find("*/") == std::string::npos; std::getline(header, line)) {
    const std::size_t between = line.rfind("    ");
    if (line.rfind(" *   ", 0) != 0 || between == std::string::npos) continue;
    const std::string left = line.substr(5, line.find("   ", 5) - 5);
    words actions = words_of(line.substr(line.find("   ", 5)));
    for (const char* joins : {"and", "or"}) actions.erase(joins);
    std::istringstream kinds(left);
    for (std::string kind; std::getline(kinds, kind, ',');)
      all[kind.substr(kind.find_first_not_of(' '))] = actions;
  }
  return all;
}

std::string line_of(velo_schedule_kind kind, std::uint32_t flags) {
  std::string name;
  for (const char c : std::string(sched::name_of(kind)))
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if ((flags & VELO_SCHEDULE_OVERLAP) != 0) name += " with OVERLAP";
  if ((flags & VELO_SCHEDULE_SWAP) != 0) name += " with SWAP";
  return name;
}

words actions_of(const sched::schedule& from) {
  words all;
  for (std::int32_t rank = 0; rank < from.sizes().ranks; ++rank) {
    for (sched::row_reader row(from, rank); !row.done(); row.pass()) {
      const sched::action& a = row.next();
      std::string name = sched::text_of(a);  // a stage, the name, a micro-batch
      name = name.substr(name.find_first_not_of("0123456789"));
      all.insert(a.kind == VELO_ACTION_FB ? "FB"
                                          : name.substr(0, name.find_first_of("0123456789")));
    }
  }
  return all;
}

std::string text_of(const words& all) {
  std::string text;
  for (const std::string& word : all) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The actions in the line of a name.
std::string line_in(const std::map<std::string, words>& all, const std::string& name) {
  const auto found = all.find(name);
  return found == all.end() ? "no line" : text_of(found->second);
}

// The actions of all schedules up to 4 ranks, by the line of their kind.
std::map<std::string, words> made_actions() {
  std::map<std::string, words> all;
  const auto add = [&](velo_schedule_kind kind, const sizes& of, const sched::schedule& order) {
    all[line_of(kind, of.flags)].merge(actions_of(order));
  };
  for_each_schedule(4, add);
  for (const std::int32_t ranks : {2, 4}) {
    const sizes overlapped{ranks, 8, 2, 0, VELO_SCHEDULE_OVERLAP};
    add(VELO_SCHEDULE_INTERLEAVED, overlapped, made(VELO_SCHEDULE_INTERLEAVED, overlapped));
  }
  return all;
}

struct function_row {
  const char* action;
  velo_executor_fn velo_executor_desc::*field;
};
constexpr function_row functions[] = {{"F", &velo_executor_desc::forward},
                                      {"B", &velo_executor_desc::backward},
                                      {"I", &velo_executor_desc::input},
                                      {"W", &velo_executor_desc::weight}};

// Whether every rank of a schedule has an executor with the functions of these actions alone.
bool suffice(velo_context context, velo_schedule schedule, std::int32_t ranks, const words& given) {
  velo_link link = VELO_LINK_INIT;
  link.send = [](void*, int32_t, const void*, uint64_t) -> velo_status { return VELO_OK; };
  link.receive = [](void*, int32_t, void*, uint64_t) -> velo_status { return VELO_OK; };
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.rank = rank;
    desc.link = &link;
    for (const function_row& row : functions)
      if (given.count(row.action) != 0)
        desc.*row.field = [](void*, velo_executor_call*) -> velo_status { return VELO_OK; };
    velo_executor executor = nullptr;
    const velo_status status = velo_executor_create(context, schedule, &desc, &executor);
    velo_executor_destroy(executor);
    if (status == VELO_ERR_NULL) return false;
    REQUIRE(status == VELO_OK);
  }
  return true;
}

}  // namespace

TEST_CASE("the header's table of kinds has the actions of every schedule that is made") {
  std::map<std::string, words> documented = table();
  words any = std::exchange(documented["AUTO"], {});
  documented.erase("AUTO");
  const std::map<std::string, words> made_of = made_actions();
  std::set<std::string> names;
  for (const auto& line : documented) names.insert(line.first);
  for (const auto& line : made_of) names.insert(line.first);
  for (const std::string& name : names) {
    INFO(name << " in the table of kinds of capi/include/velo/executor.h");
    CHECK(line_in(documented, name) == line_in(made_of, name));
  }
  words found;  // what a search finds is some of that
  for (const double input : {1.0, 0.2, 3.0})
    found.merge(actions_of(made(VELO_SCHEDULE_AUTO, {2, 4}, {1, input, 1})));
  for (const std::string& one : found) CHECK(any.count(one) == 1);
  CHECK(text_of(any) ==
        text_of(documented["DUALPIPEV"]));  // the one of its candidates that has most
}

TEST_CASE("an executor needs the functions that the header names for a kind, and no other") {
  const live_context context;
  const std::map<std::string, words> documented = table();
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE; kind <= sched::last_schedule_kind; ++kind) {
    if (kind == VELO_SCHEDULE_AUTO) continue;
    const sizes of{4, 8};
    const auto line = documented.find(line_of(kind, 0));
    INFO(line_of(kind, 0) << " in the table of kinds of capi/include/velo/executor.h");
    REQUIRE((line != documented.end()));
    const live_schedule schedule(kind, of);
    const words& needed = line->second;
    CHECK(suffice(context, schedule, of.ranks, needed));
    for (const function_row& row : functions) {
      words fewer = needed;
      if (fewer.erase(row.action) == 1) CHECK_FALSE(suffice(context, schedule, of.ranks, fewer));
    }
  }
}
