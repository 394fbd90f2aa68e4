// getopt_long, and the text of --help.
#include "bench/harness/options.hpp"

#include <errno.h>
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <regex>

namespace velo::bench {

const char* const help_of_bench_ops =
    R"(bench_ops: operators beside oneDNN, OpenBLAS and torch, and beside the machine's limits.

  --filter REGEX     only rows whose 'name dtype shape residency' matches
  --threads LIST     thread counts, 1 and 2 by default: --threads 1
  --passes N         how often the whole list is measured; a goal must be reached in each (3)
  --budget SECONDS   time for a row in a pass (1.0)
  --quick            one pass, a short budget, no product above 20 GFLOP: shows that all rows run
  --json             one JSON object a row on standard output; all else goes to standard error
  --torch PYTHON     the interpreter that has torch (default: $VIRTUAL_ENV or the tree's .venv)
  --no-torch         leave torch out
  --folder DIR       where bench_torch.py and goals.json are
  --list             print the rows and exit
  --limits           measure the limits alone, print them as JSON, for one and two threads
  --help

A row: rates at p25, higher is better; ratio = velo / the best peer; share = velo / the limit named,
measured before and after in this process. VELO_ISA lowers what velo uses and the limits with it;
DNNL_MAX_CPU_ISA does so for oneDNN. Exit code 1: a row failed, gave a wrong result, or the run
compares unequal with itself.
)";

namespace {

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "%s: %s (--help explains)\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

double parse_number(const char* name, const char* text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*text == 0 || *end != 0 || !(value >= least))
    refuse(std::string("--") + name + " wants a number, not " + text);
  return value;
}

std::vector<int> parse_threads(const std::string& text) {
  std::vector<int> threads;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const int count =
        static_cast<int>(parse_number("threads", text.substr(at, comma - at).c_str(), 1));
    if (count > 2) refuse("--threads takes 1 and 2");
    threads.push_back(count);
    at = comma + 1;
  }
  return threads;
}

void check_filter(const std::string& filter) {
  try {
    const std::regex tried(filter);
  } catch (const std::regex_error& problem) {
    refuse("--filter: " + std::string(problem.what()));
  }
}

}  // namespace

options parse_options(int count, char** arguments, const char* help) {
  static constexpr ::option known[] = {
      {"filter", 1, nullptr, 'f'}, {"threads", 1, nullptr, 't'},  {"passes", 1, nullptr, 'p'},
      {"budget", 1, nullptr, 'b'}, {"quick", 0, nullptr, 'q'},    {"json", 0, nullptr, 'j'},
      {"torch", 1, nullptr, 'T'},  {"no-torch", 0, nullptr, 'n'}, {"folder", 1, nullptr, 'd'},
      {"list", 0, nullptr, 'l'},   {"limits", 0, nullptr, 'L'},   {"help", 0, nullptr, 'h'},
      {"traces", 1, nullptr, 'r'}, {nullptr, 0, nullptr, 0}};
  options o;
  o.folder = VELO_BENCH_FOLDER;
  for (int key; (key = getopt_long(count, arguments, "h", known, nullptr)) != -1;) switch (key) {
      case 'f':
        o.filter = optarg;
        break;
      case 't':
        o.threads = parse_threads(optarg);
        break;
      case 'p':
        o.passes = static_cast<int>(parse_number("passes", optarg, 1));
        break;
      case 'b':
        o.budget = parse_number("budget", optarg, 0.01);
        break;
      case 'q':
        o.quick = true;
        break;
      case 'j':
        o.json = true;
        break;
      case 'T':
        o.python = optarg;
        break;
      case 'n':
        o.torch = false;
        break;
      case 'd':
        o.folder = optarg;
        break;
      case 'r':
        o.traces = optarg;
        break;
      case 'L':
        o.limits = true;
        break;
      case 'l':
        o.list = true;
        break;
      case 'h':
        std::fputs(help, stdout);
        std::exit(0);
      default:
        refuse("unknown or incomplete argument");
    }
  if (optind < count) refuse(std::string("unexpected argument ") + arguments[optind]);
  if (o.quick) o.passes = 1, o.budget = 0.1;
  check_filter(o.filter);
  return o;
}

}  // namespace velo::bench
