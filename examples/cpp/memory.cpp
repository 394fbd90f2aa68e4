// Memory in C++: a pool that a context's own memory comes from, too; a step recorded once and
// replayed at fixed addresses; activations that wait in a file until just before their use;
// counters, and a picture of it all. The same as ../c/memory.c.
//
//     memory_cpp DIR        the file of the swap, which has no name, and memory.svg go there
//
// Owners end in reverse: what uses the pool is declared behind it.
#include <array>
#include <cstdio>
#include <string>
#include <vector>
#include <velo/velo.hpp>

namespace {

constexpr int layers = 4;
constexpr std::int64_t rows = 256, width = 1024;
constexpr std::uint64_t bytes = rows * width * sizeof(float);

// One layer: out = in / rms(in).
void compute(velo::stream_ref stream, void* in, void* out) {
  static const std::vector<float> ones(width, 1);
  const velo::tensor_view x(static_cast<float*>(in), {rows, width});
  const velo::tensor_view y(static_cast<float*>(out), {rows, width});
  const velo::tensor_view gamma(ones.data(), {width});
  velo::rms_norm(stream, velo::rms_norm_args().x(x).gamma(gamma).y(y));
}

void fill(void* memory) {
  for (int i = 0; i < rows * width; ++i) static_cast<float*>(memory)[i] = float(i % 251 - 125);
}

// Allocations between begin and end belong to the step: they are recorded, or served as recorded.
void step(const velo::plan& plan, velo_plan_mode mode, velo::stream_ref stream) {
  std::array<void*, layers + 1> kept{};
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = bytes;
  request.purpose = VELO_PURPOSE_ACTIVATION;
  plan.begin(mode);
  for (int layer = 0; layer <= layers; ++layer) {
    kept[layer] = plan.allocate(request);
    layer == 0 ? fill(kept[0]) : compute(stream, kept[layer - 1], kept[layer]);
  }
  for (int layer = layers; layer >= 0; --layer) plan.free(kept[layer], bytes);
  plan.end();
}

void planned(const velo::pool& pool, velo::stream_ref stream) {
  const velo::plan plan = velo::plan::create(0, pool);
  step(plan, VELO_PLAN_RECORD, stream);
  plan.solve();
  for (int i = 0; i < 3; ++i) step(plan, VELO_PLAN_REPLAY, stream);
  const velo_plan_stats stats = plan.stats();
  const velo_plan_step last = plan.step();
  std::printf(
      "plan: %llu bytes where %llu is the least, %llu of %llu requests at their addresses\n",
      (unsigned long long)stats.height, (unsigned long long)stats.lower_bound,
      (unsigned long long)last.matched, (unsigned long long)last.allocations);
}

// Forward, each activation leaves as soon as the layer above it has been computed; backward, it is
// fetched one layer ahead, so that disk and processor work at the same time.
void swapped(const velo::swap_space& swap, velo::stream_ref stream) {
  std::array<std::uint64_t, layers + 1> kept{};
  const auto memory = [&](int layer) { return velo_swap_object(swap.object(kept[layer])).memory; };
  for (int layer = 0; layer <= layers; ++layer) {
    kept[layer] = swap.add(bytes);
    layer == 0 ? fill(memory(0)) : compute(stream, memory(layer - 1), memory(layer));
    if (layer > 0) swap.out(kept[layer - 1], stream);
  }
  float sum = 0;
  for (int layer = layers; layer >= 0; --layer) {
    if (layer > 0) swap.in(kept[layer - 1], stream);
    swap.wait(kept[layer], stream);  // reports a failed or damaged copy
    sum += *static_cast<const float*>(memory(layer));
    swap.drop(kept[layer]);
  }
  const velo_swap_stats stats = swap.stats();
  std::printf("swap: %llu bytes out and %llu back by %s, sum %.3f\n",
              (unsigned long long)stats.bytes_out, (unsigned long long)stats.bytes_in, stats.how,
              sum);
}

void report(const velo::pool& pool, const std::string& directory) {
  const velo_pool_stats stats = pool.stats();
  std::printf(
      "pool: %llu blocks, peak %llu bytes live and %llu reserved; context and swap have %llu\n",
      (unsigned long long)stats.allocations, (unsigned long long)stats.bytes_peak,
      (unsigned long long)stats.bytes_reserved_peak,
      (unsigned long long)stats.purpose_live[VELO_PURPOSE_WORKSPACE]);
  const std::string path = directory + "/memory.svg";
  pool.save(VELO_SNAPSHOT_TIMELINE, path.c_str());
  std::printf("picture: %s\n", path.c_str());
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) return std::fprintf(stderr, "usage: memory_cpp DIR\n"), 1;
  const velo::pool pool = velo::pool::create();
  pool.record(4096);  // the last so many events, for the picture
  const velo_allocator allocator = pool.allocator();
  velo_context_desc context_desc = VELO_CONTEXT_DESC_INIT;
  context_desc.allocator = &allocator;
  const velo::context context = velo::context::create(context_desc);
  const velo::stream_ref stream = context.inline_stream();

  pool.note("a planned step");
  planned(pool, stream);

  pool.note("a step with swap");
  velo_swap_desc swap_desc = VELO_SWAP_DESC_INIT;
  swap_desc.tier = VELO_SWAP_DISK;
  swap_desc.directories = words[1];
  swap_desc.memory = pool;
  const velo::swap_space swap = velo::swap_space::create(context, swap_desc);
  swapped(swap, stream);
  report(pool, words[1]);
  return 0;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
