// The velo context of a rank, and its instruction set and threads.
#pragma once

#include <string>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

// Packs and scratch come from `memory`, which must outlive the context.
velo::context make_context(const run_settings& run, const run_memory& memory);

std::string isa_of(const velo::context& context);  // "avx512_bf16"
int threads_of(const velo::context& context);

}  // namespace decoder
