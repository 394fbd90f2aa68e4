/* The three macros every public header uses. Nothing here is ABI.
 *
 * VELO_API marks an exported function. VELO_TARGET_ABI names the oldest library a program must run
 * with, as major * 100 + minor; it defaults to 1.0, never to the newest, so that a program asks for
 * no more than it uses. Declarations newer than the target are hidden. The library's own sources
 * see everything.
 */
#ifndef VELO_EXPORT_H
#define VELO_EXPORT_H

#ifndef VELO_TARGET_ABI
#ifdef VELO_BUILD_LIBRARY
#define VELO_TARGET_ABI 9999
#else
#define VELO_TARGET_ABI 100
#endif
#endif

#define VELO_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define VELO_BEGIN_C extern "C" {
#define VELO_END_C }
#else
#define VELO_BEGIN_C
#define VELO_END_C
#endif

#endif
