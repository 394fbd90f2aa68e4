# The instruction sets kernels are compiled for, and how: this list, a vector header here for each,
# and detection (detect.cpp) are all that an ISA is. Its name also stands where the key `isa` is
# described: core/config.cpp and capi/include/velo/context.h.
#
# velo_isa(<name> [FLAGS <option>..] [FOR <feature>]): lowest first; each includes those before it.
# One with a feature is compiled only for the operators that use the feature; all others for every
# operator.
set(VELO_ISAS "")
function(velo_isa name)
  cmake_parse_arguments(PARSE_ARGV 1 isa "" "FOR" "FLAGS")
  set(VELO_ISAS ${VELO_ISAS} ${name} PARENT_SCOPE)
  set(VELO_ISA_FLAGS_${name} ${isa_FLAGS} PARENT_SCOPE)
  set(VELO_ISA_FOR_${name} "${isa_FOR}" PARENT_SCOPE)
endfunction()

set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12's own intrinsics begin with "__m512i y = y" (PR 105593)
  list(APPEND avx512 -Wno-maybe-uninitialized)
endif()
set(avx512_bf16 ${avx512} -mavx512bf16 -mavx512vnni)
set(amx ${avx512_bf16} -mamx-tile -mamx-bf16 -mamx-int8)

# for size: it serves processors without AVX2
velo_isa(scalar FLAGS $<$<CONFIG:Release,RelWithDebInfo>:-Os> FOR no_vectors)
velo_isa(avx2 FLAGS ${avx2})
velo_isa(avx512 FLAGS ${avx512})
velo_isa(avx512_bf16 FLAGS ${avx512_bf16} FOR bf16_rounding)
velo_isa(amx FLAGS ${amx} FOR tiles)

# The list for C++: the enumerators of core::isa and their names.
list(JOIN VELO_ISAS ", " enumerators)
list(JOIN VELO_ISAS "\", \"" names)
set(VELO_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${VELO_GENERATED}/core/simd/isa_enumerators.inc CONTENT "@enumerators@\n")
file(CONFIGURE OUTPUT ${VELO_GENERATED}/core/simd/isa_names.inc CONTENT "\"@names@\"\n")
target_include_directories(velo_objects PUBLIC ${VELO_GENERATED})

# velo_isa_options(<isa> VARIABLE): what its files are compiled with.
function(velo_isa_options isa out)
  # gcc 12 takes its own intrinsics' undefined start values for a mistake of ours.
  set(quiet -fno-math-errno $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
  set(${out} "${VELO_ISA_FLAGS_${isa}};${quiet}" PARENT_SCOPE)
endfunction()

# velo_isa_sources(<isa> FILE..): files compiled for one ISA. They may not include the standard
# library: an inline function compiled with these flags could be the copy the linker keeps for
# everyone.
function(velo_isa_sources isa)
  velo_isa_options(${isa} options)
  target_sources(velo_objects PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY velo_objects
    PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

# velo_kernels(<operator> [FROM <name>] [USES <feature>..]): compiles the folder's <operator>.inl
# for every vector ISA, <operator>_ref.cpp as it is, and makes the list of them that <operator>.hpp
# declares (ops/operator/kernels.hpp). FROM: <name>.inl and .hpp instead, where several operators or
# files share the kernels.
function(velo_kernels operator)
  cmake_parse_arguments(PARSE_ARGV 1 kernel "" "FROM" "USES")
  set(source ${operator})
  if(kernel_FROM)
    set(source ${kernel_FROM})
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" layer ${folder})  # the namespace
  set(made ${VELO_GENERATED}/${folder}/${operator})
  set(declarations "")
  set(entries "")
  set(isas ${VELO_ISAS})
  list(REVERSE isas)
  foreach(isa ${isas})
    if(VELO_ISA_FOR_${isa} AND NOT VELO_ISA_FOR_${isa} IN_LIST kernel_USES)
      continue()
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/core/simd/kernels_of_isa.cpp.in ${made}_${isa}.cpp @ONLY)
    velo_isa_sources(${isa} ${made}_${isa}.cpp)
    string(APPEND declarations
      "namespace ${isa} {\nextern const ${operator}_kernels ${operator};\n}\n")
    string(APPEND entries "    {\"${isa}\", core::isa::${isa}, &${isa}::${operator}},\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/core/simd/kernel_list.cpp.in ${made}_kernel_list.cpp @ONLY)
  target_sources(velo_objects PRIVATE ${operator}_ref.cpp ${made}_kernel_list.cpp)
  # part of the way of every call: no canaries, see ops/call
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${operator}.cpp)
    set_source_files_properties(${operator}.cpp TARGET_DIRECTORY velo_objects
      PROPERTIES COMPILE_OPTIONS -fno-stack-protector)
  endif()
endfunction()
