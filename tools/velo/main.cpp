// velo: the library on the command line. Each command is a file of its own; this one finds it and
// turns failures into exit codes.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <velo/velo.hpp>

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/messages.hpp"

namespace {

using words = std::vector<std::string>;

// A command that takes the shared options.
template <int (*run)(const command::arguments& given)>
int with_arguments(const words& all) {
  return run(command::parse_arguments(all));
}

struct command_row {
  const char* name;
  int (*run)(const words& all);
  const char* const* help;
  std::string (*more_help)() = nullptr;
};
constexpr command_row commands[] = {
    {"info", &with_arguments<command::info>, &command::info_help},
    {"ops", &with_arguments<command::ops>, &command::ops_help},
    {"explain", &with_arguments<command::explain>, &command::explain_help},
    {"place", &with_arguments<command::place>, &command::place_help},
    {"replay", &with_arguments<command::replay>, &command::replay_help},
    {"replay-capsule", &with_arguments<command::replay_capsule>, &command::replay_capsule_help},
    {"swap-bench", &with_arguments<command::swap_bench>, &command::swap_bench_help},
    {"collective", &with_arguments<command::collective>, &command::collective_help},
    {"schedule", &command::schedule, &command::schedule_help, &command::schedule_kinds},
    {"sequence", &command::sequence, &command::sequence_help},
    {"experts", &command::experts, &command::experts_help},
    {"topology", &with_arguments<command::topology>, &command::topology_help},
    {"sharding", &with_arguments<command::sharding>, &command::sharding_help},
    {"tune", &command::tune, &command::tune_help}};

constexpr const char* overview =
    "usage: velo COMMAND ..\n\n"
    "  info       version, processor, measured limits, operators, configuration\n"
    "  ops        the operators, or one in full\n"
    "  explain    which kernel would run for given shapes, and why\n"
    "  place      addresses for buffers of known lifetimes, as low as a capacity\n"
    "  replay     what a trace of allocations reserves in velo's pool, by a plan, in a model\n"
    "  replay-capsule  a call that diverged from the reference (check.capsules), once more\n"
    "  swap-bench what a swap's tiers give in a folder of this machine\n"
    "  topology   which ranks of a job form which groups\n"
    "  sharding   which part of which parameter of a model each rank of a job holds\n"
    "  collective which way a collective takes among ranks of this machine, and its time\n"
    "  schedule   a pipeline's schedule: generated, checked, priced, written\n"
    "  sequence   how ranks share the attention of one sequence\n"
    "  experts    on which ranks each expert of a layer lies, by the rows that it gets\n"
    "  tune       how to cut a model over accelerators, by costs and memory\n"
    "  help       this text, or what a command takes: velo help COMMAND\n"
    "  --version  the library's release and its ABI's\n\n"
    "Exit codes: 0 done, 1 bad input, 2 no solution.\n";

int version() {
  const velo::library_version v = velo::version();
  std::printf("velo %d.%d.%d, ABI %u.%u\n", v.major_number, v.minor_number, v.patch_number,
              v.abi / 100, v.abi % 100);
  return command::done;
}

const command_row& command_called(const std::string& name) {
  std::vector<std::string> names = {"help", "--help", "--version"};
  for (const command_row& row : commands) {
    if (name == row.name) return row;
    names.emplace_back(row.name);
  }
  const std::string meant = command::did_you_mean(name, names);
  throw command::input_error("unknown command " + name +
                             (meant.empty() ? "; velo help lists what there is" : meant));
}

int print_help(const command_row& row) {
  std::fputs(row.help[0], stdout);
  if (row.more_help != nullptr) std::fputs(row.more_help().c_str(), stdout);
  return command::done;
}

int run(const words& all) {
  const std::string first = all.empty() ? "" : all[0];
  if (first == "--version" || first == "-V" || first == "version") return version();
  if (all.empty() || first == "--help" || first == "-h" || first == "help") {
    if (all.size() > 1 && all[1] != "help") return print_help(command_called(all[1]));
    std::fputs(overview, all.empty() ? stderr : stdout);
    return all.empty() ? command::bad_input : command::done;
  }
  const command_row& row = command_called(first);
  const words rest(all.begin() + 1, all.end());
  const bool help = std::any_of(rest.begin(), rest.end(), [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
  return help ? print_help(row) : row.run(rest);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const int code = run({arguments + 1, arguments + count});
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    std::fprintf(stderr, "velo: cannot write the output: %s\n", std::strerror(errno));
  } catch (const velo::error& failure) {
    std::fprintf(stderr, "velo: %s\n", command::sentence_of(failure).c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "velo: out of memory\n");
  } catch (const std::exception& failure) {  // input_error says all there is to say
    std::fprintf(stderr, "velo: %s\n", failure.what());
  }
  return command::bad_input;
}
