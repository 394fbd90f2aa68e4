/* A program of the synthetic release that comes next (1.1 after 1.0): uses one of everything that
 * release added, and knows how the library of today answers.
 *
 *   client_1_1          linked: calls the new function, sets the new field, reads the new counter
 *   client_1_1 LIBRARY  opens that library, which is older, and expects to be refused by name
 * (compiled with OPENED, links nothing)
 */
#include <stdio.h>
#include <string.h>

#include "velo/velo.h"

#if VELO_TARGET_ABI < 101
#error "this program is of a release after 1.0"
#endif

#define EXPECT(condition)                                \
  do {                                                   \
    if (!(condition)) {                                  \
      fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
      return 1;                                          \
    }                                                    \
  } while (0)

static const float x[4] = {1, 1, 1, 1}, gain[4] = {1, 2, 3, 4};
static float y[4];
static const int64_t matrix[2] = {1, 4}, row[1] = {4};

static velo_tensor tensor(const float* data, int32_t ndim, const int64_t* shape) {
  velo_tensor made;
  memset(&made, 0, sizeof made);
  made.data = (void*)data;
  made.device.type = VELO_DEVICE_CPU;
  made.ndim = ndim;
  made.dtype.code = VELO_DTYPE_FLOAT;
  made.dtype.bits = 32;
  made.dtype.lanes = 1;
  made.shape = shape;
  return made;
}

#ifdef OPENED
#include <dlfcn.h>

static void* library;
static int find(const char* name, void* function) {
  void* address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

int main(int count, char** words) {
  const struct velo_api* api = NULL;
  char needed[32], offered[32];
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_status (*get_api)(uint32_t, uint64_t, const struct velo_api**);
  velo_status (*last_error)(velo_error_info*);
  if (count != 2 || (library = dlopen(words[1], RTLD_NOW)) == NULL) return 2;
  EXPECT(find("velo_get_api", &get_api) && find("velo_last_error", &last_error));
  EXPECT(!find("velo_growth_double", &get_api));
  EXPECT(find("velo_get_api", &get_api));

  /* the table: refused, with both versions and the file in the record */
  EXPECT(get_api(VELO_TARGET_ABI, sizeof(struct velo_api), &api) == VELO_ERR_ABI);
  EXPECT(api == NULL);
  EXPECT(last_error(&info) == VELO_OK && info.code == VELO_ERR_ABI);
  snprintf(needed, sizeof needed, "ABI %d.%d", VELO_TARGET_ABI / 100, VELO_TARGET_ABI % 100);
  snprintf(offered, sizeof offered, "ABI %d.%d", VELO_TARGET_ABI / 100, VELO_TARGET_ABI % 100 - 1);
  EXPECT(strstr(info.expected, needed) != NULL && strstr(info.got, offered) != NULL);
  EXPECT(strstr(info.cause, "libvelo") != NULL || strstr(info.got, "libvelo") != NULL);
  EXPECT(get_api(100, sizeof(struct velo_api), &api) ==
         VELO_ERR_ABI); /* asks for more table than there is */
  EXPECT(get_api(100, sizeof(struct velo_api) - sizeof(void*), &api) == VELO_OK);

  /* the field: an older library hears it being asked for something it cannot do, and serves what
   * asks for nothing */
  velo_context context = NULL;
  velo_stream stream = NULL;
  velo_context_stats stats;
  const velo_tensor tx = tensor(x, 2, matrix), tg = tensor(gain, 1, row), ty = tensor(y, 2, matrix);
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &tx, args.gamma = &tg, args.y = &ty, args.epsilon = 0, args.offset = 1;
  EXPECT(api->context_create(NULL, &context) == VELO_OK &&
         api->context_stream(context, &stream) == VELO_OK);
  EXPECT(api->rms_norm(stream, &args) == VELO_ERR_UNSUPPORTED && y[1] == 0);
  args.offset = 0;
  EXPECT(api->rms_norm(stream, &args) == VELO_OK && y[1] == 2);

  /* the counter: an older library fills what it knows and leaves the rest alone */
  memset(&stats, 0x5a, sizeof stats);
  stats.struct_size = sizeof stats;
  EXPECT(api->context_get_stats(context, &stats) == VELO_OK && stats.threads >= 1);
  EXPECT(stats.growth == 0x5a5a5a5a5a5a5a5au || stats.growth == 0);
  int32_t available = -1;
  EXPECT(api->capability_query(VELO_CAP_GROWTH, &available) == VELO_ERR_ARGUMENT &&
         available == -1);
  api->context_destroy(context);
  puts("refused by name, by table and by field");
  return 0;
}
#else
int main(void) {
  const struct velo_api* api = NULL;
  int64_t doubled = 0;
  uint32_t abi = 0;
  velo_context context = NULL;
  velo_stream stream = NULL;
  velo_context_stats stats;
  const velo_tensor tx = tensor(x, 2, matrix), tg = tensor(gain, 1, row), ty = tensor(y, 2, matrix);
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  EXPECT(velo_version(NULL, NULL, NULL, &abi) == VELO_OK && abi == VELO_TARGET_ABI);
  EXPECT(velo_growth_double(21, &doubled) == VELO_OK && doubled == 42);
  EXPECT(velo_get_api(VELO_TARGET_ABI, sizeof(struct velo_api), &api) == VELO_OK);
  EXPECT(api->growth_double(4, &doubled) == VELO_OK && doubled == 8);
  EXPECT(velo_get_api(100, sizeof(struct velo_api) - sizeof(void*), &api) ==
         VELO_OK); /* what a 1.0 program asks */
  EXPECT(velo_context_create(NULL, &context) == VELO_OK &&
         velo_context_stream(context, &stream) == VELO_OK);
  args.x = &tx, args.gamma = &tg, args.y = &ty, args.epsilon = 0, args.offset = 1;
  EXPECT(velo_rms_norm(stream, &args) == VELO_OK && y[1] == 2);
  memset(&stats, 0x5a, sizeof stats);
  stats.struct_size = sizeof stats;
  EXPECT(velo_context_get_stats(context, &stats) == VELO_OK && stats.growth == 0);
  velo_context_destroy(context);
  puts("one of everything new works");
  return 0;
}
#endif
