// velo: the library looked at from the command line. Each command is a file of its own; this one
// finds it and turns failures into exit codes.
#include <cstdio>
#include <exception>
#include <velo/velo.hpp>

#include "commands.hpp"

namespace {

struct command_row {
  const char* name;
  int (*run)(const command::arguments& given);
  const char* const* help;
};
constexpr command_row commands[] = {{"info", &command::info, &command::info_help},
                                    {"ops", &command::ops, &command::ops_help},
                                    {"explain", &command::explain, &command::explain_help}};

constexpr const char* overview =
    "usage: velo COMMAND ..\n\n"
    "  info     version, processor, measured limits, operators, configuration\n"
    "  ops      the operators, or one in full\n"
    "  explain  which kernel would run for given shapes, and why\n\n"
    "velo COMMAND --help says more. Exit codes: 0 done, 1 bad input, 2 no solution.\n";

int run(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs(overview, words.empty() ? stderr : stdout);
    return words.empty() ? command::bad_input : command::done;
  }
  for (const command_row& row : commands) {
    if (words[0] != row.name) continue;
    const command::arguments given = command::parse_arguments({words.begin() + 1, words.end()});
    if (!given.help) return row.run(given);
    std::fputs(*row.help, stdout);
    return command::done;
  }
  throw command::input_error("unknown command " + words[0] + "; velo --help lists what there is");
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& failure) {  // input_error and velo::error say all there is to say
    std::fprintf(stderr, "velo: %s\n", failure.what());
  }
  return command::bad_input;
}
