// The command line of bench_ops, bench_memory and bench_sched.
#pragma once

#include <string>
#include <vector>

namespace velo::bench {

struct options {
  std::string filter;  // a regular expression on "name dtype shape residency"
  std::vector<int> threads{1, 2};
  int passes = 3;
  double budget = 1.0;  // seconds a row, in a pass, for the candidates of this process together
  bool json = false;
  bool quick = false;
  bool list = false;
  bool limits = false;
  bool torch = true;
  std::string python;  // empty: look for a virtual environment
  std::string folder;  // of bench_torch.py and goals.json
  std::string traces;  // folder of recorded traces; empty: none
};

// Prints the help and exits with 0 for --help, prints what is wrong and exits with 1 for
// a bad argument. help: of the program; its options are among those of bench_ops.
options parse_options(int count, char** arguments, const char* help);

extern const char* const help_of_bench_ops;

}  // namespace velo::bench
