// Gloo as a peer of collectives: on each rank bench_gloo.py in a process of its own, with a process
// group of torch's. It times its calls itself, lined up by a barrier of Gloo's, and checks what
// they give; while it works its rank waits for its answer, asleep.
#pragma once

#include <memory>
#include <string>

#include "bench/peers/answerer.hpp"

namespace velo::bench {

class gloo {
 public:
  // python: as find_python's. Called by all ranks of MPI_COMM_WORLD, as is all else; where one has
  // no torch, none has Gloo.
  gloo(const std::string& python, const std::string& script);
  ~gloo();
  gloo(const gloo&) = delete;
  gloo& operator=(const gloo&) = delete;

  // From now on calls are of this row: "all_reduce f32 1024", elements of the whole. False: Gloo
  // has no such collective.
  bool take(const std::string& row);
  double call(int round);  // seconds; -1: a wrong result; 0: the process has ended

 private:
  std::string ask(const std::string& line);

  std::string folder_;
  std::unique_ptr<answerer> process_;
};

}  // namespace velo::bench
