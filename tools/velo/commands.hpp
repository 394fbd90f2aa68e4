// The commands, and their exit codes: 0 done, 1 bad input, 2 no solution (no kernel serves, a
// placement does not fit).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace command {

constexpr int done = 0;
constexpr int bad_input = 1;
constexpr int no_solution = 2;

// Wrong input; what() tells the user which and why.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Arguments of most commands: the words after the command's name, sorted into options and the rest.
struct arguments {
  bool json = false;
  bool measure = true;
  std::vector<std::pair<std::string, std::string>> settings;  // --set key=value
  std::uint64_t capacity = 0;                                 // --capacity, in bytes; 0: none
  std::uint64_t size = 0, block = 0, depth = 0;               // --size ..; 0: the command's own
  std::uint64_t threads = 1;                                  // --threads
  std::uint64_t ranks = 2;                                    // --ranks
  double seconds = -1;                                        // --time; -1: the command's own
  std::string output;                                         // -o FILE
  std::string picture;                                        // --svg FILE
  std::string pool;                                           // --pool NAME
  std::vector<std::pair<std::string, std::string>> layout;    // --tp N .., without the hyphens
  bool hybrid = false, twins = false;
  bool sequence_parallel = true;          // --no-sequence-parallel
  std::vector<std::int64_t> noop_layers;  // --noop-layers A,B
  std::string stage_layers;               // --stage-layers LIST
  std::string pipeline;                   // --pipeline KIND
  std::uint64_t vpp = 0;                  // --vpp N; 0: as the kind has it
  bool has_other_layout = false;
  std::string other_layout;  // --to KEY=N,..
  std::vector<std::string> words;
};
arguments parse_arguments(const std::vector<std::string>& words);  // throws input_error

int info(const arguments& given);
int ops(const arguments& given);
int explain(const arguments& given);
int place(const arguments& given);
int replay(const arguments& given);
int replay_capsule(const arguments& given);
int swap_bench(const arguments& given);
int topology(const arguments& given);
int sharding(const arguments& given);
int collective(const arguments& given);
int schedule(const std::vector<std::string>& words);
int sequence(const std::vector<std::string>& words);
int experts(const std::vector<std::string>& words);
int tune(const std::vector<std::string>& words);

extern const char* const info_help;
extern const char* const ops_help;
extern const char* const explain_help;
extern const char* const place_help;
extern const char* const replay_help;
extern const char* const replay_capsule_help;
extern const char* const swap_bench_help;
extern const char* const topology_help;
extern const char* const sharding_help;
extern const char* const collective_help;
extern const char* const schedule_help;
extern const char* const sequence_help;
extern const char* const experts_help;
std::string schedule_kinds();  // names and help of kinds, as the library describes them
extern const char* const tune_help;

}  // namespace command
