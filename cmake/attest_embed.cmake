# attest_embed(OUT.cpp FUNCTION a.json b.json ...): writes OUT.cpp, which defines
#   std::span<const EmbeddedFile> attest::FUNCTION()
# with each file's name, without its last extension, and text. Done when CMake runs, and again whenever a file changes.
function(attest_embed OUT FUNCTION)
  list(SORT ARGN)
  set(entries "")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  set(content "#include \"attest/problem/embedded_file.h\"\n\nnamespace attest {\nstd::span<const EmbeddedFile> ${FUNCTION}();\nstd::span<const EmbeddedFile> ${FUNCTION}() {\n")
  string(APPEND content "  static constexpr EmbeddedFile files[] = {\n${entries}  };\n  return files;\n}\n}  // namespace attest\n")
  # not file(CONFIGURE): that would replace @names@ inside the files
  file(WRITE ${OUT}.new "${content}")
  file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
endfunction()
