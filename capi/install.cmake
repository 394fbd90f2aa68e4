# The parts of an installed velo: the library and its adapters, the C and C++ headers, the velo
# command, pkg-config files, a CMake package, the Python modules of the hosts, the reference of all
# functions, the examples, the notices.
#
# The tree is relocatable for CMake; the pkg-config files name the prefix they were installed to.
# Components are called as the Debian packages they become (packaging/debian).
include(CMakePackageConfigHelpers)

install(TARGETS velo velo_adapters velo_cpp velo_cpp_dynamic EXPORT velo-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libvelo1 NAMELINK_COMPONENT
        libvelo-dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET velo_mpi)  # beside libvelo.so, which looks for it there
  install(TARGETS velo_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT velo-mpi)
endif()
set_target_properties(velo_adapters PROPERTIES EXPORT_NAME adapters)
set_target_properties(velo_cpp PROPERTIES EXPORT_NAME cpp)
set_target_properties(velo_cpp_dynamic PROPERTIES EXPORT_NAME cpp_dynamic)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/capi/include/velo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp/include/velo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/capi/adapters/include/velo
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET velo_command)
  set_target_properties(velo_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS velo_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT velo-tools)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/abi/generated/api.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
include(${CMAKE_CURRENT_LIST_DIR}/installed_pages.cmake)
# decoder and pretrain are built in the tree
set(VELO_INSTALLED_EXAMPLES c cpp foreign_kernel jax luajit mindspore torch tune tvm_ffi)
velo_install_page(README.md)
foreach(folder capi/python capi/adapters memory comm sched ops)
  velo_install_page(${folder}/README.md)
endforeach()
foreach(folder ${VELO_INSTALLED_EXAMPLES})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/${folder}
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
          PATTERN CMakeLists.txt EXCLUDE PATTERN README.md EXCLUDE PATTERN __pycache__ EXCLUDE)
  if(EXISTS ${PROJECT_SOURCE_DIR}/examples/${folder}/README.md)
    velo_install_page(examples/${folder}/README.md)
  endif()
endforeach()

# The Python package: PYTHONPATH may name this one folder.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/capi/python/velo
  DESTINATION ${CMAKE_INSTALL_DATADIR}/velo/python
        FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/velo)
install(EXPORT velo-targets NAMESPACE velo:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/velo-config.cmake.in
  ${PROJECT_BINARY_DIR}/velo-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/velo-config-version.cmake COMPATIBILITY
  SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/velo-config.cmake
  ${PROJECT_BINARY_DIR}/velo-config-version.cmake
        DESTINATION ${package_dir})

# The directories may be relative to the prefix or absolute. The files are made while installing, so
# that the prefix given to `cmake --install --prefix` is the one they name; in a folder of that
# installation alone, as several may run at once.
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}})
    set(VELO_PC_${kind} ${CMAKE_INSTALL_${kind}})
    set(place_${kind} ${CMAKE_INSTALL_${kind}})
  else()
    set(VELO_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
    set(place_${kind} "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
foreach(name velo velo-adapters)
  install(CODE "
    set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
    set(PROJECT_VERSION ${PROJECT_VERSION})
    set(VELO_PC_LIBDIR [[${VELO_PC_LIBDIR}]])
    set(VELO_PC_INCLUDEDIR [[${VELO_PC_INCLUDEDIR}]])
    string(RANDOM LENGTH 16 installation)
    set(made \"${PROJECT_BINARY_DIR}/pkgconfig-\${installation}\")
    configure_file(\"${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in\" \"\${made}/${name}.pc\" @ONLY)
    file(INSTALL \"\${made}/${name}.pc\" DESTINATION \"${place_LIBDIR}/pkgconfig\")
    file(REMOVE_RECURSE \"\${made}\")
  " COMPONENT pkgconfig)
endforeach()
