// The calling thread's error record: the last failure that crossed the C boundary on this thread.
//
// It has a fixed size (780 bytes) and no destructor, so a thread may end at any time and a late
// dlopen finds room for it. A success never touches it. Cost: nothing until something fails.
#pragma once

#include "core/failure.hpp"

namespace velo::core {

// Makes a failure the thread's record; `function` is used unless the failure carries its own.
void write_record(const char* function, const failure& what) noexcept;

const velo_error_info& last_record() noexcept;

// How many failures became this thread's record so far: whether a call left one.
std::uint32_t records_written() noexcept;

// The record that a call left by failing with `status`; nullptr: it left none. before:
// records_written() before the call.
const velo_error_info* record_left(velo_status status, std::uint32_t before) noexcept;

// Writes a record as one sentence; returns the length it needs without its zero byte.
std::size_t record_text(const velo_error_info& record, char* buffer, std::size_t capacity) noexcept;

}  // namespace velo::core
