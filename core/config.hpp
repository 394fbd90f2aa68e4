// The configuration of a context: keys with text values, each with the origin of its value.
//
// Kernels read a `settings`, a plain struct. A change publishes a new struct, and old ones are kept
// until the context is destroyed, so reading is one load and never waits. A key is one row of the
// table in config.cpp: name, default, doc, how to read it and how to show it. The environment
// (VELO_<KEY>, dots as underscores) is read once, when the context is made. It overrides code and
// cannot be changed afterwards.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/host/cpu.hpp"
#include "core/slice_table.hpp"
#include "velo/context.h"

namespace velo::core {

enum class origin { standard, code, environment };
const char* origin_name(origin from);  // "default", "code", "environment"

// The limits of the machine with the context's threads; 0: not known.
struct machine_limits {
  double f32_gflops = 0, bf16_gflops = 0;  // of products
  // A second: bytes read from memory, and bytes read plus written by a copy.
  double read_gbytes = 0, copy_gbytes = 0;

  bool operator==(const machine_limits& other) const {
    return f32_gflops == other.f32_gflops && bf16_gflops == other.bf16_gflops &&
           read_gbytes == other.read_gbytes && copy_gbytes == other.copy_gbytes;
  }
};

// How calls of operators are counted (ops/call/counters.hpp).
enum class counting { off, on, recompute };

// Which calls of operators run again by the reference (ops/replay/checked_run.hpp).
enum class checking { off, sample, all };

struct check_settings {
  checking mode = checking::off;
  double share = 0.01;   // of the calls, in mode sample
  std::string capsules;  // folder of the capsules; empty: none are written
  bool data = true;      // whether capsules hold the elements of tensors

  bool operator==(const check_settings& other) const {
    return mode == other.mode && share == other.share && capsules == other.capsules &&
           data == other.data;
  }
};

struct settings {
  int threads = 0;  // 0: chosen automatically
  core::isa isa = core::isa::scalar;
  int optimization = 2;
  int queue = 16384;
  bool closures = true;
  velo_log_level log = VELO_LOG_OFF;
  std::string plugin_path;  // folders of velo's own plugins, separated by ':'
  machine_limits limits;
  core::counting counting = core::counting::off;
  check_settings check;
  overlap_settings overlap;

  struct forced {
    std::string op, kernel;
    origin from;
    bool operator==(const forced& other) const {
      return op == other.op && kernel == other.kernel && from == other.from;
    }
  };
  std::vector<forced> kernels;  // the keys kernel.<op>, sorted by op

  // A new member needs a term here: without one, a change of its key alone is not published.
  bool operator==(const settings& other) const {
    return threads == other.threads && isa == other.isa && optimization == other.optimization &&
           queue == other.queue && closures == other.closures && log == other.log &&
           plugin_path == other.plugin_path && limits == other.limits &&
           counting == other.counting && check == other.check && overlap == other.overlap &&
           kernels == other.kernels;
  }
};

class config {
 public:
  // Returns the names of an operator's kernels, separated by ", "; empty if there is no such
  // operator. With nullptr every name is accepted.
  using kernel_names = std::string (*)(const char* op);

  config(isa machine, velo_log_level log, kernel_names known);

  // Each throws VELO_ERR_NOT_FOUND for an unknown key and VELO_ERR_ARGUMENT for an invalid value.
  // argument: names the value in the failure.
  void set(const char* key, const char* value,
           const char* argument);  // also STATE: the environment sets this key
  void set_json(const char* text, const char* argument);  // also PARSE
  void read_environment();

  struct value {
    std::string text;
    origin from;
  };
  value get(const char* key) const;  // throws VELO_ERR_NOT_FOUND
  std::string list() const;          // JSON array of {key, value, origin, doc}

  const settings& now() const noexcept { return *current_.load(std::memory_order_acquire); }

 private:
  void change(const char* key, const char* value, origin from, const char* argument);
  void change_kernel(settings& next, const char* op, const char* value, origin from,
                     const char* argument) const;
  void publish(settings&& next);

  isa machine_;
  kernel_names known_;
  mutable std::mutex changing_;
  std::vector<origin> origins_;  // one for each row of the table
  std::vector<std::unique_ptr<const settings>> versions_;
  std::atomic<const settings*> current_{nullptr};
};

}  // namespace velo::core
