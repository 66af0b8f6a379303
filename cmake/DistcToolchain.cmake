# ccache and a fast linker where they are found, the warnings we hold to, and sanitizers.
find_program(DISTC_CCACHE ccache)
if(DISTC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${DISTC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DISTC_CCACHE})
endif()

find_program(DISTC_MOLD mold)
find_program(DISTC_LLD NAMES ld.lld PATHS /usr/lib/llvm-22/bin)
if(DISTC_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(DISTC_LLD)
  add_link_options(-fuse-ld=lld -B/usr/lib/llvm-22/bin)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-comment)
if(DISTC_WERROR)
  add_compile_options(-Werror)
endif()

if(DISTC_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized) # GCC's manual: false positives beside -fsanitize
endif()
foreach(sanitizer IN LISTS DISTC_SANITIZE)
  add_compile_options(-fsanitize=${sanitizer} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizer})
endforeach()
