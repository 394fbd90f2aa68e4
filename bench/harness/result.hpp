// The measurements of one row with one thread count, over all passes, and how they are printed.
//
// velo's rate and share are medians over the passes of the figures at p25; a peer's ratio
// likewise. `p25` and `min` are velo's own seconds a call. Goals look at the worst pass: a claim
// must hold in each.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/limits/calibration.hpp"

namespace velo::bench {

struct peer_result {
  std::string name;
  std::vector<double> rates, ratios;  // by pass
};

struct result {
  std::string name, shape, residency, unit;
  limit bound = limit::fma_f32;
  dtype type = dtype::f32;
  int threads = 1;
  std::vector<double> rates, limits, p25s, mins;  // by pass
  std::vector<peer_result> peers;
  int calls = 0, disturbed = 0;
  int last_pass = -1;  // the one the last figures come from

  double rate() const;                   // in GB/s or GF/s
  double share() const;                  // of the limit
  const peer_result* best_peer() const;  // null when there is none
  void add_peer(const std::string& peer, double rate, double ratio);
};

double median(std::vector<double> values);

void print_header(FILE* out);
void print_line(FILE* out, const result& r);
void print_json(FILE* out, const result& r);

}  // namespace velo::bench
