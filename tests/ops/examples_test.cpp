// The known results among the examples of abi/spec, held against the reference and against the
// kernels of this machine, in float32 and in bfloat16.
#include "example_call.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("every operator gives the known results of its examples, at every level") {
  int known = 0;
  for (const char* level : {R"({"level": 0})", R"({"level": 2})"}) {
    session s(1, level);
    for (const hosts::sample& sample : hosts::samples(true)) {
      example_call call(sample);
      VELO_RUN(call.run(s.stream()));
      bool narrow = false;
      for (std::size_t t = 0; t < call.tensors(); ++t)
        narrow = narrow || call.memory(t).dtype.code == VELO_DTYPE_BFLOAT;
      for (const hosts::known_result& wanted : sample.known) {
        for (std::size_t t = 0; t < call.tensors(); ++t) {
          if (wanted.field != call.spec().fields[call.field(t)].name) continue;
          REQUIRE(wanted.values.size() == static_cast<std::size_t>(call.memory(t).count()));
          for (std::size_t i = 0; i < wanted.values.size(); ++i) {
            INFO(level << " " << sample.op << " " << wanted.field << "[" << i << "]");
            const double bound = (narrow ? 0x1p-7 : 1e-6) * (1 + std::abs(wanted.values[i]));
            CHECK(std::abs(element(call.memory(t), i) - wanted.values[i]) <= bound);
            ++known;
          }
        }
      }
    }
  }
  CHECK(known > 4 * ops::op_count());
}
