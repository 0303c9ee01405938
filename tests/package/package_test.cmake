function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nexit status ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)

# Moved, so that a path of this machine left in the package shows.
file(RENAME ${WORK_DIR}/prefix ${WORK_DIR}/elsewhere)
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/elsewhere)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
if(NOT output STREQUAL "lse 1\nbytes 1\ncases 1\nseqlen_q: -5 is outside 0 to 67108864\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()

run(${WORK_DIR}/elsewhere/bin/attest --version)
if(NOT output MATCHES "^attest [0-9]+\\.[0-9]+\\.[0-9]+\n$")
  message(FATAL_ERROR "attest --version printed: ${output}")
endif()

run(${WORK_DIR}/elsewhere/bin/attest predict --device ${WORK_DIR}/elsewhere/share/attest/devices/a100.json --model
    ${WORK_DIR}/elsewhere/share/attest/models/bert-base.json --seqlen 512)
if(NOT output MATCHES "NVIDIA A100")
  message(FATAL_ERROR "attest predict printed: ${output}")
endif()

# A plug-in as its author builds it, with what is installed and nothing else.
run(${CC} -std=c11 -O2 -fPIC -shared -I ${WORK_DIR}/elsewhere/include ${PLUGIN} -o ${WORK_DIR}/libplugin.so -lm)
run(${WORK_DIR}/elsewhere/bin/attest doctor --kernel ${WORK_DIR}/libplugin.so)
if(NOT output MATCHES "record +right +plain-c on cpu" OR NOT EXISTS ${WORK_DIR}/elsewhere/share/attest/attest.py)
  message(FATAL_ERROR "attest doctor printed: ${output}")
endif()
