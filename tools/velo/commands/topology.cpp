// velo topology: which ranks of a job form which groups.
#include <cstdio>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/job.hpp"
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
