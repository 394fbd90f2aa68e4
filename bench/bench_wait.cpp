// bench_wait: what a matrix product loses while other work of its context waits.
//
// The waiting work is a foreign kernel that takes the stream and blocks in a read. The product runs
// on the inline stream and on a queue, with one thread and two, alternately with the job waiting on
// another queue and without. Each timed call follows an untimed one of the same kind, which starts
// or ends the job. Cost: half a minute. Exit code 1 where a product keeps less than 0.95.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "bench/limits/machine.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr double bound = 0.95;

void read_one_byte(velo_stream, std::int64_t file) {
  char byte = 0;
  while (read(static_cast<int>(file), &byte, 1) != 1) {
  }
}

// A job that waits on a stream of its own.
class waiting_job {
 public:
  explicit waiting_job(velo_context context) {
    if (pipe(ends_) != 0) std::exit(2);
    velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
    desc.op = "read_one_byte";
    desc.signature = "v(pl)";
    desc.binding = "stream, attr.file";
    desc.tensors = "";
    desc.function = reinterpret_cast<void*>(&read_one_byte);
    require(velo_kernel_register(context, &desc, &kernel_));
    require(velo_stream_create(context, &stream_));
  }
  ~waiting_job() { set(false); }
  waiting_job(const waiting_job&) = delete;

  void set(bool waits) {
    if (waits == waits_) return;
    waits_ = waits;
    if (!waits) {
      if (write(ends_[1], "", 1) != 1) std::exit(2);
      require(velo_stream_synchronize(stream_));
      return;
    }
    velo_named_value file{};
    file.name = "file";
    file.value.kind = VELO_VALUE_INT;
    file.value.as.i = ends_[0];
    require(velo_op_call(stream_, "read_one_byte", &file, 1));
  }

 private:
  velo_kernel kernel_ = nullptr;
  velo_stream stream_ = nullptr;
  int ends_[2] = {};
  bool waits_ = false;
};

class product {
 public:
  explicit product(std::int64_t size)
      : shape_{size, size}, elements_(static_cast<std::size_t>(3 * size * size), 0.5f) {
    for (int i = 0; i < 3; ++i) {
      tensors_[i] = {elements_.data() + i * size * size,
                     {VELO_DEVICE_CPU, 0},
                     2,
                     {VELO_DTYPE_FLOAT, 32, 1},
                     shape_,
                     nullptr,
                     0};
    }
  }
  void run(velo_stream stream) const {
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &tensors_[0];
    args.b = &tensors_[1];
    args.c = &tensors_[2];
    require(velo_matmul(stream, &args));
    require(velo_stream_synchronize(stream));
  }

 private:
  std::int64_t shape_[2];
  std::vector<float> elements_;
  velo_tensor tensors_[3];
};

bool measure_row(const machine& on, int threads, bool queued, std::int64_t size) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = threads;
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  require(velo_context_create(&desc, &context));
  require(queued ? velo_stream_create(context, &stream) : velo_context_stream(context, &stream));
  double ratio = 0, microseconds = 0;
  {
    waiting_job job(context);
    const product work(size);
    work.run(stream);
    pin_workers(on.cpus, threads);
    const std::vector<candidate> candidates = {{"waiting",
                                                [&](int) {
                                                  job.set(true);
                                                  work.run(stream);
                                                }},
                                               {"alone", [&](int) {
                                                  job.set(false);
                                                  work.run(stream);
                                                }}};
    measuring how;
    how.threads = queued ? 2 : threads;  // a queue's work is not the caller's: no CPU time of it
    how.budget = 2;
    how.warm = true;
    const outcome result = measure(candidates, how);
    ratio = speed_ratio(result, 0, 1);
    microseconds = result.timings[1].p25 * 1e6;
  }
  velo_context_destroy(context);
  std::printf("%-8s %7d %5lld^3 %12.1f %8.3f  %s\n", queued ? "queue" : "inline", threads,
              static_cast<long long>(size), microseconds, ratio,
              ratio >= bound ? "reached" : "MISSED");
  return ratio >= bound;
}

int run() {
  const machine on = identify_machine();
  pin_thread(on.cpus[0]);
  std::printf("%s, load %.1f: a float32 product beside work that waits; goal %.2f\n",
              on.kind.c_str(), load_average(), bound);
  std::printf("%-8s %7s %7s %12s %8s\n", "stream", "threads", "product", "alone, us", "kept");
  bool all = true;
  for (const int threads : {1, 2})
    for (const bool queued : {false, true})
      for (const std::int64_t size : {256, 512})
        all = measure_row(on, threads, queued, size) && all;
  return all ? 0 : 1;
}

}  // namespace
}  // namespace velo::bench

int main() {
  return velo::bench::run();
}
