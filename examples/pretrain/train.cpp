// A training run: set up, step until done or interrupted, save, measure, report.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "examples/decoder/checkpoint/out_folder.hpp"
#include "examples/decoder/data/baseline.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/model/generate.hpp"
#include "examples/decoder/ranks/interrupt.hpp"
#include "examples/decoder/ranks/launch.hpp"
#include "examples/decoder/report/progress.hpp"
#include "examples/decoder/train/validation.hpp"
#include "examples/pretrain/commands.hpp"
#include "examples/pretrain/memory_budget.hpp"
#include "examples/pretrain/operator_table.hpp"
#include "examples/pretrain/outputs.hpp"
#include "examples/pretrain/report.hpp"

namespace pretrain {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Each rank that a launcher starts reads its own settings. Rank 0 refuses settings that differ.
void require_common_settings(const configuration& config, const member& rank) {
  const std::vector<std::string> texts = rank.collect_texts(config.common_text());
  for (std::size_t i = 1; i < texts.size(); ++i) {
    std::istringstream ours(texts[0]), theirs(texts[i]);
    std::string our, their;
    while (std::getline(ours, our) && std::getline(theirs, their))
      if (our != their)
        fail("%s of rank 0, but %s of rank %d; all ranks need the same settings", our.c_str(),
             their.c_str(), static_cast<int>(i));
  }
}

class run {
 public:
  run(const arguments& with, member& rank)
      : values_(with.config.values),
        config_(with.config),
        rank_(prepared(with.config, rank)),
        memory_(rank.memory()),
        context_(rank.context()),
        text_(read_corpus(values_.data.paths, static_cast<std::size_t>(values_.data.sequence),
                          static_cast<std::size_t>(values_.data.validation_bytes),
                          documents_named(values_.data.documents))),
        trainer_(rank, values_, text_),
        peak_(peak_within_budget()),
        console_(rank.leads()) {
    if (rank.leads()) require_outputs(out_.emplace(values_.run.out), values_, with.resume);
    if (with.checkpoint) with.checkpoint->require_unchanged();
    if (with.resume) {
      trainer_.resume(*with.checkpoint);
      validations_ = with.checkpoint->validations();
      std::error_code ignored;
      owns_checkpoint_ =
          out_ && std::filesystem::equivalent(with.checkpoint->path(), out_->checkpoint(), ignored);
    } else {
      trainer_.start(with.source());
    }
    first_ = trainer_.steps_done();
    known_ = validations_.size();
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
  // The ranks compute their peaks together, so rank 0 lets the others prepare before it goes on.
  std::int64_t peak_within_budget() {
    if (values_.memory.memory_budget == 0) return 0;
    if (rank_.leads()) rank_.barrier();
    const budget_answer found = keep_to_budget(values_.memory, trainer_, memory_);
    if (!rank_.leads()) rank_.barrier();  // where it is refused, rank 0 ends this wait
    if (!found.refused.empty()) config_.refuse("memory_budget", found.refused.c_str());
    return found.peak;
  }

  // Rank 0 prepares before the others, so that it alone finds and prints what is wrong with a run.
  static member& prepared(const configuration& config, member& rank) {
    require_common_settings(config, rank);
    split(rank, config.values);
    if (!rank.leads()) rank.barrier();
    return rank;
  }

  // Whether any rank was interrupted: all ranks ask together and get the same answer. Steps that
  // are validated late carry the answer with them, and no rank asks between them.
  bool interrupted_run(progress& report) {
    if (!values_.parallel.post_validation) return interrupted_run();
    if (signal_ != 0) settle(report);
    return signal_ != 0;
  }

  bool interrupted_run() {
    signal_ = static_cast<int>(rank_.max(interrupt()));
    return signal_ != 0;
  }

  int go() {
    rank_.barrier();
    if (interrupted_run()) return leave();
    machine_rates machine = {};
    if (rank_.leads() && values_.run.measure)
      machine = measure_machine(context_, trainer_.weights().type(), rank_.ranks());
    if (rank_.leads() && values_.run.operators)
      count_operators(rank_.context(), machine, trainer_.weights().type() == element::bf16);
    introduce(console_, values_, text_, trainer_, rank_, peak_, machine);
    if (interrupted_run()) return leave();
    if (!values_.run.profile.empty() && first_ >= values_.run.profile_end)
      console_.say(
          "no profile: its last step is %lld, and %lld are done; --profile_end asks for more",
          static_cast<long long>(values_.run.profile_end), static_cast<long long>(first_));
    if (first_ > 0 && first_ >= values_.schedule.steps)
      console_.say("done   step %lld of %lld already; --steps asks for more",
                   static_cast<long long>(first_), static_cast<long long>(values_.schedule.steps));
    const std::int64_t last =
        values_.run.stop_after ? values_.run.stop_after : values_.schedule.steps;
    progress report(console_,
                    {values_.schedule.steps, trainer_.steps_done(), last, values_.run.log_every},
                    work_of_step(values_, machine), rank_.leads() ? values_.run.log : "");
    const int code = go_on(report, last);
    if (!report.unwritten().empty()) unwritten_ = report.unwritten();
    return code;
  }

  int go_on(progress& report, std::int64_t last) {
    // An interrupt may have kept the run before this one from a validation.
    if (validation_due() && !validate(report)) return leave();
    while (trainer_.steps_done() < last) {
      if (interrupted_run(report)) return leave();
      if (trainer_.steps_done() == first_) memory_.begin_steps();
      start_profile();
      one_step(report);
      if (trainer_.steps_done() == values_.run.profile_end) save_profile();
      if (trainer_.steps_done() == first_ + 3) end_records();
      if (trainer_.steps_done() == std::min(first_ + 3, last)) save_timeline();
      if (validation_due() || due(values_.run.save_every)) settle(report);
      if (validation_due() && !validate(report)) return leave();
      if (due(values_.run.save_every)) save();
    }
    settle(report);
    end_records();
    save_profile();
    save_expert_picture();
    if (has_news()) save();
    if (trainer_.steps_done() < values_.schedule.steps) return 0;
    if (!finish(report)) return leave();
    return interrupted() ? 128 + interrupt() : 0;
  }

  void one_step(progress& report) {
    const auto begin = std::chrono::steady_clock::now();
    const std::optional<trainer::result> done = [&] {
      const std::string name = "step " + std::to_string(trainer_.steps_done() + 1);
      const profile::range here(rank_.profiled(), name.c_str());
      return trainer_.step();
    }();
    const double before = std::exchange(seconds_, seconds_since(begin));
    if (done) log(report, *done, done->step == trainer_.steps_done() ? seconds_ : before);
  }

  void settle(progress& report) {
    if (const std::optional<trainer::result> done = trainer_.settle()) log(report, *done, seconds_);
  }

  void log(progress& report, const trainer::result& done, double seconds) {
    step_report all = {done.step, done.loss, done.learning_rate, done.grad_norm, seconds, 0, ""};
    if (trainer_.loads() != nullptr && rank_.leads()) add_loads(*trainer_.loads(), all);
    report.step(all);
    if (done.interrupt != 0) signal_ = done.interrupt;
    if (rank_.leads() && (!std::isfinite(done.loss) || !std::isfinite(done.grad_norm)))
      fail("step %lld: the %s is not finite; a lower learning_rate may help",
           static_cast<long long>(done.step), std::isfinite(done.loss) ? "gradient" : "loss");
  }

  void add_loads(const expert_loads& of, step_report& to) {
    std::vector<float> shares;
    for (std::size_t layer = 0; layer < of.layers(); ++layer) {
      to.expert_tokens += layer == 0 ? "[[" : ", [";
      for (std::size_t i = 0; i < of.experts(); ++i) {
        to.expert_tokens += (i == 0 ? "" : ", ") + std::to_string(of.count(layer, i));
        shares.push_back(static_cast<float>(of.share(layer, i)));
      }
      to.expert_tokens += ']';
    }
    to.expert_tokens += ']';
    to.busiest = of.busiest();
    if (values_.run.expert_picture.empty()) return;
    if (!picture_) picture_.emplace(of.layers(), of.experts());
    picture_->add(to.step, shares);
  }

  void save_expert_picture() {
    if (!picture_) return;
    const std::string& path = values_.run.expert_picture;
    try {
      write_expert_picture(path, *picture_, "Choices of the experts of each layer");
      console_.say("drew %s, the choices of the experts", path.c_str());
    } catch (const std::exception& failure) {
      go_on_without(failure.what());
    }
  }

  void end_records() {
    for (const std::string& why : memory_.end_records()) go_on_without(why);
  }

  void go_on_without(const std::string& why) {
    unwritten_ = why;
    console_.say("%s; the run goes on without it, and fails in the end", why.c_str());
  }

  // A resumed run may begin among the steps that are profiled.
  void start_profile() {
    const run_settings& r = values_.run;
    const std::int64_t next = trainer_.steps_done() + 1;
    if (r.profile.empty() || next > r.profile_end || next != std::max(r.profile_start, first_ + 1))
      return;
    is_profiled_ = true;
    if (is_named(r.profile_ranks, rank_.rank()))
      rank_.profiled().start(context_, rank_.rank(), r.profile_level);
  }

  // Writes what has been recorded; all ranks call it.
  void save_profile() {
    if (!std::exchange(is_profiled_, false)) return;
    profile::result mine = {};
    if (rank_.profiled().records()) mine = rank_.profiled().stop();
    const std::vector<std::string> all = rank_.collect_texts(mine.events);
    const double dropped = rank_.sum(static_cast<double>(mine.dropped));
    if (!rank_.leads()) return;
    try {
      write_profiles(values_.run.profile, all);
      console_.say(
          "wrote %s/all.json, a trace of steps %lld to %lld for ui.perfetto.dev, and all.svg",
          values_.run.profile.c_str(),
          static_cast<long long>(std::max(values_.run.profile_start, first_ + 1)),
          static_cast<long long>(trainer_.steps_done()));
      if (dropped > 0)
        console_.say("       %.0f events found no room; profile fewer steps", dropped);
    } catch (const std::exception& failure) {
      go_on_without(failure.what());
    }
  }

  // Writes the timeline of the step just done, which the first rank of each stage measures.
  void save_timeline() {
    const std::string& path = values_.parallel.timeline;
    if (path.empty() || rank_.rank() % rank_.ranks_of_stage() != 0) return;
    const velo::timeline measured = trainer_.stages()->timeline();
    if (!rank_.leads()) return;
    try {
      write_timeline(path, measured);
      console_.say("drew %s, when the ranks did what in step %lld", path.c_str(),
                   static_cast<long long>(trainer_.steps_done()));
    } catch (const std::exception& failure) {
      go_on_without(failure.what());
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

  // Validates; false when it was interrupted.
  bool measure() {
    console_.show("validating ..");
    memory_.note("validation");
    const std::optional<double> bits = validation_bits_per_byte(
        rank_, values_.data.sequence, text_, trainer_.windows_at_once(),
        [&](const window* all, std::int64_t count) { return trainer_.nats(all, count); });
    if (!bits) return interrupted_run(), false;
    if (rank_.leads() && !std::isfinite(*bits))
      fail("step %lld: the validation is not finite; a lower learning_rate may help",
           static_cast<long long>(trainer_.steps_done()));
    validations_.push_back({trainer_.steps_done(), *bits});
    return true;
  }

  bool validate(progress& report) {
    if (!measure()) return false;
    say_validation();
    report.validation(trainer_.steps_done(), validations_.back().bits);
    return true;
  }

  void say_validation() {
    console_.say("validation: %.4f bits/byte after step %lld", validations_.back().bits,
                 static_cast<long long>(trainer_.steps_done()));
  }

  // Whether the run did anything that the checkpoint in its place lacks: a step or a validation.
  // Without one the checkpoint keeps the settings that it was trained with.
  bool has_news() const {
    return trainer_.steps_done() > first_ || validations_.size() > known_ ||
           rank_.max(owns_checkpoint_ ? 1 : 0) == 0;
  }

  void save() {
    saved_ = trainer_.steps_done();
    checkpoint now = trainer_.state(config_.json(rank_.ranks()));
    if (!rank_.leads()) return trainer::give(now);
    const std::string place = out_->checkpoint();
    const std::string earlier = owns_checkpoint_ ? "" : out_->place_for_earlier();
    now.validations = validations_;
    save_checkpoint(place, now, earlier);
    owns_checkpoint_ = true;
    if (!earlier.empty()) console_.say("kept an earlier run's checkpoint as %s", earlier.c_str());
    console_.say("saved %s after step %lld", place.c_str(),
                 static_cast<long long>(trainer_.steps_done()));
  }

  // All ranks are interrupted together. The checkpoint of a run without a step left is there.
  int leave() {
    end_records();
    save_profile();
    const bool did_steps = trainer_.steps_done() > first_;
    if (did_steps && saved_ != trainer_.steps_done()) save();
    if (did_steps || saved_ >= 0 || trainer_.steps_done() >= values_.schedule.steps)
      console_.say("interrupted; go on with --resume %s", values_.run.out.c_str());
    else
      console_.say("interrupted before the first step; there was nothing to save");
    rank_.barrier();  // launchers kill the others when a rank has ended
    return 128 + signal_;
  }

  // Measures and reports the whole run; false when it was interrupted.
  bool finish(progress& report) {
    const std::string speed = report.speed();
    if (!speed.empty()) console_.say("speed  %s", speed.c_str());
    summarize_memory(console_, memory_, trainer_, peak_);
    if (rank_.leads() && values_.run.operators) say_operators(console_, context_);
    if (!measure()) return false;
    if (!rank_.leads()) return true;
    const double zlib = zlib_bits_per_byte(text_.validation);
    const double primed = zlib_bits_per_byte(text_.validation, text_.training);
    say_validation();
    console_.say("zlib -9:    %.4f bits/byte (%.4f when primed with 32 KiB of training text)", zlib,
                 primed);
    report.finish(validations_.back().bits, zlib);
    write_loss_curve(out_->curve(), values_, trainer_, validations_, zlib);
    console_.say("drew %s", out_->curve().c_str());
    const std::string& prompt = values_.run.sample_prompt;
    const std::string text = write_on(prompt);
    console_.say("\nthe model writes:\n%s%s", printable(prompt).c_str(), printable(text).c_str());
    return true;
  }

  // A rank that holds a part of the model reads the whole from the checkpoint just saved.
  std::string write_on(const std::string& prompt) {
    if (rank_.holds_whole_model())
      return generate(context_.inline_stream(), trainer_.model(), trainer_.activations(), prompt,
                      values_);
    return sample_from(checkpoint_reader(out_->checkpoint()), values_, prompt);
  }

  const settings& values_;
  const configuration& config_;
  member& rank_;
  run_memory& memory_;
  const velo::context& context_;
  corpus text_;
  trainer trainer_;
  std::int64_t peak_;              // the most bytes that buffers will hold; 0: without a budget
  std::optional<out_folder> out_;  // of rank 0
  std::vector<loss_point> validations_;
  std::optional<expert_picture> picture_;  // of the steps so far
  std::string unwritten_;                  // why the log or a record ended early; empty: none did
  std::int64_t first_ = 0;                 // steps done before this run
  std::size_t known_ = 0;                  // validations done before it
  std::int64_t saved_ = -1;                // the step of the last checkpoint saved
  bool owns_checkpoint_ = false;  // this run wrote the checkpoint in its place, and may replace it
  bool is_profiled_ = false;      // some rank records
  int signal_ = 0;                // the signal that interrupted a rank
  double seconds_ = 0;            // of the last step
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
