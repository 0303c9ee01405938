# cmake --install: the program, the headers, the static libraries, the data files, and find_package(attest).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A target of attest_folder() becomes attest::NAME of the package.
function(attest_install_folder target folder)
  set_property(GLOBAL APPEND PROPERTY ATTEST_INSTALLED ${target})
  install(TARGETS ${target} EXPORT attestTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(EXISTS ${folder}/include)
    install(DIRECTORY ${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endfunction()

# Called once, after every folder.
function(attest_install_package)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attest)
  install(EXPORT attestTargets NAMESPACE attest:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/attestConfig.cmake.in ${CMAKE_BINARY_DIR}/attestConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/attestConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/attestConfig.cmake ${CMAKE_BINARY_DIR}/attestConfigVersion.cmake
          DESTINATION ${package_dir})
  foreach(data devices models)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/simulator/${data})
      install(DIRECTORY simulator/${data} DESTINATION ${CMAKE_INSTALL_DATADIR}/attest FILES_MATCHING PATTERN "*.json")
    endif()
  endforeach()
endfunction()
