// printf with the same output under any locale: a host that has set one of its own for its process
// would otherwise find commas among the numbers of pictures and JSON.
//
// The calling thread takes the "C" locale for the length of a call: some ten nanoseconds, and no
// memory.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <string>

namespace velo::core {

// As vsnprintf.
int print(char* buffer, std::size_t capacity, const char* format, std::va_list values) noexcept;

// At most 511 characters.
__attribute__((format(printf, 2, 3))) void append(std::string& to, const char* format, ...);

}  // namespace velo::core
