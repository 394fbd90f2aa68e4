// The goals of bench/goals.json, held against what was measured.
//
// A goal names rows by fields (a string must equal the row's, "~..." is a regular expression), the
// thread count, and one or more clauses of which one must hold: a statistic (ratio to a peer, or to
// the best; share of the limit; speed-up over one thread; nanoseconds a call, whose bound is an
// upper one) and a bound, general or per CPU kind. A
// clause without a bound for this kind does not count, and a goal without a clause left is not
// judged. Every row that matches must reach the goal, in every pass.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/result.hpp"

namespace velo::bench {

struct verdict {
  std::string goal;      // its id
  std::string row;       // "matmul f32 4096x4096x4096 1T"
  std::string measured;  // "ratio to oneDNN 1.02 of 1.05"
  double fraction = 0;   // worst pass / bound, of the clause that came nearest; >= 1 is reached
};

struct judgement {
  std::vector<verdict> verdicts;
  std::vector<std::string> unjudged;  // goals without a measured row or a bound for this CPU
};

// Throws std::runtime_error with line and column when the file does not parse.
// list: the file's list to judge by: "goals" of bench_ops, "calls" of bench_call, "memory" of
// bench_memory.
judgement judge(const std::string& file, const char* list, const std::string& cpu_kind,
                const std::vector<result>& results);

void print_judgement(FILE* out, const judgement& j);

}  // namespace velo::bench
