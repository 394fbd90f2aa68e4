// Memory that runs out in jansson. Its functions then leave out what they cannot store, so that a
// text written from it would lack members, and a text that it reads would look malformed.
//
// Each allocation of jansson is watched, for each thread by itself. A function that has built or
// read JSON asks afterwards whether one has failed. Cost: a branch an allocation.
#pragma once

namespace decoder {

void watch_json_memory() noexcept;  // main calls it before anything uses jansson

// Throws std::bad_alloc if jansson has run out of memory on this thread since the last call.
void require_json_memory();

}  // namespace decoder
