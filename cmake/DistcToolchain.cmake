# ccache and a fast linker where they are found, the warnings we hold to, and sanitizers.
find_program(DISTC_CCACHE ccache)
if(DISTC_CCACHE)
  # What ccache asks for where headers are precompiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DISTC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()

find_program(DISTC_LLD NAMES ld.lld PATHS /usr/lib/llvm-22/bin)
if(DISTC_LLD)
  get_filename_component(DISTC_LLD_FOLDER ${DISTC_LLD} DIRECTORY)
  add_link_options(-fuse-ld=lld -B${DISTC_LLD_FOLDER})
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-comment)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations) # of what libstdc++'s own headers call
endif()
if(DISTC_WERROR)
  add_compile_options(-Werror)
endif()

if(DISTC_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized) # GCC's manual: false positives beside -fsanitize
endif()
if(DISTC_SANITIZE STREQUAL "thread")
  # Where it is defined, protobuf's headers give a map's field a member that the distribution's library does not know.
  add_compile_options(-U__SANITIZE_THREAD__)
endif()
foreach(sanitizer IN LISTS DISTC_SANITIZE)
  add_compile_options(-fsanitize=${sanitizer} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizer})
endforeach()

# distc_inline_less(<target> [<threshold>]): what is not hot is inlined less than by LLVM's threshold of 225, which takes a
# fifth off the time to compile it.
function(distc_inline_less target)
  set(threshold ${ARGN} 30)
  list(GET threshold 0 threshold)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-mllvm -inline-threshold=${threshold}>")
endfunction()

# What is precompiled for libraries is position-independent code, for executables alone it would be of another kind: so
# executables that reuse it are compiled as libraries are.
function(distc_reuse_precompiled target owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
