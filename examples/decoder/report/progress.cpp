// Formatting of the table and the JSON log.
#include "examples/decoder/report/progress.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char buffer[160];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

// Writes as many digits behind the point as `width` characters have room for, four at most.
std::string fitted(double value, int width) {
  if (std::isnan(value)) return "nan";  // of either sign
  for (int digits = 4; digits >= 0; --digits) {
    std::string all = text("%.*f", digits, value);
    if (static_cast<int>(all.size()) <= width) return all;
  }
  return text("%.0e", value);
}

// JSON cannot write NaN and infinity: they become null.
std::string json_number(double value) {
  return std::isfinite(value) ? text("%.17g", value) : "null";
}

// A share of a limit that was not measured is null, too.
std::string json_share(const step_work& work, double share) {
  return work.measured() ? text("%.4f", share) : "null";
}

// "40/200"; a run too long for that in the table shows the step alone.
std::string counted(std::int64_t step, std::int64_t steps) {
  constexpr std::size_t widest = 13;
  const std::string whole = std::to_string(steps);
  const std::string all = std::to_string(step) + "/" + whole;
  return 2 * whole.size() + 1 > widest ? std::to_string(step) : all;
}

int step_width(std::int64_t steps) {
  return std::max(6, static_cast<int>(counted(steps, steps).size()));
}

}  // namespace

std::string scaled(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  int power = 0;
  while (value >= 999.5 && power < 5) {
    value /= 1000;
    ++power;
  }
  const std::string of = std::string(prefixes[power]) + unit;
  return text("%.3g%s%s", value, of.empty() ? "" : " ", of.c_str());
}

std::string scaled_bytes(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), "B");
}

std::string duration(double seconds) {
  const auto all = static_cast<long long>(std::llround(seconds));
  const long long hours = all / 3600, minutes = all / 60 % 60;
  if (hours >= 2400) return text("%lldd", hours / 24);
  if (hours >= 100) return text("%lldd %02lldh", hours / 24, hours % 24);
  if (hours >= 10) return text("%lldh %02lldm", hours, minutes);
  if (hours > 0) return text("%lld:%02lld:%02lld", hours, minutes, all % 60);
  return text("%lld:%02lld", minutes, all % 60);
}

std::string heading(std::int64_t steps, bool experts) {
  const char* share = experts ? " roof  busy" : "of roofline";
  return text("%*s  %6s  %9s  %7s  %6s  %6s  %11s  %7s", step_width(steps), "step", "loss",
              "bits/byte", "lr", "grad", "tok/s", share, "left");
}

std::string row(std::int64_t steps, const step_report& r, const step_work& work, double left) {
  std::string share =
      work.measured() ? text("%.0f %%", 100 * work.roofline_seconds / r.seconds) : "-";
  if (work.experts) {
    constexpr int digits = 4;
    const std::string busy = r.expert_tokens.empty() ? "-" : fitted(r.busiest, digits);
    share = text("%5s  %4s", share.c_str(), busy.c_str());
  }
  return text("%*s  %6s  %9s  %7.1e  %6s  %6s  %11s  %7s", step_width(steps),
              counted(r.step, steps).c_str(), fitted(r.loss, 6).c_str(),
              fitted(r.loss / std::log(2.0), 9).c_str(), r.learning_rate,
              fitted(r.grad_norm, 6).c_str(), scaled(work.tokens / r.seconds).c_str(),
              share.c_str(), duration(left).c_str());
}

progress::progress(console& to, const step_range& range, const step_work& work,
                   const std::string& log)
    : console_(to), range_(range), work_(work), log_path_(log) {
  if (!log.empty()) open_log();
}

// A killed run may have logged steps after its last checkpoint: these are done and logged again.
void progress::open_log() {
  std::string kept, line;
  if (const std::string before = beginning_if_any(log_path_, 2); !before.empty() && before != "{\"")
    fail("%s: exists and is not a log; it is left as it is", log_path_.c_str());
  try {
    log_ = std::make_unique<command::new_file>(log_path_);
  } catch (const std::runtime_error& reason) {
    fail("%s: cannot write the log: %s", log_path_.c_str(), reason.what());
  }
  if (std::ifstream before(log_path_); range_.done > 0 && before) {
    long long step;
    while (std::getline(before, line) &&
           std::sscanf(line.c_str(), "{\"step\": %lld,", &step) == 1 && step <= range_.done) {
      kept += line + '\n';
      const char key[] = "\"elapsed_s\": ";
      const std::size_t elapsed = line.find(key);
      if (elapsed != std::string::npos) elapsed_ = std::atof(&line[elapsed + sizeof key - 1]);
    }
  }
  try {
    std::fputs(kept.c_str(), log_->stream());
    log_->put_in_place();
  } catch (const std::runtime_error& reason) {
    fail("%s: cannot write the log: %s", log_path_.c_str(), reason.what());
  }
}

