// The terms of one pair of a query and a key, for the plain loops.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/attention/engine/attention_tile.hpp"

namespace velo::ops {

pair_terms terms_of(const attention_problem& problem, const attention_sequence& sequence,
                    std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key) {
  const attention_terms& t = *problem.terms;
  pair_terms of{0.0f, 1.0f};
  if (t.pse.data != nullptr) {
    const pse_row from = pse_row_of(t, sequence, batch, head, row);
    if (key < from.columns) {
      with_elements(problem, [&](auto x) {
        of.addend = t.factor *
                    simd::to_float(static_cast<const decltype(x)*>(t.pse.data)[from.first + key]);
      });
    }
  }
  if (t.slopes != nullptr) {
    const float distance = std::fabs(static_cast<float>(row + t.ahead - key));
    of.addend += slope_of(t, batch, head) * -(t.root ? std::sqrt(distance) : distance);
  }
  if (t.mask.data != nullptr && mask_row_of(t, batch, head, row)[key] != 0) of.addend = -HUGE_VALF;
  if (t.drops) {
    const std::uint64_t index = decision_of(problem, sequence, batch, head, row, key);
    of.multiplier = simd::dropout_multiplier(t.dropout, index);
  }
  return of;
}

namespace reference {
extern const attention_terms_kernels attention_terms{};
}

}  // namespace velo::ops
