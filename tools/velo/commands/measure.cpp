// One brief calibration.
#include "tools/velo/commands/measure.hpp"

#include <algorithm>
#include <string>

#include "bench/limits/calibration.hpp"

namespace command {

std::vector<limits> measure(const velo::context& context) {
  using velo::bench::limit;
  const velo::bench::machine here =
      velo::bench::identify_machine(context.config<std::string>("isa"));
  // More threads than processors add nothing to what the processors can do.
  const int most = std::min(context.stats().threads, static_cast<int>(here.cpus.size()));
  std::vector<int> counts = {1};
  if (most > 1) counts.push_back(most);
  const velo::bench::calibration found = velo::bench::calibrate(here, counts, velo::bench::brief);
  std::vector<limits> all;
  for (const int threads : counts)
    all.push_back({threads, velo::bench::product_peak(found, false, threads),
                   velo::bench::product_peak(found, true, threads), found.at(limit::read, threads),
                   std::max(found.at(limit::copy, threads), found.at(limit::copy_nt, threads))});
  return all;
}

}  // namespace command
