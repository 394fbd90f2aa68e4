// A training run: set up, step until done or told to stop, save, measure, report.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "baseline.hpp"
#include "context.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "generate.hpp"
#include "interrupt.hpp"
#include "loss_curve.hpp"
#include "machine_rates.hpp"
#include "progress.hpp"
#include "roofline.hpp"
#include "run.hpp"
#include "trainer.hpp"
#include "validation.hpp"

namespace pretrain {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class run {
 public:
  explicit run(arguments& with)
      : values_(with.config.values),
        config_(with.config),
        context_(make_context(values_.run)),
        text_(read_corpus(values_.data.paths, static_cast<std::size_t>(values_.data.sequence),
                          static_cast<std::size_t>(values_.data.validation_bytes))),
        trainer_(context_, values_, text_) {
    if (with.checkpoint) {
      trainer_.resume(*with.checkpoint);
    } else {
      trainer_.start();
    }
  }

  int operator()() {
    const machine_rates machine = measure_machine(context_, trainer_.weights().type());
    introduce(machine);
    const step_work work = {
        static_cast<double>(values_.data.step_tokens()), step_flops(values_.model, values_.data),
        machine.flops, roofline_seconds(step_operations(values_.model, values_.data), machine)};
    progress report(values_.schedule.steps, work, values_.run.log, trainer_.steps_done());
    catch_interrupts();
    const std::int64_t last =
        values_.run.stop_after ? values_.run.stop_after : values_.schedule.steps;
    while (trainer_.steps_done() < last) {
      if (interrupted()) return leave();
      one_step(report);
    }
    save();
    if (last < values_.schedule.steps) return 0;
    finish(report);
    return interrupted() ? 130 : 0;
  }

 private:
  void introduce(const machine_rates& machine) {
    std::printf(
        "model  %.2f M parameters, %s: hidden %lld, %lld layers, %lld/%lld heads, inner %lld, %s "
        "head\n",
        1e-6 * static_cast<double>(trainer_.weights().count()), values_.model.dtype.c_str(),
        static_cast<long long>(values_.model.hidden), static_cast<long long>(values_.model.layers),
        static_cast<long long>(values_.model.heads), static_cast<long long>(values_.model.kv_heads),
        static_cast<long long>(values_.model.inner), values_.model.tied ? "tied" : "untied");
    std::printf("data   %zu files, %.1f KiB for training, %.1f KiB for validation\n",
                text_.files.size(), static_cast<double>(text_.training.size()) / 1024,
                static_cast<double>(text_.validation.size()) / 1024);
    std::printf("velo   %s, %d threads; the machine: %.4g GFLOP/s, copies %.3g GB/s\n",
                isa_of(context_).c_str(), threads_of(context_), machine.flops * 1e-9,
                machine.memory[static_cast<std::size_t>(walk::copy)] * 1e-9);
  }

  void one_step(progress& report) {
    const auto begin = std::chrono::steady_clock::now();
    const trainer::result done = trainer_.step();
    report.step({trainer_.steps_done(), done.loss, done.learning_rate, done.grad_norm,
                 seconds_since(begin)});
    if (!std::isfinite(done.loss))
      fail("step %lld: the loss is not finite; a lower learning_rate may help",
           static_cast<long long>(trainer_.steps_done()));
    const auto due = [&](std::int64_t every) {
      return every > 0 && trainer_.steps_done() % every == 0 &&
             trainer_.steps_done() < values_.schedule.steps;
    };
    if (due(values_.run.validate_every)) validate();
    if (due(values_.run.save_every)) save();
  }

  double validate() {
    const double bits = validation_bits_per_byte(context_.inline_stream(), trainer_.model(),
                                                 values_.data, text_.validation);
    validation_.push_back({trainer_.steps_done(), bits});
    std::printf("validation: %.4f bits a byte\n", bits);
    std::fflush(stdout);
    return bits;
  }

  std::string place() const { return values_.run.out + "/checkpoint"; }

  void save() {
    save_checkpoint(place(), trainer_.state(config_.json()));
    std::printf("saved %s\n", place().c_str());
  }

  int leave() {
    save();
    std::printf("interrupted after step %lld; go on with --resume %s\n",
                static_cast<long long>(trainer_.steps_done()), place().c_str());
    return 130;
  }

  void finish(progress& report) {
    const double bits = validate();
    const double zlib = zlib_bits_per_byte(text_.validation);
    const double primed = zlib_bits_per_byte(text_.validation, text_.training);
    std::printf("zlib -9:    %.4f bits a byte (%.4f when primed with 32 KiB of training text)\n",
                zlib, primed);
    report.finish(bits, zlib);
    draw(bits, zlib);
    if (interrupted()) return;
    const std::string& prompt = values_.run.sample_prompt;
    const std::string text = generate(context_.inline_stream(), trainer_.model(),
                                      values_.data.sequence, prompt, values_.run);
    std::printf("\nthe model writes:\n%s%s\n", printable(prompt).c_str(), printable(text).c_str());
  }

  void draw(double bits, double zlib) {
    loss_curve curve;
    char line[160];
    std::snprintf(line, sizeof line, "%.1f M parameters, %s",
                  1e-6 * static_cast<double>(trainer_.weights().count()),
                  values_.model.dtype.c_str());
    curve.title = line;
    std::snprintf(line, sizeof line,
                  "validation %.2f bits a byte after %lld steps of %lld tokens; zlib -9 needs %.2f",
                  bits, static_cast<long long>(values_.schedule.steps),
                  static_cast<long long>(values_.data.step_tokens()), zlib);
    curve.subtitle = line;
    for (const float nats : trainer_.losses())
      curve.training.push_back(static_cast<double>(nats) / std::log(2.0));
    curve.validation = validation_;
    curve.zlib = zlib;
    const std::string path = values_.run.out + "/loss.svg";
    ::unlink(path.c_str());
    durable_file file(path);
    file.write(svg(curve));
    file.finish();
    std::printf("drew %s\n", path.c_str());
  }

  const settings& values_;
  const configuration& config_;
  velo::context context_;
  corpus text_;
  trainer trainer_;
  std::vector<loss_point> validation_;
};

}  // namespace

int train(arguments& with) {
  return run(with)();
}

}  // namespace pretrain