void progress::step(const step_report& r) {
  elapsed_ += r.seconds;
  log_step(r);  // before the row: whoever sees that may end the run
  ++taken_;
  seconds_ += r.seconds;
  // A decaying mean, so that the time left follows the machine's speed without jumps.
  pace_ = pace_ == 0 ? r.seconds : 0.9 * pace_ + 0.1 * r.seconds;
  const double left = pace_ * static_cast<double>(range_.last - r.step);
  const bool stays = taken_ == 1 || r.step == range_.last || r.step % range_.every == 0;
  row_seconds_ += r.seconds;
  step_report usual = r;
  usual.seconds = row_seconds_ / static_cast<double>(++since_row_);
  const std::string shown = row(range_.steps, usual, work_, left);
  if (!stays) return console_.show(shown);
  since_row_ = 0;
  row_seconds_ = 0;
  constexpr std::int64_t page = 25;
  if (rows_++ % page == 0) console_.say("%s", heading(range_.steps, work_.experts).c_str());
  console_.say("%s", shown.c_str());
}

void progress::log_step(const step_report& r) {
  if (!log_) return;
  const double flops_per_s = work_.flops / r.seconds;
  std::fprintf(log_->stream(),
               "{\"step\": %lld, \"loss\": %s, \"lr\": %s, \"grad_norm\": %s, \"tokens_per_s\": "
               "%.1f, \"flops_per_s\": %.6g, \"mfu\": %s, \"roofline\": %s, \"elapsed_s\": "
               "%.3f",
               static_cast<long long>(r.step), json_number(r.loss).c_str(),
               json_number(r.learning_rate).c_str(), json_number(r.grad_norm).c_str(),
               work_.tokens / r.seconds, flops_per_s,
               json_share(work_, flops_per_s / work_.peak_flops).c_str(),
               json_share(work_, work_.roofline_seconds / r.seconds).c_str(), elapsed_);
  if (!r.expert_tokens.empty())
    std::fprintf(log_->stream(), ", \"busiest_expert\": %.4f, \"expert_tokens\": %s", r.busiest,
                 r.expert_tokens.c_str());
  std::fputs("}\n", log_->stream());
  flush_log();
}

void progress::validation(std::int64_t step, double bits_per_byte) {
  if (!log_) return;
  std::fprintf(log_->stream(), "{\"step\": %lld, \"val_bits_per_byte\": %s}\n",
               static_cast<long long>(step), json_number(bits_per_byte).c_str());
  flush_log();
}

void progress::finish(double val_bits_per_byte, double zlib_bits_per_byte) {
  if (!log_) return;
  std::fprintf(log_->stream(), "{\"val_bits_per_byte\": %s, \"zlib_bits_per_byte\": %s}\n",
               json_number(val_bits_per_byte).c_str(), json_number(zlib_bits_per_byte).c_str());
  flush_log();
}

std::string progress::speed() const {
  if (taken_ == 0) return "";
  const double step = seconds_ / static_cast<double>(taken_), flops = work_.flops / step;
  std::string rates = scaled(work_.tokens / step, "tok/s") + ", " + scaled(flops, "FLOP/s");
  if (work_.measured())
    rates += text(": %.0f %% of the peak, %.0f %% of the roofline", 100 * flops / work_.peak_flops,
                  100 * work_.roofline_seconds / step);
  return rates;
}

// A run goes on without its log.
void progress::flush_log() {
  if (std::fflush(log_->stream()) == 0 && !std::ferror(log_->stream())) return;
  unwritten_ = log_path_ + ": cannot write the log: " + std::strerror(errno);
  console_.say("%s; the run goes on without it, and fails in the end", unwritten_.c_str());
  log_.reset();
}

}  // namespace decoder
