// Converts decimals to ticks: mantissas over one power of ten, times the share of a stage.
#include "sched/schedule/ticks.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

constexpr double exact = 9007199254740992.0;  // 2^53: whole doubles up to here are exact

struct decimal {
  std::int64_t mantissa = 0;
  int exponent = 0;  // of ten
};

decimal decimal_of(double value) {
  char text[32];
  const char* end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  decimal result;
  const char* at = text;
  bool behind_point = false;
  for (; *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    result.mantissa = result.mantissa * 10 + (*at - '0');
    if (behind_point) --result.exponent;
  }
  int exponent = 0;
  std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, exponent);
  result.exponent += exponent;
  for (; result.mantissa != 0 && result.mantissa % 10 == 0; result.mantissa /= 10)
    ++result.exponent;
  return result;
}

// Converts shares to whole numbers without a common factor, exactly if their sum stays below
// `most_share`.
constexpr std::int64_t most_share = std::int64_t{1} << 24;
std::vector<std::int64_t> whole_shares(const std::vector<double>& given) {
  std::vector<decimal> read;
  int least = 0;
  double sum = 0;
  for (const double share : given) {
    read.push_back(decimal_of(share));
    sum += share;
    if (read.back().mantissa != 0) least = std::min(least, read.back().exponent);
  }
  std::vector<std::int64_t> whole;
  if (sum * std::pow(10.0, -least) <= static_cast<double>(most_share)) {
    for (const decimal& share : read) {
      whole.push_back(share.mantissa);
      for (int e = least; e < share.exponent && share.mantissa != 0; ++e) whole.back() *= 10;
    }
  } else {
    for (const double share : given)
      whole.push_back(std::llround(share / sum * static_cast<double>(most_share)));
  }
  std::int64_t common = 0;
  for (const std::int64_t share : whole) common = std::gcd(common, share);
  for (std::int64_t& share : whole) share /= std::max<std::int64_t>(common, 1);
  return whole;
}

// Scales activations so that their parts are whole: exact for three digits.
void scale_activations(const costs& given, ticks& into) {
  if (given.pending == 1 && given.checkpoint == 0) return;
  into.full = 1024;
  for (const std::int64_t full : {10, 100, 1000}) {
    const double pending = given.pending * static_cast<double>(full);
    const double checkpoint = given.checkpoint * static_cast<double>(full);
    if (std::fabs(pending - std::round(pending)) > 1e-9 ||
        std::fabs(checkpoint - std::round(checkpoint)) > 1e-9)
      continue;
    into.full = full;
    break;
  }
  into.pending = std::llround(given.pending * static_cast<double>(into.full));
  into.checkpoint = std::llround(given.checkpoint * static_cast<double>(into.full));
}

// A cost, and its factor once all costs are over the same divisor.
struct term {
  double given;
  std::int64_t factor;
  std::int64_t* into;
};

// Converts all costs exactly; false if they do not fit. most: the largest that one may become.
bool scale_exactly(const std::vector<term>& terms, std::int64_t divisor, double most,
                   double& unit) {
  std::vector<decimal> read;
  int least = 0;
  for (const term& t : terms) {
    read.push_back(decimal_of(t.given));
    if (read.back().mantissa != 0) least = std::min(least, read.back().exponent);
  }
  unit = static_cast<double>(divisor);
  for (int e = least; e < 0; ++e) unit *= 10;
  if (unit > exact) return false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    double size = static_cast<double>(read[i].mantissa) * static_cast<double>(terms[i].factor);
    for (int e = least; e < read[i].exponent && size != 0; ++e) size *= 10;
    if (size > most) return false;
    *terms[i].into = read[i].mantissa * terms[i].factor;
    for (int e = least; e < read[i].exponent && size != 0; ++e) *terms[i].into *= 10;
  }
  return true;
}

void scale_rounded(const std::vector<term>& terms, std::int64_t divisor, double most,
                   double& unit) {
  const auto part = [&](const term& t) {
    return t.given * static_cast<double>(t.factor) / static_cast<double>(divisor);
  };
  double largest = 0;
  for (const term& t : terms) largest = std::max(largest, part(t));
  int bits = 0;
  std::frexp(most / largest, &bits);
  unit = std::ldexp(1.0, bits - 1);
  for (const term& t : terms) *t.into = std::llround(part(t) * unit);
}

}  // namespace

