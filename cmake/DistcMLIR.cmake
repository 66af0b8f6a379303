# Tablegen, and how a library against MLIR is made: shared LLVM and MLIR, no RTTI, no exceptions.
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# distc_tablegen(<target> <file.td> <output> <mlir-tblgen option>...): a list of
# (output, option) pairs made from one .td file.
function(distc_tablegen target file)
  set(LLVM_TARGET_DEFINITIONS ${file})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args output options)
    separate_arguments(options UNIX_COMMAND "${options}")
    mlir_tablegen(${output} ${options})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

# MLIR's headers, and the classes made from our own ODS, cost every file of the compiler most of its time to parse: they
# are precompiled once, with this target's flags, for all libraries and tools. Files still include what they use.
function(distc_precompile_headers)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/empty.cpp CONTENT "")
  add_library(DistcPrecompiled STATIC ${CMAKE_BINARY_DIR}/precompiled/empty.cpp)
  distc_mlir_flags(DistcPrecompiled)
  add_dependencies(DistcPrecompiled ${ARGN})
  target_precompile_headers(DistcPrecompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Precompiled.h)
endfunction()

function(distc_mlir_flags target)
  # As LLVM is compiled. What would clean up behind exceptions is a good part of the code and of the time that it takes.
  target_compile_options(${target} PRIVATE -fno-rtti -fno-exceptions)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endfunction()

# A library, a tool or a test of the compiler.
function(distc_precompiled_mlir name)
  distc_mlir_flags(${name})
  distc_reuse_precompiled(${name} DistcPrecompiled)
endfunction()

# distc_mlir_library(<name> SOURCES ... DEPENDS <tablegen targets> LINK <libraries>)
function(distc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${DISTC_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 10)
  distc_precompiled_mlir(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
endfunction()
