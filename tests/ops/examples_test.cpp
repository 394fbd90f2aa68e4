// The known results among the examples of abi/spec, held against the reference and against the
// kernels of this machine, in float32 and in bfloat16, within the bounds of the spec.
#include "example_call.hpp"
#include "places.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("every operator gives the known results of its examples, at every level") {
  int known = 0;
  for (const char* level : {R"({"level": 0})", R"({"level": 2})"}) {
    session s(1, level);
    for (const hosts::sample& sample : hosts::samples(true)) {
      example_call call(sample);
      VELO_RUN(call.run(s.stream()));
      const bool mixed = call.is_mixed();
      for (const hosts::known_result& wanted : sample.known) {
        for (std::size_t t = 0; t < call.tensors(); ++t) {
          if (wanted.field != call.spec().fields[call.field(t)].name) continue;
          const hosts::array& got = call.memory(t);
          REQUIRE(wanted.values.size() == static_cast<std::size_t>(got.count()));
          const ops::error_bound bound = ops::bound_of(call.spec(), got.dtype, mixed);
          double largest = 0;
          for (const double exact : wanted.values) largest = std::max(largest, std::abs(exact));
          for (std::size_t i = 0; i < wanted.values.size(); ++i) {
            const double exact = wanted.values[i], value = element(got, i);
            INFO(places_of(sample.op)
                 << "\n"
                 << level << " " << wanted.field << "[" << i << "]: " << value);
            CHECK(std::abs(value - exact) <= allowed(bound, exact, largest));
            ++known;
          }
        }
      }
    }
  }
  CHECK(known > 4 * ops::op_count());
}
