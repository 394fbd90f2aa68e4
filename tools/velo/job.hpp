// The job that the options of a command describe: --tp N, --order ORDER, --rank R ..
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"

namespace command {

// A whole number behind an option; throws input_error.
std::int64_t integer(const std::string& option, const std::string& word);

// Whole numbers with commas between them.
std::vector<std::int64_t> integers(const std::string& option, const std::string& words);

// velo checks whether the sizes make a job.
class job {
 public:
  job() = default;
  explicit job(const arguments& given);
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  // option: its name without hyphens, one that parse_arguments puts into the layout.
  void set(const std::string& option, const std::string& word);
  velo::topology topology() const { return velo::topology::create(desc_); }
  const velo_topology_desc& sizes() const { return desc_; }
  std::int64_t rank() const { return rank_; }  // -1: all

 private:
  velo_topology_desc desc_ = VELO_TOPOLOGY_DESC_INIT;
  std::string order_;
  std::vector<std::int64_t> levels_;
  std::int64_t rank_ = -1;
};

}  // namespace command
