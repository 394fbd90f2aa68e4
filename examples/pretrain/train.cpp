// A training run: set up, step until done or told to stop, save, measure, report.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "examples/decoder/checkpoint/out_folder.hpp"
#include "examples/decoder/data/baseline.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/model/generate.hpp"
#include "examples/decoder/ranks/context.hpp"
#include "examples/decoder/ranks/interrupt.hpp"
#include "examples/decoder/ranks/launch.hpp"
#include "examples/decoder/report/console.hpp"
#include "examples/decoder/report/flops.hpp"
#include "examples/decoder/report/loss_curve.hpp"
#include "examples/decoder/report/machine_rates.hpp"
#include "examples/decoder/report/progress.hpp"
#include "examples/decoder/report/roofline.hpp"
#include "examples/decoder/train/trainer.hpp"
#include "examples/decoder/train/validation.hpp"
#include "examples/new_file.hpp"
#include "examples/pretrain/run.hpp"

namespace pretrain {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const char* plural(std::size_t count) {
  return count == 1 ? "" : "s";
}

bool is_picture(const std::string& path) {
  return path.size() > 4 && path.compare(path.size() - 4, 4, ".svg") == 0;
}

void write_anew(const std::string& path, const std::string& text) {
  try {
    examples::write_new_file(path, text);
  } catch (const std::runtime_error& reason) {
    fail("%s: cannot write: %s", path.c_str(), reason.what());
  }
}

class run {
 public:
  run(const arguments& with, member& rank)
      : values_(with.config.values),
        config_(with.config),
        rank_(after_the_first(in_stages(with.config.values, rank))),
        memory_(rank.memory()),
        context_(rank.context()),
        text_(read_corpus(values_.data.paths, static_cast<std::size_t>(values_.data.sequence),
                          static_cast<std::size_t>(values_.data.validation_bytes))),
        trainer_(rank, values_, text_),
        promise_(keep_to_budget()),
        console_(rank.leads()) {
    if (rank.leads()) claim_places();
    if (with.checkpoint) with.checkpoint->require_unchanged();
    if (with.resume) {
      trainer_.resume(*with.checkpoint);
      validations_ = with.checkpoint->validations();
      std::error_code ignored;
      ours_ =
          out_ && std::filesystem::equivalent(with.checkpoint->path(), out_->checkpoint(), ignored);
    } else {
      trainer_.start(with.checkpoint.get());
    }
    first_ = trainer_.steps_done();
    if (rank.leads()) rank.barrier();
  }

  int operator()() {
    int code = 0;
    try {
      code = go();
    } catch (...) {
      end_records();  // they may show why
      throw;
    }
    if (!unwritten_.empty() && code == 0)
      fail("%s; all else of the run is there", unwritten_.c_str());
    return code;
  }

 private:
  static member& in_stages(const settings& values, member& rank) {
    if (values.parallel.pp > 1)
      rank.split(static_cast<int>(values.parallel.pp), values.parallel.pipeline == "dualpipe");
    return rank;
  }

  // What is wrong with a run is found by rank 0, which prepares before the others, and told once.
  static member& after_the_first(member& rank) {
    if (!rank.leads()) rank.barrier();
    return rank;
  }

  void claim_places() {
    out_.emplace(values_.run.out);
    if (!values_.run.log.empty()) out_->require_apart("--log", values_.run.log);
    if (!values_.memory.memory_trace.empty())
      out_->require_apart("--memory_trace", values_.memory.memory_trace);
    if (!values_.memory.memory_snapshot.empty())
      out_->require_apart("--memory_snapshot", values_.memory.memory_snapshot);
    if (!values_.parallel.timeline.empty()) {
      out_->require_apart("--timeline", values_.parallel.timeline);
      const bool picture = is_picture(values_.parallel.timeline);
      require_replaceable("--timeline", values_.parallel.timeline,
                          picture ? "<svg xmlns=" : "{\"displayTimeUnit\"",
                          picture ? "a picture of one" : "a trace");
    }
  }

  // Whether any rank was told to stop: all ask, and all hear the same. Steps that are validated
  // late bring that with them, and nobody is asked between them.
  bool stopped(progress& report) {
    if (!values_.parallel.post_validation) return stopped();
    if (signal_ != 0) settle(report);
    return signal_ != 0;
  }

