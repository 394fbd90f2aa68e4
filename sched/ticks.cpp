// From decimals to ticks: mantissas over one power of ten, times the share of a stage.
#include "sched/ticks.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace velo::sched {
namespace {

constexpr double exact = 9007199254740992.0;  // 2^53: whole doubles up to here are exact

struct decimal {
  std::int64_t mantissa = 0;
  int exponent = 0;  // of ten
};

decimal decimal_of(double value) {
  char text[32];
  const char* end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  decimal made;
  const char* at = text;
  bool behind_point = false;
  for (; *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    made.mantissa = made.mantissa * 10 + (*at - '0');
    if (behind_point) --made.exponent;
  }
  int exponent = 0;
  std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, exponent);
  made.exponent += exponent;
  for (; made.mantissa != 0 && made.mantissa % 10 == 0; made.mantissa /= 10) ++made.exponent;
  return made;
}

// A stage's part of a whole rank's cost for a micro-batch.
struct share {
  std::int64_t part, whole;
};
share share_of(const shape& what) {
  const std::int64_t part = std::int64_t{what.ranks} * what.chains;
  const std::int64_t whole = std::int64_t{what.stages} * what.splits;
  const std::int64_t common = std::gcd(part, whole);
  return {part / common, whole / common};
}

constexpr int kinds = 5;

// All five costs exactly; false where they do not fit. most: what one may come to.
bool scale_exactly(const double (&given)[kinds], const share& of, double most,
                   std::int64_t (&into)[kinds], double& unit) {
  decimal read[kinds];
  int least = 0;
  for (int i = 0; i < kinds; ++i) {
    read[i] = decimal_of(given[i]);
    if (read[i].mantissa != 0) least = std::min(least, read[i].exponent);
  }
  unit = static_cast<double>(of.whole);
  for (int e = least; e < 0; ++e) unit *= 10;
  if (unit > exact) return false;
  for (int i = 0; i < kinds; ++i) {
    const std::int64_t factor = i + 1 == kinds ? of.whole : of.part;  // latency is nobody's share
    double size = static_cast<double>(read[i].mantissa) * static_cast<double>(factor);
    for (int e = least; e < read[i].exponent; ++e) size *= 10;
    if (size > most) return false;
    into[i] = read[i].mantissa * factor;
    for (int e = least; e < read[i].exponent; ++e) into[i] *= 10;
  }
  return true;
}

void scale_rounded(const double (&given)[kinds], const share& of, double most,
                   std::int64_t (&into)[kinds], double& unit) {
  double parts[kinds], largest = 0;
  for (int i = 0; i < kinds; ++i) {
    const bool is_latency = i + 1 == kinds;
    parts[i] = is_latency ? given[i]
                          : given[i] * static_cast<double>(of.part) / static_cast<double>(of.whole);
    largest = std::max(largest, parts[i]);
  }
  int bits = 0;
  std::frexp(most / largest, &bits);
  unit = std::ldexp(1.0, bits - 1);
  for (int i = 0; i < kinds; ++i) into[i] = std::llround(parts[i] * unit);
}

}  // namespace

double ticks::value(std::int64_t count) const {
  if (static_cast<double>(count) < exact) return static_cast<double>(count) / unit;
  return static_cast<double>(static_cast<long double>(count) / unit);
}

ticks ticks_of(const costs& given, const shape& what, std::int64_t actions) {
  if (what.stages == 0) return {};
  const double fused = given.fused < 0 ? 0 : given.fused;  // 0: the sum of the scaled, below
  const double all[kinds] = {given.forward, given.input, given.weight, fused, given.latency};
  // No time exceeds all actions and messages one after another.
  const double most = std::ldexp(1.0, 61) / (3.0 * static_cast<double>(actions + 1));
  const share of = share_of(what);
  std::int64_t scaled[kinds];
  ticks made;
  if (!scale_exactly(all, of, most, scaled, made.unit))
    scale_rounded(all, of, most, scaled, made.unit);
  made.forward = scaled[0];
  made.input = scaled[1];
  made.weight = scaled[2];
  made.fused = given.fused < 0 ? scaled[0] + scaled[1] + scaled[2] : scaled[3];
  made.latency = scaled[4];
  return made;
}

}  // namespace velo::sched
