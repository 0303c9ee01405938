# A folder is a target. Its headers stand under <folder>/include, and only who links the target sees them: the compiler
# refuses an include in a wrong direction.
#
#   attest_folder(NAME SOURCES a.cpp ... LINKS attest::problem ... [PRIVATE_LINKS fmt::fmt ...])
#
# defines attest_NAME (alias attest::NAME), static, or an interface library where there are no sources. Where
# ATTEST_ON_GPU is set, what links it by name runs on a GPU: attest_test() gives such a program the label `gpu`.
function(attest_folder NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  set(target attest_${NAME})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:attest_flags> ${ARG_PRIVATE_LINKS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(attest::${NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${NAME} ATTEST_ON_GPU "${ATTEST_ON_GPU}")
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} ${scope} ${ARG_LINKS})
  attest_install_folder(${target} ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
