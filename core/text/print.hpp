// printf with the same output in every locale. A host's own locale would otherwise put commas into
// the numbers of pictures and JSON.
//
// The calling thread uses the "C" locale for the duration of a call: some ten nanoseconds, and no
// allocation.
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
