// A library of the plugin's name that is none of velo.
extern "C" __attribute__((visibility("default"))) int nothing_of_velo() {
  return 0;
}
