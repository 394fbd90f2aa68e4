// velo: the library looked at from the command line. Each command is a file of its own; this one
// finds it and turns failures into exit codes.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <velo/velo.hpp>

#include "commands.hpp"
#include "examples/closest_name.hpp"
#include "messages.hpp"

namespace {

struct command_row {
  const char* name;
  int (*run)(const command::arguments& given);
  const char* const* help;
};
constexpr command_row commands[] = {{"info", &command::info, &command::info_help},
                                    {"ops", &command::ops, &command::ops_help},
                                    {"explain", &command::explain, &command::explain_help},
                                    {"place", &command::place, &command::place_help},
                                    {"replay", &command::replay, &command::replay_help},
                                    {"swap-bench", &command::swap_bench, &command::swap_bench_help},
                                    {"topology", &command::topology, &command::topology_help}};

constexpr const char* overview =
    "usage: velo COMMAND ..\n\n"
    "  info       version, processor, measured limits, operators, configuration\n"
    "  ops        the operators, or one in full\n"
    "  explain    which kernel would run for given shapes, and why\n"
    "  place      addresses for buffers of known lifetimes, as low as a capacity\n"
    "  replay     what a trace of allocations reserves in velo's pool, by a plan, in a model\n"
    "  swap-bench what a swap's tiers give in a folder of this machine\n"
    "  topology   which ranks of a job form which groups\n"
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
  const std::string meant = examples::did_you_mean(name, names);
  throw command::input_error("unknown command " + name +
                             (meant.empty() ? "; velo help lists what there is" : meant));
}

int run(const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words[0];
  if (first == "--version" || first == "-V" || first == "version") return version();
  if (words.empty() || first == "--help" || first == "-h" || first == "help") {
    const bool one = words.size() > 1 && words[1] != "help";
    std::fputs(one ? *command_called(words[1]).help : overview, words.empty() ? stderr : stdout);
    return words.empty() ? command::bad_input : command::done;
  }
  const command_row& row = command_called(first);
  const command::arguments given = command::parse_arguments({words.begin() + 1, words.end()});
  if (!given.help) return row.run(given);
  std::fputs(*row.help, stdout);
  return command::done;
}

}  // namespace

int main(int count, char** words) {
  try {
    const int code = run({words + 1, words + count});
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    std::fprintf(stderr, "velo: cannot write the output: %s\n", std::strerror(errno));
  } catch (const velo::error& failure) {
    std::fprintf(stderr, "velo: %s\n", command::sentence_of(failure).c_str());
  } catch (const std::exception& failure) {  // input_error says all there is to say
    std::fprintf(stderr, "velo: %s\n", failure.what());
  }
  return command::bad_input;
}
