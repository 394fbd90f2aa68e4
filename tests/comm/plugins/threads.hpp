// What a test has a say in of the plugin whose ranks are threads.
#pragma once

namespace velo::testing {

class mpi_script {
 public:
  virtual ~mpi_script() = default;
  virtual void has_sent(int from, int to, int tag, int bytes) = 0;
  // Whether a message may arrive now.
  virtual bool passes(int from, int to, int tag) = 0;
  // A rank has looked for a message, which is not there; from: -1 = of anybody.
  virtual void found_nothing(int to, int from, int tag) = 0;
};

using velo_test_script_fn = void (*)(mpi_script* one);  // nullptr: none any more

}  // namespace velo::testing