  bool stopped() {
    signal_ = rank_.most(interrupt());
    return signal_ != 0;
  }

  int go() {
    rank_.barrier();
    machine_rates machine = {};
    if (rank_.leads() && values_.run.measure)
      machine = measure_machine(context_, trainer_.weights().type(), rank_.ranks());
    introduce(machine);
    if (stopped()) return leave();
    if (first_ > 0 && first_ >= values_.schedule.steps)
      console_.say("done   step %lld of %lld already; --steps asks for more",
                   static_cast<long long>(first_), static_cast<long long>(values_.schedule.steps));
    const step_work work = {
        static_cast<double>(values_.data.step_tokens()), step_flops(values_.model, values_.data),
        machine.flops,
        machine.flops > 0 ? roofline_seconds(step_operations(values_.model, values_.data), machine)
                          : 0};
    const std::int64_t last =
        values_.run.stop_after ? values_.run.stop_after : values_.schedule.steps;
    progress report(console_,
                    {values_.schedule.steps, trainer_.steps_done(), last, values_.run.log_every},
                    work, rank_.leads() ? values_.run.log : "");
    const int code = go_on(report, last);
    if (!report.unwritten().empty()) unwritten_ = report.unwritten();
    return code;
  }

  int go_on(progress& report, std::int64_t last) {
    // What an interrupt kept the run before this one from measuring.
    if (validation_due() && !validate(report)) return leave();
    while (trainer_.steps_done() < last) {
      if (stopped(report)) return leave();
      if (trainer_.steps_done() == first_) memory_.begin_steps();
      one_step(report);
      if (trainer_.steps_done() == first_ + 3) end_records();
      if (trainer_.steps_done() == std::min(first_ + 3, last)) save_timeline();
      if (validation_due() || due(values_.run.save_every)) settle(report);
      if (validation_due() && !validate(report)) return leave();
      if (due(values_.run.save_every)) save();
    }
    settle(report);
    end_records();
    save();
    if (trainer_.steps_done() < values_.schedule.steps) return 0;
    if (!finish(report)) return leave();
    return interrupted() ? 128 + interrupt() : 0;
  }

  std::int64_t keep_to_budget() {
    const memory_settings& asked = values_.memory;
    const std::int64_t budget = asked.memory_budget;
    if (budget == 0) return 0;
    const bool adaptive = asked.recompute == "adaptive";
    const bool fits = adaptive && trainer_.adapt(without_margin(budget));
    const std::int64_t promise = trainer_.promise(asked);
    if (adaptive ? !fits : with_margin(promise) > budget) {
      memory_settings least = asked;
      least.recompute = "full", least.recompute_layers = 0;
      const std::int64_t other = trainer_.promise(least);
      const std::int64_t live = adaptive ? other : promise;
      std::string why = "must be at least " + std::to_string(with_margin(live)) + " (" +
                        told(with_margin(live)) + ": " + told(live) + " and room for holes)";
      if (!adaptive && other < promise)
        why += ", or " + std::to_string(with_margin(other)) + " with recompute = full";
      config_.refuse("memory_budget", why.c_str());
    }
    memory_.set_limit(budget);
    return promise;
  }

