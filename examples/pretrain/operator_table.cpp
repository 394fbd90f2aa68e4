// The keys that switch the counters on, and the rows.
#include "examples/pretrain/operator_table.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace pretrain {
namespace {

struct row {
  std::string name;
  velo_op_counts counts;
};

void set_rate(velo::context& context, const char* key, double rate) {
  if (rate > 0) context.set(key, std::to_string(rate / 1e9).c_str());
}

std::vector<row> rows_of(const velo::context& context) {
  std::vector<row> rows;
  for (std::int64_t i = 0; i < velo::op_count(); ++i) {
    const char* name = velo::op_name(i);
    const velo_op_counts counts = velo::op_counts(context.get(), name);
    if (counts.calls > 0) rows.push_back({name, counts});
  }
  std::sort(rows.begin(), rows.end(),
            [](const row& a, const row& b) { return a.counts.seconds > b.counts.seconds; });
  return rows;
}

void say_row(decoder::console& to, const row& of, double all) {
  const velo_op_counts& c = of.counts;
  const double part = all > 0 ? 100 * c.seconds / all : 0;
  if (c.least_seconds == 0)
    return to.say("%-40s %9lld %9.3f s %5.1f %%", of.name.c_str(), static_cast<long long>(c.calls),
                  c.seconds, part);
  to.say("%-40s %9lld %9.3f s %5.1f %% %9.3f s %5.0f %%", of.name.c_str(),
         static_cast<long long>(c.calls), c.seconds, part, c.least_seconds,
         100 * c.least_seconds / c.seconds);
}

}  // namespace

void count_operators(velo::context& context, const decoder::machine_rates& machine, bool bf16) {
  const auto memory = [&](decoder::walk way) {
    return machine.memory[static_cast<std::size_t>(way)];
  };
  set_rate(context, bf16 ? "limits.bf16_gflops" : "limits.f32_gflops", machine.flops);
  set_rate(context, "limits.read_gbytes", memory(decoder::walk::read));
  set_rate(context, "limits.copy_gbytes", memory(decoder::walk::copy));
  context.set("counters", "on");
}

void say_operators(decoder::console& to, const velo::context& context) {
  const velo_op_counts all = velo::op_counts(context.get());
  to.say("%-40s %9s %11s %7s %11s %7s", "operator", "calls", "time", "part", "least", "share");
  for (const row& each : rows_of(context)) say_row(to, each, all.seconds);
  say_row(to, {"all", all}, all.seconds);
}

}  // namespace pretrain
