// velo topology: which ranks of a job form which groups.
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const topology_help =
    "usage: velo topology --tp T --cp C --ep E --dp D --pp P [--etp N] [--order ORDER]\n"
    "                     [--rank R] [--json] [--svg PICTURE.svg] ..\n\n"
    "The groups of a job of T x C x D x P ranks (1 each unless given), family by family, in\n"
    "Megatron-LM's order. ORDER has the axis whose ranks are neighbors first; it is "
    "tp-cp-ep-dp-pp\n"
    "unless given. Experts are spread over E ranks of a stage, N of which (T) share each.\n\n"
    "  --rank R          the groups of one rank alone\n"
    "  --json            an object from family to its groups, each a list of ranks\n"
    "  --svg FILE        the ranks as squares, colored by group\n"
    "  --instances N     of the sharded optimizer, in families of their own\n"
    "  --cp-levels A,B   context groups in levels, the product of whose sizes is C\n"
    "  --cp-ulysses N    context groups of N that exchange heads, and rings across them\n"
    "  --cp-window N     windows of N in the ring\n"
    "  --hybrid          slices of dp-cp by powers of two\n"
    "  --tp-x N, --tp-y N  tensor groups in two dimensions\n"
    "  --gtp N, --egtp N   ranks that gather parts of a weight, of experts\n"
    "  --twins           second groups of the same ranks, for overlap\n\n"
    "Exit codes: 0 done, 1 bad input.\n";

namespace {

std::int64_t integer(const std::string& option, const std::string& word) {
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end)
    throw input_error("--" + option + ": expected a whole number, got \"" + word + "\"");
  return value;
}

std::vector<std::int64_t> list(const std::string& option, const std::string& words) {
  std::vector<std::int64_t> all;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    all.push_back(integer(option, words.substr(at, end - at)));
    at = end + 1;
  }
  return all;
}

// The job that the options describe; what they say is checked by velo.
class job {
 public:
  explicit job(const arguments& given) {
    for (const auto& [option, word] : given.layout) set(option, word);
    desc_.hybrid = given.hybrid ? 1 : 0;
    desc_.twins = given.twins ? 1 : 0;
  }
  velo::topology topology() const { return velo::topology::create(desc_); }
  std::int64_t rank() const { return rank_; }  // -1: all

 private:
  void set(const std::string& option, const std::string& word) {
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
      levels_ = list(option, word);
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

  velo_topology_desc desc_ = VELO_TOPOLOGY_DESC_INIT;
  std::string order_;
  std::vector<std::int64_t> levels_;
  std::int64_t rank_ = -1;
};

// "0 1 2 3 ..": the first `most` ranks of a group.
std::string ranks_of(const velo::topology& all, const char* family, std::int64_t group,
                     std::size_t most) {
  std::vector<std::int32_t> ranks(most);
  const std::int64_t count =
      all.group(family, group, ranks.data(), static_cast<std::int64_t>(most));
  std::string text;
  for (std::size_t i = 0; i < most && static_cast<std::int64_t>(i) < count; ++i)
    text += (i > 0 ? " " : "") + std::to_string(ranks[i]);
  return count > static_cast<std::int64_t>(most) ? text + " .. (" + std::to_string(count) + ")"
                                                 : text;
}

void show_all(const velo::topology& all) {
  const velo_topology_info info = all.info();
  std::printf("%lld ranks\n\n", static_cast<long long>(info.ranks));
  table rows({"family", "groups", "of", "ranks"});
  for (std::int64_t i = 0; i < info.families; ++i) {
    const char* name = all.family_name(i);
    const velo_topology_family one = all.family(name);
    std::string groups;
    constexpr std::int64_t shown = 4;
    for (std::int64_t g = 0; g < one.groups && g < shown; ++g)
      groups += (g > 0 ? " | " : "") + ranks_of(all, name, g, 8);
    if (one.groups > shown) groups += " | ..";
    rows.add({name, std::to_string(one.groups), std::to_string(one.size),
              one.twin_of != nullptr ? std::string("as ") + one.twin_of : groups});
  }
  std::printf("%s", rows.str().c_str());
}

void show_rank(const velo::topology& all, std::int64_t rank) {
  table rows({"family", "group", "position", "ranks"});
  for (std::int64_t i = 0; i < velo_topology_info(all.info()).families; ++i) {
    const char* name = all.family_name(i);
    const velo_topology_place at = all.place(name, rank);
    if (at.group < 0)
      rows.add({name, "none", "", ""});
    else
      rows.add({name, std::to_string(at.group), std::to_string(at.position),
                ranks_of(all, name, at.group, 64)});
  }
  std::printf("%s", rows.str().c_str());
}

// Writes family by family, so that a large job is never one text.
void print_json(const velo::topology& all) {
  for (std::int64_t i = 0; i < velo_topology_info(all.info()).families; ++i) {
    const char* name = all.family_name(i);
    std::printf("%s\"%s\": ", i == 0 ? "{" : ",\n ", name);
    std::fputs(all.write<std::string>(name, VELO_TOPOLOGY_JSON).c_str(), stdout);
  }
  std::puts("}");
}

void print_json(const velo::topology& all, std::int64_t rank) {
  for (std::int64_t i = 0; i < velo_topology_info(all.info()).families; ++i) {
    const char* name = all.family_name(i);
    const velo_topology_place at = all.place(name, rank);
    std::printf("%s\"%s\": ", i == 0 ? "{" : ",\n ", name);
    std::vector<std::int32_t> ranks;
    if (at.group >= 0)
      ranks.resize(static_cast<std::size_t>(velo_topology_family(all.family(name)).size));
    const std::int64_t count =
        at.group < 0 ? 0
                     : static_cast<std::int64_t>(all.group(
                           name, at.group, ranks.data(), static_cast<std::int64_t>(ranks.size())));
    for (std::int64_t k = 0; k < count; ++k)
      std::printf("%s%d", k == 0 ? "[" : ", ", ranks[static_cast<std::size_t>(k)]);
    std::fputs(count == 0 ? "[]" : "]", stdout);
  }
  std::puts("}");
}

}  // namespace

int topology(const arguments& given) {
  if (!given.words.empty())
    throw input_error("topology takes options alone, got " + given.words[0] +
                      "; velo help topology");
  const job asked(given);
  const velo::topology all = asked.topology();
  if (!given.picture.empty())
    write_file(given.picture, all.write<std::string>(nullptr, VELO_TOPOLOGY_SVG));
  if (asked.rank() < 0)
    given.json ? print_json(all) : show_all(all);
  else
    given.json ? print_json(all, asked.rank()) : show_rank(all, asked.rank());
  return done;
}

}  // namespace command
