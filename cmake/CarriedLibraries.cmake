# Copies shared libraries and all that they need, but glibc, into a folder: cmake -DFOLDER=... "-DLIBRARIES=A;B" -P this
cmake_policy(VERSION 3.25)
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${LIBRARIES}
  RESOLVED_DEPENDENCIES_VAR needed
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so\\.")
if(missing)
  message(FATAL_ERROR "cannot carry ${LIBRARIES}: ${missing} is not found")
endif()
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
foreach(library IN LISTS LIBRARIES needed)
  execute_process(COMMAND objdump -p ${library} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "SONAME +([^\n ]+)" soname "${headers}")
  if(NOT soname)
    message(FATAL_ERROR "cannot carry ${library}: it has no soname")
  endif()
  set(soname ${CMAKE_MATCH_1})
  file(REAL_PATH ${library} file)
  configure_file(${file} ${FOLDER}/${soname} COPYONLY)
endforeach()
file(TOUCH ${FOLDER}/stamp)
