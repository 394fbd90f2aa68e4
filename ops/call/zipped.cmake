# Writes a file as the bytes of a gzip file, a list for a C array:
#
#   cmake -D FROM=.. -D TO=.. -P zipped.cmake
#
# CMake compresses, so that a cross build needs no program of its own. The bytes that hold the time
# are made zero: a build twice gives the same library.
cmake_path(GET TO PARENT_PATH folder)
file(MAKE_DIRECTORY ${folder})
file(ARCHIVE_CREATE OUTPUT ${TO}.gz PATHS ${FROM} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
file(READ ${TO}.gz bytes HEX)
string(SUBSTRING ${bytes} 0 8 begin)
string(SUBSTRING ${bytes} 16 -1 bytes)
set(bytes ${begin}00000000${bytes})
string(REGEX REPLACE "(................................)" "\\1\n" bytes ${bytes})
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes ${bytes})
file(WRITE ${TO} ${bytes}\n)
file(REMOVE ${TO}.gz)
