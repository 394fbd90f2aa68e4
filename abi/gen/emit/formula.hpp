// Formulas of the spec's texts, in the plain notation of the C comments, as MathML for the pages of
// the reference: browsers set it themselves, with no script and no network.
//
// A line of an operator's `doc` that consists of formulas in backticks,
// "`s = a / b`; `y = x * s`.", is a display. Notation: + - * / ^, @ between matrices, calls, [i]
// for an index, sqrt and sum as functions (sum[v](..) over v), abs(x) and not |x|, [a = b] for one
// where that holds and zero elsewhere; = and +=, -=, *= relate two sides.
#pragma once

#include <string>
#include <vector>

namespace velo::gen {

struct formula_error {
  std::string text;
};

// The formulas of a line that consists of formulas; empty for any other line.
std::vector<std::string> formulas_of(const std::string& line);

// One below the other, aligned at their relations. Throws formula_error.
std::string mathml(const std::vector<std::string>& formulas);

}  // namespace velo::gen
