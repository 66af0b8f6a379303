# What a compiler's driver links executables with, in one folder, so that distc links them by itself: startup files, the
# libraries of C++ and of the compiler, the distribution's static libraries that the runtime calls, and glibc's shared ones,
# whose symbols and versions the linker reads. distc_toolchain(<target> <folder> <static libraries>...)
function(distc_toolchain target folder)
  set(files)
  foreach(name IN ITEMS Scrt1.o crti.o crtn.o crtbeginS.o crtendS.o libgcc.a libgcc_eh.a libstdc++.a libc_nonshared.a libc.so.6 libm.so.6
                        ld-linux-x86-64.so.2)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name} OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    if(NOT IS_ABSOLUTE ${path} OR NOT EXISTS ${path})
      message(FATAL_ERROR "${CMAKE_CXX_COMPILER} has no ${name}, which executables are linked with; install g++ and libc6-dev")
    endif()
    file(REAL_PATH ${path} real)
    list(APPEND files ${folder}/${name})
    add_custom_command(OUTPUT ${folder}/${name} COMMAND ${CMAKE_COMMAND} -E copy ${real} ${folder}/${name} DEPENDS ${real} VERBATIM)
  endforeach()
  foreach(library IN LISTS ARGN)
    find_library(DISTC_STATIC_${library} lib${library}.a REQUIRED)
    mark_as_advanced(DISTC_STATIC_${library})
    list(APPEND files ${folder}/lib${library}.a)
    add_custom_command(OUTPUT ${folder}/lib${library}.a
                       COMMAND ${CMAKE_COMMAND} -E copy ${DISTC_STATIC_${library}} ${folder}/lib${library}.a
                       DEPENDS ${DISTC_STATIC_${library}} VERBATIM)
  endforeach()
  add_custom_target(${target} DEPENDS ${files})
endfunction()
