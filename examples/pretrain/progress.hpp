// What a run tells while it runs: a line a step for people, and a line of JSON a step for programs.
//
// The JSON keys are fixed: step, loss, lr, grad_norm, tokens_per_s, flops_per_s, mfu, roofline,
// elapsed_s; and on the last line val_bits_per_byte, zlib_bits_per_byte. mfu is the share of the
// machine's arithmetic, roofline that of roofline.hpp. Losses are written with all their
// digits: two runs are equal when these are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace pretrain {

struct step_report {
  std::int64_t step;  // from 1
  double loss;        // nats a token, the mean of the step's micro-batches
  double learning_rate;
  double grad_norm;  // before clipping
  double seconds;    // of this step
};

// What every step of a run does, and how fast the machine could do it.
struct step_work {
  double tokens, flops;
  double peak_flops;        // FLOP/s of this machine
  double roofline_seconds;  // of the step at the machine's limits
};

class progress {
 public:
  // `log`: the JSONL file, empty for none. Of an existing log the lines of the first `done` steps
  // stay: those that a resumed run goes on from.
  progress(std::int64_t steps, const step_work& work, const std::string& log, std::int64_t done);

  void step(const step_report& report);
  void finish(double val_bits_per_byte, double zlib_bits_per_byte);

 private:
  void open_log(std::int64_t done);
  void flush_log();

  std::int64_t steps_;
  step_work work_;
  double elapsed_ = 0, pace_ = 0;
  std::string log_path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_;
};

}  // namespace pretrain