double ticks::value(std::int64_t count) const {
  if (static_cast<double>(count) < exact) return static_cast<double>(count) / unit;
  return static_cast<double>(static_cast<long double>(count) / unit);
}

double ticks::in_microbatches(std::int64_t activations, const shape& sizes) const {
  std::int64_t all = shares.empty() ? sizes.stages : 0;
  for (const std::int64_t share : shares) all += share;
  return static_cast<double>(activations * sizes.ranks * sizes.chains) /
         (static_cast<double>(all) * static_cast<double>(sizes.splits * full));
}

costs with_shares(costs given, const shape& sizes, const layout* layers, const char* argument) {
  if (given.shares.empty() && layers != nullptr) {
    for (std::int32_t stage = 0; stage < sizes.stages; ++stage) {
      const stage_content& holds = layers->stages[core::at(stage % sizes.chain_length())];
      given.shares.push_back(holds.layers - holds.noops + given.predictor * holds.predictors +
                             (holds.embedding ? given.embedding : 0) +
                             (holds.loss ? given.loss : 0));
    }
  }
  if (given.shares.empty()) return given;
  if (given.shares.size() != static_cast<std::size_t>(sizes.stages))
    fail(VELO_ERR_ARGUMENT, text("%s.share_count", argument), text("%d, the stages", sizes.stages),
         text("%zu", given.shares.size()));
  double all = 0;
  for (const double share : given.shares) all += share;
  if (!(all > 0))
    fail(VELO_ERR_ARGUMENT, text("%s.shares", argument), "a model that is more than nothing",
         "nothing");
  const bool alike = std::all_of(given.shares.begin(), given.shares.end(),
                                 [&](double share) { return share == given.shares[0]; });
  if (alike) given.shares.clear();
  return given;
}

ticks ticks_of(const costs& given, const shape& sizes, std::int64_t actions) {
  if (sizes.stages == 0) return {};
  ticks result;
  scale_activations(given, result);
  std::int64_t all = sizes.stages, most_of_one = 1;
  if (!given.shares.empty()) {
    result.shares = whole_shares(given.shares);
    all = std::accumulate(result.shares.begin(), result.shares.end(), std::int64_t{0});
    most_of_one = *std::max_element(result.shares.begin(), result.shares.end());
  }
  const std::int64_t halves = given.shares.empty() ? 1 : 2;  // an FB takes the mean of two shares
  const std::int64_t ranks = std::int64_t{sizes.ranks} * sizes.chains;
  const std::int64_t common = std::gcd(ranks, all);
  const std::int64_t part = ranks / common * halves, whole = all / common * halves;
  const std::int64_t once = part * sizes.splits, divisor = whole * sizes.splits;
  result.fused_is_sum = given.fused < 0;
  const std::vector<term> terms = {
      {given.forward, part, &result.forward},
      {given.input, part, &result.input},
      {given.weight, part, &result.weight},
      {result.fused_is_sum ? 0 : given.fused, part, &result.fused},
      {given.recompute < 0 ? given.forward : given.recompute, part, &result.recompute},
      {given.offload, part, &result.offload},
      {given.reload, part, &result.reload},
      {given.gather, once, &result.gather},
      {given.reduce, once, &result.reduce},
      {given.optimizer, once, &result.optimizer},
      {given.transfer, whole, &result.transfer},
      {given.latency, divisor, &result.latency}};
  // No simulated time exceeds the sum of all actions and messages.
  const double most = std::ldexp(1.0, 61) /
                      (4.0 * static_cast<double>(actions + 1) * static_cast<double>(most_of_one));
  if (!scale_exactly(terms, divisor, most, result.unit))
    scale_rounded(terms, divisor, most, result.unit);
  if (result.fused_is_sum) result.fused = result.forward + result.input + result.weight;
  return result;
}

}  // namespace velo::sched