  // The pool needs more than what is alive: holes between buffers, and parts of pages.
  static std::int64_t with_margin(std::int64_t bytes) { return bytes + bytes / 100 + (1 << 19); }
  // The most bytes that come to no more with it.
  static std::int64_t without_margin(std::int64_t budget) {
    const std::int64_t rest = budget - (1 << 19);
    return rest - (rest + 1) / 101;
  }
  static std::string told(std::int64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

  std::string parameters() const {
    return scaled(static_cast<double>(trainer_.weights().count())) + " parameters";
  }

  void introduce(const machine_rates& machine) {
    const auto& m = values_.model;
    console_.say("model  %s in %s: %lld layers, hidden %lld, inner %lld,", parameters().c_str(),
                 m.dtype.c_str(), static_cast<long long>(m.layers),
                 static_cast<long long>(m.hidden), static_cast<long long>(m.inner));
    console_.say("       %lld query heads, %lld for keys and values, %s head",
                 static_cast<long long>(m.heads), static_cast<long long>(m.kv_heads),
                 m.tied ? "tied" : "untied");
    console_.say("data   %zu file%s: %.1f KiB to train on, %.1f KiB to validate with",
                 text_.files.size(), plural(text_.files.size()),
                 static_cast<double>(text_.training.size()) / 1024,
                 static_cast<double>(text_.validation.size()) / 1024);
    if (text_.binary_files > 0)
      console_.say("       %zu binary file%s skipped", text_.binary_files,
                   plural(text_.binary_files));
    console_.say("to     %s", values_.run.out.c_str());
    if (promise_ != 0) tell_promise();
    introduce_ranks();
    const int threads = threads_of(context_);
    console_.say("velo   %s, %d thread%s%s", isa_of(context_).c_str(), threads,
                 plural(static_cast<std::size_t>(threads)), rank_.ranks() > 1 ? " a rank" : "");
    if (!values_.run.measure) return;
    console_.say("       this machine: %s at its peak, copies %s",
                 scaled(machine.flops, "FLOP/s").c_str(),
                 scaled(machine.memory[static_cast<std::size_t>(walk::copy)], "B/s").c_str());
  }

  void introduce_ranks() {
    if (rank_.ranks() == 1) return;
    if (std::getenv("OMPI_COMM_WORLD_RANK") && !std::getenv("OMPI_MCA_odls_base_sigkill_timeout"))
      console_.say(
          "note   mpirun kills an interrupted run after 2 s; what takes longer to save\n"
          "       needs OMPI_MCA_odls_base_sigkill_timeout=30 in its environment");
    const auto windows = static_cast<long long>(values_.data.batch / rank_.copies());
    if (rank_.stages() == 1) {
      console_.say("ranks  %d, each with %lld of a micro-batch's windows", rank_.ranks(), windows);
      return;
    }
    const bool one = rank_.copies() == 1;
    console_.say("ranks  %d, %d cop%s of the model with %lld of a micro-batch's windows,",
                 rank_.ranks(), rank_.copies(), one ? "y" : "ies, each", windows);
    console_.say("       cut over %d ranks: %s", rank_.stages(), values_.parallel.pipeline.c_str());
  }

  void tell_promise() {
    const auto layers_with = [&](velo_recompute_kind kind) {
      const auto& all = trainer_.recompute();
      return static_cast<int>(std::count_if(
          all.begin(), all.end(), [&](const layer_recompute& each) { return each.has(kind); }));
    };
    console_.say("memory %s promised, %s with room for holes; made again: %d layer(s),",
                 told(promise_).c_str(), told(with_margin(promise_)).c_str(),
                 layers_with(VELO_RECOMPUTE_FULL));
    console_.say("       attention in %d, gating's output in %d, norms in %d",
                 layers_with(VELO_RECOMPUTE_SELECTIVE), layers_with(VELO_RECOMPUTE_ACTIVATION),
                 layers_with(VELO_RECOMPUTE_NORM));
  }

  void one_step(progress& report) {
    const auto begin = std::chrono::steady_clock::now();
    const std::optional<trainer::result> done = trainer_.step();
    const double before = std::exchange(seconds_, seconds_since(begin));
    if (done) tell(report, *done, done->step == trainer_.steps_done() ? seconds_ : before);
  }

  void settle(progress& report) {
    if (const std::optional<trainer::result> done = trainer_.settle())
      tell(report, *done, seconds_);
  }

  void tell(progress& report, const trainer::result& done, double seconds) {
    report.step({done.step, done.loss, done.learning_rate, done.grad_norm, seconds});
    if (done.interrupt != 0) signal_ = done.interrupt;
    if (rank_.leads() && (!std::isfinite(done.loss) || !std::isfinite(done.grad_norm)))
      fail("step %lld: the %s is not finite; a lower learning_rate may help",
           static_cast<long long>(done.step), std::isfinite(done.loss) ? "gradient" : "loss");
  }

  void end_records() {
    for (const std::string& why : memory_.end_records()) {
      console_.say("%s; the run goes on without it, and fails in the end", why.c_str());
      unwritten_ = why;
    }
  }

  // Of the step just done.
  void save_timeline() {
    const std::string& path = values_.parallel.timeline;
    if (path.empty() || rank_.copy() != 0) return;
    const velo::timeline measured = trainer_.stages()->timeline();
    if (!rank_.leads()) return;
    const velo_timeline_format format = is_picture(path) ? VELO_TIMELINE_SVG : VELO_TIMELINE_TRACE;
    try {
      write_anew(path, measured.write<std::string>(format));
      console_.say("drew %s, when the ranks did what in step %lld", path.c_str(),
                   static_cast<long long>(trainer_.steps_done()));
    } catch (const std::exception& failure) {
      unwritten_ = failure.what();
      console_.say("%s; the run goes on without it, and fails in the end", failure.what());
    }
  }

  bool due(std::int64_t every) const {
    const std::int64_t done = trainer_.steps_done();
    return every > 0 && done > 0 && done % every == 0 && done < values_.schedule.steps;
  }

  bool validation_due() const {
    const bool measured =
        !validations_.empty() && validations_.back().step == trainer_.steps_done();
    return due(values_.run.validate_every) && !measured;
  }

  // False when it was interrupted.
  bool measure() {
    console_.show("validating ..");
    memory_.note("validation");
    const std::optional<double> bits = validation_bits_per_byte(
        rank_, values_.data.sequence, text_.validation, trainer_.windows_at_once(),
        [&](const window* all, std::int64_t count) { return trainer_.nats(all, count); });
    if (!bits) return stopped(), false;
    if (rank_.leads() && !std::isfinite(*bits))
      fail("step %lld: the validation is not finite; a lower learning_rate may help",
           static_cast<long long>(trainer_.steps_done()));
    validations_.push_back({trainer_.steps_done(), *bits});
    return true;
  }

  bool validate(progress& report) {
    if (!measure()) return false;
    console_.say("validation: %.4f bits/byte after step %lld", validations_.back().bits,
                 static_cast<long long>(trainer_.steps_done()));
    report.validation(trainer_.steps_done(), validations_.back().bits);
    return true;
  }

  void save() {
    saved_ = trainer_.steps_done();
    checkpoint now = trainer_.state(config_.json(rank_.ranks()));
    if (!rank_.leads()) return trainer::give(now);
    const std::string place = out_->checkpoint();
    const std::string earlier = ours_ ? "" : out_->place_for_earlier();
    now.validations = validations_;
    save_checkpoint(place, now, earlier);
    ours_ = true;
    if (!earlier.empty()) console_.say("kept an earlier run's checkpoint as %s", earlier.c_str());
    console_.say("saved %s after step %lld", place.c_str(),
                 static_cast<long long>(trainer_.steps_done()));
  }

  int leave() {
    end_records();
    if (trainer_.steps_done() == first_ && saved_ < 0) {
      console_.say("interrupted before the first step; there was nothing to save");
      return 128 + signal_;
    }
    if (saved_ != trainer_.steps_done()) save();
    console_.say("interrupted; go on with --resume %s", values_.run.out.c_str());
    rank_.barrier();  // launchers kill the others when a rank has ended
    return 128 + signal_;
  }

  // False when it was interrupted.
  bool finish(progress& report) {
    const std::string speed = report.speed();
    if (!speed.empty()) console_.say("speed  %s", speed.c_str());
    tell_memory();
    tell_plan();
    tell_swap("activations", trainer_.swapped_activations());
    tell_swap("optimizer", trainer_.swapped_optimizer());
    if (!measure()) return false;
    if (!rank_.leads()) return true;
    const double bits = validations_.back().bits, zlib = zlib_bits_per_byte(text_.validation);
    const double primed = zlib_bits_per_byte(text_.validation, text_.training);
    console_.say("validation: %.4f bits/byte after step %lld", bits,
                 static_cast<long long>(trainer_.steps_done()));
    console_.say("zlib -9:    %.4f bits/byte (%.4f when primed with 32 KiB of training text)", zlib,
                 primed);
    report.finish(bits, zlib);
    draw(bits, zlib);
    const std::string& prompt = values_.run.sample_prompt;
    const std::string text = write_on(prompt);
    console_.say("\nthe model writes:\n%s%s", printable(prompt).c_str(), printable(text).c_str());
    return true;
  }

  // A rank that has a part of the model alone reads all of it from the checkpoint just saved.
  std::string write_on(const std::string& prompt) {
    if (!trainer_.stages())
      return generate(context_.inline_stream(), trainer_.model(), trainer_.activations(), prompt,
                      values_.run);
    return sample_from(checkpoint_reader(out_->checkpoint()), values_, prompt);
  }

  // Peaks of the categories, which need not fall together.
  void tell_memory() {
    const velo_pool_stats all = memory_.stats();
    const std::string promised = promise_ ? ", " + told(promise_) + " promised" : "";
    const auto peak = [&](velo_purpose of) {
      return told(static_cast<std::int64_t>(all.purpose_peak[of]));
    };
    console_.say("memory %s at the peak%s: weights %s, gradients %s,",
                 told(static_cast<std::int64_t>(all.bytes_peak)).c_str(), promised.c_str(),
                 peak(VELO_PURPOSE_PARAMETER).c_str(), peak(VELO_PURPOSE_GRADIENT).c_str());
    console_.say("       optimizer %s%s, activations %s, packed weights and scratch %s",
                 peak(VELO_PURPOSE_OPTIMIZER).c_str(),
                 trainer_.swapped_optimizer() ? " to load and save and none in steps" : "",
                 peak(VELO_PURPOSE_ACTIVATION).c_str(), peak(VELO_PURPOSE_WORKSPACE).c_str());
    console_.say("       %s from the system, holes and all",
                 told(static_cast<std::int64_t>(all.bytes_reserved_peak)).c_str());
  }

  void tell_plan() {
    if (!memory_.plan()) return;
    const velo_plan_stats found = memory_.plan().stats();
    const velo_plan_step last = memory_.plan().step();
    console_.say("plan   %s for a step's buffers, %s the least; %llu of %llu at their addresses",
                 told(static_cast<std::int64_t>(found.height)).c_str(),
                 told(static_cast<std::int64_t>(found.lower_bound)).c_str(),
                 static_cast<unsigned long long>(last.matched),
                 static_cast<unsigned long long>(last.allocations));
  }

  void tell_swap(const char* what, const swapper* of) {
    if (of == nullptr) return;
    const swapper::totals all = of->total();
    console_.say("swap   %s: %s out, %s back, stalled %.1f s", what, scaled(all.out, "B").c_str(),
                 scaled(all.in, "B").c_str(), all.stalled);
  }

  void draw(double bits, double zlib) {
    loss_curve curve;
    char line[160];
    curve.title = parameters() + ", " + values_.model.dtype;
    std::snprintf(line, sizeof line,
                  "validation %.2f bits/byte after %lld steps of %lld tokens; zlib -9 needs %.2f",
                  bits, static_cast<long long>(values_.schedule.steps),
                  static_cast<long long>(values_.data.step_tokens()), zlib);
    curve.subtitle = line;
    for (const float nats : trainer_.losses())
      curve.training.push_back(static_cast<double>(nats) / std::log(2.0));
    curve.validation = validations_;
    curve.zlib = zlib;
    const std::string path = out_->curve();
    write_anew(path, svg(curve));
    console_.say("drew %s", path.c_str());
  }

  const settings& values_;
  const configuration& config_;
  member& rank_;
  run_memory& memory_;
  const velo::context& context_;
  corpus text_;
  trainer trainer_;
  std::int64_t promise_;           // the most bytes that memory will hold; 0: none was made
  std::optional<out_folder> out_;  // of rank 0
  std::vector<loss_point> validations_;
  std::string unwritten_;    // what went wrong with the log or a record; empty: nothing
  std::int64_t first_ = 0;   // steps done before this run
  std::int64_t saved_ = -1;  // the step of the last checkpoint saved
  bool ours_ = false;   // what lies at the checkpoint's place is this run's, and may be replaced
  int signal_ = 0;      // that told a rank to stop
  double seconds_ = 0;  // of the last step
  console console_;
};

}  // namespace

int train(arguments& with) {
  // First: preparing takes seconds, and a shell's background job ignores Ctrl-C.
  catch_interrupts();
  const settings& values = with.config.values;
  if (values.run.transport == "local" && is_launched(values))
    with.config.refuse("transport", "has ranks that are threads, but a launcher started processes");
  return on_all_ranks(
      values, with.words, [&](member& rank) { return run(with, rank)(); },
      [&](std::int64_t ranks) { with.config.require_fit(ranks); });
}

}  // namespace pretrain
