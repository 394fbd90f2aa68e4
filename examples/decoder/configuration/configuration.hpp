// The settings' names, bounds and explanations, and their three sources: defaults, a JSON file, the
// command line.
//
// One table (option_table.cpp) lists every setting; the file reader, the command line, --help and
// the checkpoint all use it, so a setting is added in one line. The file has one object a section,
// {"model": {"hidden": 512}, ...}; the command line has one flag a setting, --hidden 512, of the
// same name, in which dashes may stand for underscores. Each setting remembers where it was set, so
// that a refusal can point at file, line and column.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "examples/decoder/settings.hpp"
#include "examples/decoder/weights/layout.hpp"

struct json_t;

namespace decoder {

class stage_plan;

class configuration {
 public:
  configuration();
  configuration(const configuration&) = delete;
  configuration& operator=(const configuration&) = delete;

  settings values;

  // Take settings from a JSON file, from JSON text (`name` stands for it in messages; the settings
  // may be a member of it called `member`), from one flag's text (`flag` comes without the leading
  // dashes), or one section from another configuration.
  void read_file(const std::string& path);
  void read_text(const std::string& text, const std::string& name, const char* member = nullptr);
  void set(const std::string& flag, const std::string& text);
  // The section "model" from the text of transformers' config.json of a Llama, a Mixtral, a Glm4Moe
  // or a DeepseekV3. Refuses a model that this decoder does not have.
  void read_llama(const std::string& text, const std::string& name);
  void adopt(const configuration& other, const std::string& section);

  // Restores the default, as if the setting had not been set.
  void reset(const char* name);

  // Whether setting `name` was set elsewhere than in `other`.
  bool has_own(const configuration& other, const char* name) const;

  // Refuses a flag that is neither a setting's nor one of `others`, and suggests similar ones.
  void require_flag(const std::string& flag, const std::vector<std::string>& others = {}) const;

  // Refuses settings that contradict each other; single ones were bounded when they were set. A
  // default warm-up is shortened to a shorter run.
  void check();

  // Refuses settings that a run of so many ranks cannot have.
  void require_fit(std::int64_t ranks) const;

  // Refuses if the two differ in a setting of `section`; `whose` names the owner of `other`.
  void require_same(const configuration& other, const std::string& section,
                    const std::string& whose) const;

  // The settings that all ranks of a job have in common, each in a line of its own. Others are a
  // rank's own: files and directories, threads, memory, reports.
  std::string common_text() const;

  // Refuses setting `name` because of `why`, and of the value of `other` if one is given.
  [[noreturn]] void refuse(const char* name, const char* why, const char* other = nullptr) const;

  // Every setting as JSON, in the file's form. `started` is the run's number of ranks.
  std::string json(std::optional<std::int64_t> started = {}) const;
  std::string help() const;  // every setting with its default and explanation

 private:
  using target =
      std::variant<std::int64_t*, double*, bool*, std::string*, std::vector<std::string>*>;
  struct option {
    std::string section, name;
    target value;
    double low, high;  // of numbers, inclusive
    std::string help;
    std::string origin = "default";  // "default", "--hidden", "small.json:3:15"
  };

  void add_model();
  void add_capacity();
  void add_data();
  void add_training();
  void add_memory();
  void add_parallel();
  void add_run();
  void add(const char* section, const char* name, target value, const char* help, double low = 0,
           double high = 0);
  option* find(const std::string& name);
  std::vector<std::string> names(const std::string& section = "") const;  // of all, without one
  std::string place_of(const std::string& key) const;
  const option& at(const char* name) const;
  bool is_flag(const char* name) const;
  // Whether the setting is cut where a run has fewer steps: a default, or of a file or checkpoint
  // while --steps is a flag.
  bool yields_to_steps(const char* name) const;
  void require_utf8() const;
  const std::string& word(const char* name) const;  // of a setting that is a text
  void check_memory() const;
  void check_recompute() const;
  void check_recompute_level() const;
  void check_swap() const;
  void check_saved() const;
  void check_profile();
  void check_narrow() const;
  void check_parallel() const;
  void check_tensor_parallel() const;
  void check_two_dimensions() const;
  void check_context_parallel() const;
  void check_keys() const;
  void check_attention() const;
  void check_experts() const;
  void check_router() const;
  void check_expert_layout() const;
  void check_expert_ranks() const;
  void check_capacity() const;
  void check_expert_overlap() const;
  void require_expert_fit(std::int64_t ranks) const;
  void check_stages() const;
  void check_sequence_splits() const;
  void check_shared_splits() const;
  void require_unset(const char* name, const char* why, const char* size = nullptr) const;
  void require_sequence_plan() const;
  void refuse_plan(const std::string& field, const std::string& wanted, std::int64_t heads) const;
  [[noreturn]] void refuse_ranks(const char* name, const std::string& why,
                                 std::int64_t neighbors) const;
  void drop_parts();
  void require_pipeline() const;
  void require_listed(const stage_plan& plan) const;
  void require_layers(const stage_plan& plan) const;
  void take_fixed(const char* name, const std::string& text, const std::string& origin);
  void take(option& which, json_t* json, const std::string& origin);
  static void bound(const option& which, double number, const std::string& origin);
  static std::string text(const option& which);
  std::deque<option> options_;
};

}  // namespace decoder
