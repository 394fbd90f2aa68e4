/* velo opened at run time, as a plugin host or a language runtime does it: dlopen, the function
 * table, and nothing of velo at link time.
 *
 *     open PATH_OF_LIBVELO
 *
 * The table carries every function; a library too old for the program refuses to hand it out and
 * says so. The first velo_api a program gets serves all its threads until it ends: the library
 * stays mapped after dlclose.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <velo/velo.h>

typedef velo_status (*get_api_fn)(uint32_t needed, uint64_t table_size,
                                  const struct velo_api** api);

static int complain(const struct velo_api* velo) {
  char text[1024];
  velo->error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

static int norm(const struct velo_api* velo, velo_stream stream, int64_t gains) {
  float x[2][2] = {{3, 4}, {1, -1}}, gain[2] = {1, 2}, y[2][2];
  const int64_t rows[2] = {2, 2};
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_tensor in = {x, cpu, 2, f32, rows, NULL, 0}, by = {gain, cpu, 1, f32, &gains, NULL, 0},
                    out = {y, cpu, 2, f32, rows, NULL, 0};
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &in;
  args.gamma = &by;
  args.y = &out;
  if (velo->rms_norm(stream, &args) != VELO_OK) return complain(velo);
  return printf("%.4f %.4f %.4f %.4f\n", y[0][0], y[0][1], y[1][0], y[1][1]), 0;
}

int main(int count, char** words) {
  if (count != 2) return fprintf(stderr, "usage: open LIBRARY\n"), 1;
  void* const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  get_api_fn get_api;
  *(void**)&get_api = dlsym(library, "velo_get_api");
  const struct velo_api* velo;
  if (get_api == NULL || get_api(VELO_TARGET_ABI, sizeof *velo, &velo) != VELO_OK) return 1;

  velo_context context;
  velo_stream stream;
  if (velo->context_create(NULL, &context) != VELO_OK) return complain(velo);
  if (velo->context_stream(context, &stream) != VELO_OK) return complain(velo);
  if (norm(velo, stream, 2) != 0) return 1;
  norm(velo, stream, 3); /* refused: the sentence names args.gamma, and y is untouched */
  velo->context_destroy(context);
  return dlclose(library);
}
