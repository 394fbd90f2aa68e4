// Formatting of the progress line and the JSON log.
#include "progress.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "failure.hpp"

namespace pretrain {
namespace {

struct scaled {
  char text[24];
  explicit scaled(double value) {
    const char* units[] = {"", "k", "M", "G", "T", "P"};
    int unit = 0;
    while (value >= 999.5 && unit < 5) {
      value /= 1000;
      ++unit;
    }
    std::snprintf(text, sizeof text, "%.3g %s", value, units[unit]);
  }
};

// JSON has no word for what is not a number.
struct json_number {
  char text[32];
  explicit json_number(double value) {
    std::snprintf(text, sizeof text, std::isfinite(value) ? "%.17g" : "null", value);
  }
};

}  // namespace

progress::progress(std::int64_t steps, const step_work& work, const std::string& log,
                   std::int64_t done)
    : steps_(steps), work_(work), log_path_(log), log_(nullptr, std::fclose) {
  if (!log.empty()) open_log(done);
}

// A run that was killed may have logged steps its last checkpoint does not have: they are made, and
// logged, again.
void progress::open_log(std::int64_t done) {
  std::string kept, line;
  if (std::ifstream before(log_path_); done > 0 && before) {
    long long step;
    while (std::getline(before, line) &&
           std::sscanf(line.c_str(), "{\"step\": %lld,", &step) == 1 && step <= done) {
      kept += line + '\n';
      const std::size_t elapsed = line.rfind(' ');  // the last value of a line
      if (elapsed != std::string::npos) elapsed_ = std::atof(&line[elapsed]);
    }
  }
  log_.reset(std::fopen(log_path_.c_str(), "we"));
  if (!log_) fail("%s: cannot write the log: %s", log_path_.c_str(), std::strerror(errno));
  std::fputs(kept.c_str(), log_.get());
  flush_log();
}

void progress::step(const step_report& r) {
  elapsed_ += r.seconds;
  // A mean that forgets, so that the ETA follows the machine's mood without jumping.
  pace_ = pace_ == 0 ? r.seconds : 0.9 * pace_ + 0.1 * r.seconds;
  const double tokens_per_s = work_.tokens / r.seconds, flops_per_s = work_.flops / r.seconds;
  const double share = flops_per_s / work_.peak_flops;
  const double roofline = work_.roofline_seconds / r.seconds;
  const auto left = static_cast<long>(std::lround(pace_ * static_cast<double>(steps_ - r.step)));
  std::printf(
      "step %4lld/%lld  loss %.4f  lr %.2e  grad %.3f  %stok/s  %sFLOP/s %3.0f %%  "
      "roofline %3.0f %%  ETA %ld:%02ld\n",
      static_cast<long long>(r.step), static_cast<long long>(steps_), r.loss, r.learning_rate,
      r.grad_norm, scaled(tokens_per_s).text, scaled(flops_per_s).text, 100 * share, 100 * roofline,
      left / 60, left % 60);
  std::fflush(stdout);
  if (!log_) return;
  std::fprintf(
      log_.get(),
      "{\"step\": %lld, \"loss\": %s, \"lr\": %s, \"grad_norm\": %s, \"tokens_per_s\": %.1f, "
      "\"flops_per_s\": %.6g, \"mfu\": %.4f, \"roofline\": %.4f, \"elapsed_s\": %.3f}\n",
      static_cast<long long>(r.step), json_number(r.loss).text, json_number(r.learning_rate).text,
      json_number(r.grad_norm).text, tokens_per_s, flops_per_s, share, roofline, elapsed_);
  flush_log();
}

void progress::finish(double val_bits_per_byte, double zlib_bits_per_byte) {
  if (!log_) return;
  std::fprintf(log_.get(), "{\"val_bits_per_byte\": %s, \"zlib_bits_per_byte\": %s}\n",
               json_number(val_bits_per_byte).text, json_number(zlib_bits_per_byte).text);
  flush_log();
}

void progress::flush_log() {
  if (std::fflush(log_.get()) != 0 || std::ferror(log_.get())) {
    fail("%s: cannot write the log: %s", log_path_.c_str(), std::strerror(errno));
  }
}

}  // namespace pretrain
