// A trial is five steps of pretrain in a folder of its own, which goes with it. The median of all
// steps but the first counts, by pretrain's log. Cost: the runs.
#include "tools/velo/commands/tune/trials.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "tools/velo/commands.hpp"
#include "tools/velo/commands/tune/pretrain.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {
namespace {

constexpr int steps_of_trial = 5;

class trial_folder {
 public:
  trial_folder() : path_(std::filesystem::temp_directory_path() / "velo-trial-XXXXXX") {
    if (::mkdtemp(&path_[0]) == nullptr)
      throw std::runtime_error(path_ + ": cannot be made: " + std::strerror(errno));
  }
  ~trial_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  trial_folder(const trial_folder&) = delete;
  trial_folder& operator=(const trial_folder&) = delete;
  std::string at(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string quoted(const std::string& word) {
  std::string all = "'";
  for (const char c : word) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all + "'";
}

std::string last_line(const std::string& file) {
  std::ifstream from(file);
  std::string last;
  for (std::string line; std::getline(from, line);)
    if (!line.empty()) last = line;
  return last.empty() ? "it printed nothing" : last;
}

// Tokens a second of each step of pretrain's log.
std::vector<double> rates_in(const std::string& file) {
  std::ifstream from(file);
  std::vector<double> all;
  for (std::string line; std::getline(from, line);) {
    const json read(json_loads(line.c_str(), 0, nullptr));
    const double rate = json_number_value(member(read.get(), "tokens_per_s"));
    if (rate > 0) all.push_back(rate);
  }
  return all;
}

double tokens_of_step(const json_t* tuning) {
  const json_t* assumed = member(tuning, "assumptions");
  return json_number_value(member(assumed, "config.training.global_batch")) *
         json_number_value(member(assumed, "config.training.sequence"));
}

// Runs a plan and notes in it what came of it.
void run(const json_t* tuning, std::size_t index, const std::string& command) {
  const trial_folder here;
  write_file(here.at("plan.json"), pretrain_config(tuning, index));
  const std::string line = command + " --config " + quoted(here.at("plan.json")) + " --steps " +
                           std::to_string(steps_of_trial) + " --log " + quoted(here.at("log")) +
                           " --out " + quoted(here.at("out")) + " --measure false >" +
                           quoted(here.at("printed")) + " 2>&1";
  const int status = std::system(line.c_str());
  if (status == -1) throw std::runtime_error("no shell runs the trial");
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP)
    throw input_error("the trial was interrupted");
  std::vector<double> rates = rates_in(here.at("log"));
  json_t* plan = json_array_get(member(tuning, "plans"), index);
  if (code != 0 || rates.size() < 2) {
    const std::string why =
        "exit code " + std::to_string(code) + ": " + last_line(here.at("printed"));
    json_object_set_new(plan, "trial_failure", json_string(why.c_str()));
    return;
  }
  rates.erase(rates.begin());
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  json_object_set_new(plan, "measured_step_seconds", json_real(tokens_of_step(tuning) / *middle));
}

std::string layout_of(const json_t* plan) {
  std::string all;
  const char* name;
  json_t* value;
  json_object_foreach(member(plan, "layout"), name, value) {
    const std::string shown = json_is_string(value) ? json_string_value(value)
                                                    : std::to_string(json_integer_value(value));
    all += (all.empty() ? "" : ", ") + std::string(name) + " " + shown;
  }
  return all;
}

// By measured time; then what was not run; then what failed.
double place_of(const json_t* plan) {
  if (member(plan, "trial_failure") != nullptr) return 2e300;
  const json_t* measured = member(plan, "measured_step_seconds");
  return measured == nullptr ? 1e300 : json_number_value(measured);
}

void order(json_t* tuning, bool only_run) {
  json_t* plans = member(tuning, "plans");
  std::vector<json_t*> all;
  for (std::size_t i = 0; i < json_array_size(plans); ++i) {
    json_t* plan = json_array_get(plans, i);
    if (!only_run || place_of(plan) != 1e300) all.push_back(plan);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](json_t* a, json_t* b) { return place_of(a) < place_of(b); });
  json_t* ordered = json_array();
  for (json_t* plan : all) json_array_append(ordered, plan);
  json_object_set_new(tuning, "plans", ordered);
}

std::string seconds_text(double seconds) {
  char all[32];
  std::snprintf(all, sizeof all, "%.4g s", seconds);
  return all;
}

}  // namespace

void try_plans(json_t* tuning, const trial_settings& how) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < json_array_size(member(tuning, "plans")); ++i)
    if (json_is_true(member(json_array_get(member(tuning, "plans"), i), "runnable")))
      wanted.push_back(i);
  const auto most = static_cast<std::size_t>(how.most);
  if (how.every_one && wanted.size() > most)
    throw input_error("--type black runs every plan that pretrain can, which are " +
                      std::to_string(wanted.size()) + ", and --trials allows " +
                      std::to_string(most) + ": list less in config.search, or more trials");
  if (wanted.size() > most) wanted.resize(most);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const json_t* plan = json_array_get(member(tuning, "plans"), wanted[i]);
    std::fprintf(stderr, "velo: trial %zu of %zu: %s\n", i + 1, wanted.size(),
                 layout_of(plan).c_str());
    run(tuning, wanted[i], how.command);
  }
  json_object_set_new(tuning, "type", json_string(how.every_one ? "black" : "mixed"));
  order(tuning, how.every_one);
}

std::string trials_text(const json_t* tuning) {
  table rows({"#", "measured", "predicted", "layout"});
  const json_t* plans = member(tuning, "plans");
  for (std::size_t i = 0; i < json_array_size(plans); ++i) {
    const json_t* plan = json_array_get(plans, i);
    const std::string failure = text(plan, "trial_failure");
    const json_t* measured = member(plan, "measured_step_seconds");
    if (measured == nullptr && failure.empty()) continue;
    rows.add({std::to_string(i + 1),
              failure.empty() ? seconds_text(json_number_value(measured)) : "failed",
              seconds_text(json_number_value(member(plan, "step_seconds"))),
              layout_of(plan) + (failure.empty() ? "" : "; " + failure)});
  }
  return rows.str();
}

bool has_trial(const json_t* tuning) {
  const json_t* first = json_array_get(member(tuning, "plans"), 0);
  return member(first, "measured_step_seconds") != nullptr;
}

}  // namespace command
