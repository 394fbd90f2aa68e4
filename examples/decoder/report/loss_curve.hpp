// The loss curve as an SVG that can stand in a report as it is.
//
// All values are in bits a byte: the training loss, the validation points and zlib's figure share
// one axis. Each line is labelled at its end instead of in a legend. Linear in the number of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

struct loss_point {
  std::int64_t step;
  double bits;
};

struct loss_curve {
  std::string title, subtitle;
  std::vector<double> training;        // of step 1, 2, ..
  std::vector<loss_point> validation;  // in order of steps
  double zlib = 0;                     // 0: not drawn
};

std::string svg(const loss_curve& curve);

}  // namespace decoder
