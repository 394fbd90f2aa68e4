// The progress of a run: a table for people, and a line of JSON a step for programs.
//
// The table has a row every --log_every steps, and for the first and the last; on a terminal the
// steps between share one row that is overwritten. No row is wider than 79 characters. Its share is
// that of roofline.hpp; speeds are means since the last row that stayed.
//
// The JSON keys are fixed: step, loss, lr, grad_norm, tokens_per_s, flops_per_s, mfu, roofline,
// elapsed_s; for a validation step, val_bits_per_byte; and on the last line val_bits_per_byte,
// zlib_bits_per_byte. mfu is the share of the machine's arithmetic; it and roofline are null where
// that was not measured. A step of a model with experts also has busiest_expert, the largest share
// of an expert of a layer as a multiple of the mean, and expert_tokens, a list of the choices of
// each expert for each layer; the table has the first as "busy". Losses are written with all their
// digits: two runs are equal when these are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "examples/decoder/report/console.hpp"
#include "tools/velo/new_file.hpp"

namespace decoder {

struct step_report {
  std::int64_t step;  // from 1
  double loss;        // nats a token, the mean of the step's micro-batches
  double learning_rate;
  double grad_norm;                // before clipping
  double seconds;                  // of this step
  double busiest = 0;              // choices of the busiest expert by the mean of its layer
  std::string expert_tokens = {};  // choices of each expert, a list of lists in JSON; empty: none
};

// The work of a step, and the machine's limits.
struct step_work {
  double tokens, flops;
  double peak_flops;        // FLOP/s of this machine; 0: not measured, no shares are printed
  double roofline_seconds;  // of the step at the machine's limits
  bool experts = false;     // the table has the busiest expert

  bool measured() const { return peak_flops > 0; }
};

// The beginning and end of a run, and how often it prints.
struct step_range {
  std::int64_t steps;  // of the whole run
  std::int64_t done;   // before this part of it
  std::int64_t last;   // of this part
  std::int64_t every;  // steps between rows that stay
};

// The table's heading and a step's row; `left` is in seconds.
std::string heading(std::int64_t steps, bool experts = false);
std::string row(std::int64_t steps, const step_report& report, const step_work& work, double left);

// "16.7 k", "1.25 M", and with a unit "16.7 ktok/s".
std::string scaled(double value, const char* unit = "");
std::string scaled_bytes(std::int64_t bytes);  // "16.7 MB"

// "1:52", "2:03:04", "23h 10m", "4d 04h", "123d": at most seven characters.
std::string duration(double seconds);

class progress {
 public:
  // `log`: the JSONL file, empty for none. Of an existing log the lines of the first
  // `range.done` steps stay: those that a resumed run goes on from.
  progress(console& to, const step_range& range, const step_work& work, const std::string& log);

  void step(const step_report& report);
  void validation(std::int64_t step, double bits_per_byte);
  void finish(double val_bits_per_byte, double zlib_bits_per_byte);

  // How fast this part was on the whole, as a sentence; empty without a step.
  std::string speed() const;

  // Why the log ended early; empty: it has all.
  const std::string& unwritten() const { return unwritten_; }

 private:
  void open_log();
  void log_step(const step_report& report);
  void flush_log();

  console& console_;
  step_range range_;
  step_work work_;
  std::int64_t taken_ = 0, rows_ = 0;
  double seconds_ = 0, elapsed_ = 0, pace_ = 0;
  std::int64_t since_row_ = 0;  // steps, and their seconds
  double row_seconds_ = 0;
  std::string log_path_, unwritten_;
  std::unique_ptr<command::new_file> log_;
};

}  // namespace decoder
