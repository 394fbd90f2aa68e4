// A context for each rank; VELO_ISA and the other keys may be set in the environment.
#include "examples/decoder/ranks/context.hpp"

#include <cstdio>
#include <cstring>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

// Prints velo's warnings, above all of ranks that do not arrive. A failure of queued work is the
// status of a later call, and so is printed once.
void print_warning(void*, velo_log_level level, const char* module, const char* line) {
  if (level == VELO_LOG_ERROR && std::strcmp(module, "stream") == 0) return;
  std::fprintf(stderr, "%s: %s\n", program_name, line);
}

}  // namespace

velo::context make_context(const run_settings& run, const run_memory& memory) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = static_cast<std::int32_t>(run.threads);
  const velo_allocator allocator = memory.allocator();
  desc.allocator = &allocator;
  desc.log = print_warning;
  return velo::context::create(desc);
}

std::string isa_of(const velo::context& context) {
  return context.config<std::string>("isa");
}

int threads_of(const velo::context& context) {
  return context.stats().threads;
}

}  // namespace decoder
