// Symbols that the wheel's library resolves otherwise than libvelo.so; the linker's --wrap leads
// here.
//
// jansson's archive is not made for shared libraries in one place: it compares a file with stdin,
// to name it in a message. velo reads texts, never files, so any address serves. And gcc 12's
// library has condition_variable::wait twice, under an old and under a new version of its name;
// they are one function, but the new one is not there on systems with gcc 11 (glibc 2.34).
extern "C" {

void* wrapped_stdin __asm__("__wrap_stdin") = nullptr;

__asm__(
    ".symver first_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
void first_wait(void* condition, void* lock);

void wrapped_wait(void* condition, void* lock) __asm__(
    "__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

void wrapped_wait(void* condition, void* lock) {
  first_wait(condition, lock);
}
}
