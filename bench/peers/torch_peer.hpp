// torch as a peer: bench_torch.py in a process of its own, asked row by row so that both figures
// come from the same minute.
//
// The process is started once and waits on a pipe between requests, its threads asleep. Where the
// interpreter or torch is missing, available() is false and every request comes back empty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/peers/answerer.hpp"

namespace velo::bench {

struct torch_timing {
  std::string peer;  // "torch eager" or "torch compiled"
  double min, p25;   // seconds a call
};

class torch_peer {
 public:
  // python: the interpreter, or empty to look in $VIRTUAL_ENV and the source tree's
  // .venv; script: bench_torch.py.
  torch_peer(const std::string& python, const std::string& script);

  bool available() const { return process_ != nullptr; }
  const std::string& version() const { return version_; }

  std::vector<torch_timing> measure(const std::string& name, dtype type, const std::string& shape,
                                    int threads, int sets, double budget);

 private:
  std::unique_ptr<answerer> process_;
  std::string version_;
};

}  // namespace velo::bench
