// One brief calibration of bench/limits, by walk.
#include "examples/decoder/report/machine_rates.hpp"

#include <algorithm>

#include "bench/limits/calibration.hpp"
#include "examples/decoder/ranks/context.hpp"

namespace decoder {

machine_rates measure_machine(const velo::context& context, element type, int ranks) {
  using velo::bench::limit;
  const velo::bench::machine here = velo::bench::identify_machine(isa_of(context));
  // More threads than processors add nothing to what the processors can do.
  const int threads = std::min(ranks * threads_of(context), static_cast<int>(here.cpus.size()));
  const velo::bench::calibration found =
      velo::bench::calibrate(here, {threads}, velo::bench::brief);
  const auto best = [&](std::initializer_list<limit> of) {
    double rate = 0;
    for (const limit each : of) rate = std::max(rate, found.at(each, threads));
    return 1e9 * rate;
  };
  machine_rates rates;
  rates.flops = 1e9 * velo::bench::product_peak(found, type == element::bf16, threads);
  rates.memory = {best({limit::read}), best({limit::copy, limit::copy_nt}), best({limit::triad_nt}),
                  best({limit::scale, limit::adam})};
  rates.cache = {best({limit::cache_read}), best({limit::cache_copy}), best({limit::cache_triad}),
                 best({limit::cache_adam})};
  // Another process may slow one of the two measurements down; the cache is never the slower one.
  for (std::size_t i = 0; i < rates.cache.size(); ++i)
    rates.cache[i] = std::max(rates.cache[i], rates.memory[i]);
  rates.cache_bytes = static_cast<double>(here.cache_bytes);
  return rates;
}

}  // namespace decoder
