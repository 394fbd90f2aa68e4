// The two choices that a program makes for the C++ layer, before it includes any of it.
//
//   VELO_NO_EXCEPTIONS  failures are returned as velo::result<T>; the default if the compiler has
//                       exceptions off
//   VELO_DYNAMIC        calls go through the table of a library that velo::load opens; nothing is
//                       linked
//
// Each combination has its own inline namespace. Functions differ in what they return or call, so
// translation units with different choices must not share inline functions. Users never write these
// names.
#pragma once

#if !defined(VELO_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define VELO_NO_EXCEPTIONS
#endif

#if defined(VELO_DYNAMIC) && defined(VELO_NO_EXCEPTIONS)
#define VELO_MODE loaded_results
#elif defined(VELO_DYNAMIC)
#define VELO_MODE loaded_throwing
#elif defined(VELO_NO_EXCEPTIONS)
#define VELO_MODE linked_results
#else
#define VELO_MODE linked_throwing
#endif

#define VELO_CPP_BEGIN  \
  namespace velo {      \
  inline namespace v1 { \
  inline namespace VELO_MODE {
#define VELO_CPP_END \
  }                  \
  }                  \
  }
