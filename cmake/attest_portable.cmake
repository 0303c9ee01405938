# A binary built on Debian 12 runs on another distribution if nothing in it asks for Debian's own shared libraries; of
# what we link, only {fmt} and SQLite are such libraries. Its static form is taken where there is one (Debian ships none); else its
# functions are compiled in, which costs about 2.5 s for each file that formats, so this is an option.
option(ATTEST_PORTABLE "Binaries that need no libfmt.so and no libsqlite3.so where they run" OFF)
if(NOT ATTEST_PORTABLE)
  return()
endif()

find_library(ATTEST_FMT_STATIC libfmt.a)
mark_as_advanced(ATTEST_FMT_STATIC)
if(ATTEST_FMT_STATIC)
  foreach(config "" _NONE _RELEASE _RELWITHDEBINFO)
    set_target_properties(fmt::fmt PROPERTIES IMPORTED_LOCATION${config} ${ATTEST_FMT_STATIC})
  endforeach()
else()
  set_property(TARGET fmt::fmt APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY)
  add_link_options(-Wl,--as-needed)  # libfmt.so stays on the command line; with nothing to resolve it is not recorded
endif()

# Debian's development package has both forms of SQLite.
find_library(ATTEST_SQLITE_STATIC libsqlite3.a)
mark_as_advanced(ATTEST_SQLITE_STATIC)
if(ATTEST_SQLITE_STATIC)
  set_target_properties(SQLite::SQLite3 PROPERTIES IMPORTED_LOCATION ${ATTEST_SQLITE_STATIC})
  set_property(TARGET SQLite::SQLite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m ${CMAKE_DL_LIBS} pthread)
endif()
