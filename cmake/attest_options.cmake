# What every target of ours is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(ATTEST_WERROR "Warnings are errors" OFF)
option(ATTEST_SANITIZE "AddressSanitizer and UBSan on everything of ours" OFF)
option(ATTEST_BUILD_BENCH "Build the benchmarks (needs Google Benchmark)" ON)

add_library(attest_flags INTERFACE)
# Never native: a binary built here must run on another machine.
set(flags -march=x86-64-v3 -Wall -Wextra -Wshadow -Wno-unused-parameter
          -Wno-restrict)  # false alarms on std::string (GCC bug 105651)
list(JOIN flags "," host_flags)
target_compile_options(attest_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${flags}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=${host_flags}>")
if(ATTEST_WERROR)
  target_compile_options(attest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
                                                $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(ATTEST_SANITIZE)
  target_compile_options(attest_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer>")
  target_link_options(attest_flags INTERFACE -fsanitize=address,undefined)
endif()

find_program(ATTEST_CCACHE ccache)
if(ATTEST_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATTEST_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ATTEST_CCACHE})
endif()
