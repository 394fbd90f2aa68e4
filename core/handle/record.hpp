// The calling thread's error record: the last failure that crossed the C boundary on this thread.
//
// It has a fixed size (780 bytes) and no destructor, so a thread may end at any time, and a late
// dlopen finds room for it in static TLS. A success never changes it. It costs nothing until a call
// fails.
#pragma once

#include "core/failure.hpp"

namespace velo::core {

// Makes a failure the thread's record. `function` is used unless the failure names its own.
void write_record(const char* function, const failure& what) noexcept;

const velo_error_info& last_record() noexcept;

// The number of failures recorded on this thread so far, which tells whether a call recorded one.
std::uint32_t records_written() noexcept;

// The record of a call that failed with `status`; nullptr if the call left none. before:
// records_written() before the call.
const velo_error_info* record_left(velo_status status, std::uint32_t before) noexcept;

// Writes a record as one sentence. Returns the required length without the zero byte.
std::size_t record_text(const velo_error_info& record, char* buffer, std::size_t capacity) noexcept;

}  // namespace velo::core
